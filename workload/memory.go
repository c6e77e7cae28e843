package workload

import (
	"fmt"

	"github.com/simccl/simccl/units"
)

// Memory is the estimated number of bytes in the fullest GPU in training, by use.
type Memory struct{ Parameters, Gradients, Optimizer, Activations units.Bytes }

// Total returns the sum of all uses.
func (m Memory) Total() units.Bytes { return m.Parameters + m.Gradients + m.Optimizer + m.Activations }

// MemoryUse is the JSON form of a Memory and the GPU's capacity.
type MemoryUse struct {
	Parameters  units.Bytes `json:"parameters"`
	Gradients   units.Bytes `json:"gradients"`
	Optimizer   units.Bytes `json:"optimizer"`
	Activations units.Bytes `json:"activations"`
	Total       units.Bytes `json:"total"`
	Capacity    units.Bytes `json:"capacity"` // 0: not known
}

// Use returns m with a GPU's capacity for output; nil if m is unknown (zero).
func (m Memory) Use(capacity units.Bytes) *MemoryUse {
	if m == (Memory{}) {
		return nil
	}
	return &MemoryUse{m.Parameters, m.Gradients, m.Optimizer, m.Activations, m.Total(), capacity}
}

func gigabytes(b units.Bytes) string { return fmt.Sprintf("%.1f", float64(b)/(1<<30)) }

// String returns a line for a person, in GB of 2^30 bytes, as the memory of GPUs is counted.
func (u *MemoryUse) String() string {
	s := fmt.Sprintf("%s GB of a GPU's memory: parameters %s, gradients %s, optimizer %s, activations %s "+
		"(estimated)", gigabytes(u.Total), gigabytes(u.Parameters), gigabytes(u.Gradients),
		gigabytes(u.Optimizer), gigabytes(u.Activations))
	if u.Capacity > 0 {
		s += fmt.Sprintf("; it has %s", gigabytes(u.Capacity))
	}
	return s
}

// Problem returns a message if the job does not fit; "" if it fits or the capacity or the use is unknown.
func (u *MemoryUse) Problem(gpu string) string {
	if u.Capacity <= 0 || u.Total <= u.Capacity {
		return ""
	}
	return fmt.Sprintf("the job does not fit: it needs about %s GB of each %s, which has %s (estimated); "+
		"divide it further (--tp, --pp, --fsdp 3), or recompute", gigabytes(u.Total), gpu,
		gigabytes(u.Capacity))
}
