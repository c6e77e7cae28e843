// Package compute computes the time of kernels on a GPU from classes of measured efficiency: matrix products
// by shape and precision, attention forward and backward, memory-bound kernels.
//
// A class is a file, like a machine: parameters with their source and an uncertainty. The H200's was fitted
// to measurements (testdata/measured/h200x1); others have published values, or the efficiencies of another
// class applied to their own data sheet.
//
// What it must not know: ranks, machines, formats of jobs.
package compute

import (
	"cmp"
	"math"

	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Class is a GPU as kernels find it. Rates are dense peaks.
type Class struct {
	Version int    `json:"simccl compute class"` // 1
	Name    string `json:"name"`
	// Like names the class whose parameters replace missing ones of this class.
	Like        string  `json:"like,omitempty"`
	Source      string  `json:"source"`
	Uncertainty float64 `json:"uncertainty"` // of an iteration's compute, a fraction
	SMs         int64   `json:"sms"`
	// Gap is the time between two kernels of a stream, in microseconds.
	Gap float64 `json:"gap_us"`
	// Kernel is the minimum time of a kernel in a CUDA graph, however little it moves, in microseconds.
	Kernel float64 `json:"kernel_us"`
	// Sustained is the fraction of the matrix rate that remains while the GPU is at its power limit; Power
	// is the data sheet's limit in watts, 0 unknown.
	Sustained float64            `json:"sustained"`
	Power     float64            `json:"power_w,omitempty"`
	Products  map[string]Product `json:"products"` // by precision: bf16, fp8, nvfp4, tf32
	Forward   Attention          `json:"attention_forward"`
	Backward  Attention          `json:"attention_backward"`
	// FlashAttention-2, where newer kernels were measured; zero: nothing is known.
	Flash2Forward  Attention `json:"flash2_forward,omitzero"`
	Flash2Backward Attention `json:"flash2_backward,omitzero"`
	Decode         Decode    `json:"decode"`
	Memory         Memory    `json:"memory"`
}

// Product is the rate of matrix products of one precision.
type Product struct {
	Peak       float64 `json:"peak_tflops"`
	Efficiency float64 `json:"efficiency"` // of the largest tiles
	// Depth is the fixed cost of a tile, expressed as additional elements of K.
	Depth float64 `json:"depth"`
	// Edge is the harmonic size of a tile at which half of the rate is left.
	Edge  float64 `json:"edge"`
	Start float64 `json:"start_us"`
	// Memory is the fraction of the memory bandwidth at which operands are read.
	Memory float64 `json:"memory"`
	// Cast is the number of bytes moved per operand element to convert it to this precision: read in 16 bits,
	// written with its scales.
	Cast float64 `json:"cast_bytes,omitempty"`
	// Grouped is the rate of several products at once, as of experts, as a fraction of one as large; 0: 1.
	Grouped float64 `json:"grouped,omitempty"`
}

// Attention is the rate of attention kernels.
type Attention struct {
	Peak       float64 `json:"peak_tflops"`
	Efficiency float64 `json:"efficiency"` // of heads of 128
	// Narrow is the efficiency of heads of 64, as a fraction of that.
	Narrow float64 `json:"narrow"`
	// Tokens is the length of a sequence at which half of the rate is reached.
	Tokens float64 `json:"tokens"`
	Start  float64 `json:"start_us"`
}

// Decode is the cost of attention in a decoding step.
type Decode struct {
	// Memory is the fraction of the memory's rate at which attention reads keys and values; Start is its
	// fixed cost, with the kernel that joins its parts.
	Memory float64 `json:"memory"`
	Start  float64 `json:"start_us"`
}

// Memory is the bandwidth that kernels reach in device memory.
type Memory struct {
	Peak      float64 `json:"peak_gbps"`
	Stream    float64 `json:"stream"` // element by element, a fraction of the peak
	Norm      float64 `json:"norm"`
	Optimizer float64 `json:"optimizer"`
}

// tiles are the sizes of output tiles that libraries of matrix products have.
var tiles = [][2]float64{{256, 128}, {128, 256}, {128, 128}, {64, 256}, {64, 128}, {128, 64}, {64, 64}}

// splits lists the numbers of parts into which K is divided (split-K) when there are few tiles.
var splits = []float64{1, 2, 3, 4, 8}

// product returns the time in microseconds of count products of m×k by k×n in one kernel, without Start.
func (c *Class) product(p *Product, m, n, k, count float64) float64 {
	best := math.Inf(1)
	perSM := p.Peak * p.Efficiency * 1e6 / float64(max(c.SMs, 1)) // operations a microsecond
	for _, t := range tiles {
		quality := t[0] * t[1] / (t[0] + t[1])
		quality = (1 + p.Edge/85.33) * quality / (quality + p.Edge) // 1 of the largest tile
		for _, s := range splits {
			blocks := math.Ceil(m/t[0]) * math.Ceil(n/t[1]) * count * s
			waves := math.Ceil(blocks / float64(max(c.SMs, 1)))
			one := 2 * t[0] * t[1] * (k/s + p.Depth*(1+0.5*(s-1))) / (perSM * quality)
			best = min(best, waves*one)
		}
	}
	return best
}

// width returns the bytes of an element of a precision, with its scales.
func width(precision workload.Precision) float64 {
	switch precision {
	case workload.FP8:
		return 1
	case workload.MXFP8:
		return 1 + 1.0/32
	case workload.NVFP4:
		return 0.5 + 1.0/16
	case workload.TF32:
		return 4
	}
	return 2
}

// Product returns the time of a matrix product: the larger of its compute time and its memory time.
func (c *Class) Product(s *workload.Shape, sustained bool) units.Time {
	p := c.of(s.Precision)
	m, n, k, count := float64(s.M), float64(s.N), float64(s.K), float64(max(s.Count, 1))
	us := c.product(p, m, n, k, count)
	if sustained {
		us /= c.Sustained
	}
	if count > 1 {
		us /= cmp.Or(p.Grouped, 1)
	}
	bytes := count * ((m*k+k*n)*width(s.Precision) + float64(cmp.Or(s.Sums, 2))*m*n)
	us = max(us, bytes/(c.Memory.Peak*p.Memory*1e3))
	if p.Cast > 0 && !s.Quantised {
		us += max(count*p.Cast*m*k/(c.Memory.Peak*c.Memory.Stream*1e3), c.Kernel)
	}
	return units.Time((us + p.Start) * 1e6)
}

// of returns the parameters of products in a precision, or in the next wider one that the GPU supports.
func (c *Class) of(precision workload.Precision) *Product {
	for {
		if p, ok := c.Products[precision.String()]; ok {
			return &p
		}
		if precision == workload.BF16 {
			return &Product{Peak: 1, Efficiency: 1, Memory: 1}
		}
		precision = precision.Wider()
	}
}

// Has reports whether the GPU has products of a precision.
func (c *Class) Has(precision workload.Precision) bool {
	_, ok := c.Products[precision.String()]
	return ok
}

// attend returns the time of an attention kernel with a number of operations.
func (c *Class) attend(a *Attention, s *workload.Shape, flops float64) units.Time {
	e := a.Efficiency
	if s.K < 128 {
		e *= 1 - (1-a.Narrow)*min(float64(128-s.K)/64, 1)
	}
	seq := float64(max(s.M, 1))
	rate := a.Peak * e * seq / (seq + a.Tokens) * 1e6
	blocks := math.Ceil(seq/128) * float64(max(s.Count, 1))
	fill := max(float64(c.SMs)/blocks, 1)
	return units.Time((flops/rate*fill + a.Start) * 1e6)
}

// Stream returns the time of elementwise kernels that read and write a number of bytes in total.
func (c *Class) Stream(bytes float64, kernels int) units.Time {
	us := bytes/(c.Memory.Peak*c.Memory.Stream*1e3) + float64(kernels)*c.Gap
	return units.Time(max(us, float64(kernels)*c.Kernel) * 1e6)
}

// decode returns the time of attention with one query token per sequence: the larger of the time to read keys
// and values and the compute time, plus the fixed cost Start.
func (c *Class) decode(w *workload.Work) units.Time {
	us := max(float64(w.Bytes-w.Extra)/(c.Memory.Peak*c.Decode.Memory*1e3),
		float64(w.FLOPs)/(c.Forward.Peak*c.Forward.Efficiency*1e6))
	return units.Time((us + c.Decode.Start) * 1e6)
}

// Time returns the time of a computation from its shape: the product or attention, its additional memory
// traffic, and the gaps between its kernels. It returns false for work without shape and bytes.
func (c *Class) Time(w *workload.Work) (units.Time, bool) {
	var t units.Time
	kernels := int(w.Kernels)
	switch w.Shape.Op {
	case workload.ProductShape:
		t = c.Product(&w.Shape, true)
	case workload.ForwardShape:
		t = c.attend(&c.Forward, &w.Shape, float64(w.FLOPs))
	case workload.DecodeShape:
		t = c.decode(w)
	case workload.BackwardShape:
		t = c.attend(&c.Backward, &w.Shape, float64(w.FLOPs))
	case workload.OptimizerShape:
		return units.Time((float64(w.Bytes)/(c.Memory.Peak*c.Memory.Optimizer*1e3) + c.Gap) * 1e6), true
	default:
		if w.Bytes <= 0 {
			return 0, false
		}
		return c.Stream(float64(w.Bytes), cmp.Or(kernels, 1)), true
	}
	return t + c.Stream(float64(w.Extra), kernels), true
}
