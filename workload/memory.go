package workload

import (
	"fmt"

	"github.com/simccl/simccl/units"
)

// Memory estimates the bytes that the fullest GPU holds in training, by use.
type Memory struct{ Parameters, Gradients, Optimizer, Activations units.Bytes }

// Total is the sum of all uses, in bytes.
func (m Memory) Total() units.Bytes { return m.Parameters + m.Gradients + m.Optimizer + m.Activations }

// MemoryUse is a Memory beside what the GPU has, as the JSON of commands shows it.
type MemoryUse struct {
	Parameters  units.Bytes `json:"parameters"`
	Gradients   units.Bytes `json:"gradients"`
	Optimizer   units.Bytes `json:"optimizer"`
	Activations units.Bytes `json:"activations"`
	Total       units.Bytes `json:"total"`
	Capacity    units.Bytes `json:"capacity"` // 0: not known
}

// Use puts a Memory beside a capacity; nil where it is not known.
func (m Memory) Use(capacity units.Bytes) *MemoryUse {
	if m == (Memory{}) {
		return nil
	}
	return &MemoryUse{m.Parameters, m.Gradients, m.Optimizer, m.Activations, m.Total(), capacity}
}

func gigabytes(b units.Bytes) string { return fmt.Sprintf("%.1f", float64(b)/(1<<30)) }

// String is a line for a person, in GB of 2^30 bytes, as the memory of GPUs is counted.
func (u *MemoryUse) String() string {
	s := fmt.Sprintf("%s GB of a GPU's memory: parameters %s, gradients %s, optimizer %s, activations %s "+
		"(estimated)", gigabytes(u.Total), gigabytes(u.Parameters), gigabytes(u.Gradients),
		gigabytes(u.Optimizer), gigabytes(u.Activations))
	if u.Capacity > 0 {
		s += fmt.Sprintf("; it has %s", gigabytes(u.Capacity))
	}
	return s
}

// Problem says that it does not fit; "" where it does or nothing says how much there is.
func (u *MemoryUse) Problem(gpu string) string {
	if u.Capacity <= 0 || u.Total <= u.Capacity {
		return ""
	}
	return fmt.Sprintf("the job does not fit: it needs about %s GB of each %s, which has %s (estimated); "+
		"divide it further (--tp, --pp, --fsdp 3), or recompute", gigabytes(u.Total), gpu,
		gigabytes(u.Capacity))
}
