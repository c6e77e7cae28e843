package transform

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/simccl/simccl/topo/machine/datasheet"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/compute"
)

// products are names of kernels that compute matrix products or attention, which the
// rate of the tensor cores limits; others are taken to be limited by memory.
var products = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)gemm|nvjet|cutlass|xmma|cublas|flash|fmha|attention|conv|wgrad|dgrad|mma`)
})

// OnGPU describes how computations were scaled to another GPU.
type OnGPU struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Matrix and Memory are the factors on times that these limit; MatrixShare is the
	// share of computing time that the first was taken for.
	Matrix      float64 `json:"matrix"`
	Memory      float64 `json:"memory"`
	MatrixShare float64 `json:"matrixShare"`
	// Factor is the ratio of all computing time after and before.
	Factor float64 `json:"factor"`

	old, now *compute.Class // where times are by a class
	makers   string         // whose data sheets they are: "NVIDIA's"
}

// String describes the scaling, and that it is an estimate.
func (s *OnGPU) String() string {
	if s.now != nil {
		return fmt.Sprintf("computing on %s instead of %s: %.2f times as long by the classes of both, an "+
			"estimate, ±%.0f %% (%s)", s.To, s.From, s.Factor, 100*s.now.Uncertainty, s.now.Source)
	}
	return fmt.Sprintf("computing on %s instead of %s is an estimate: %.2f times as long; %.0f %% of its "+
		"time by the peak of matrix products (%.2f), the rest by the rate of memory (%.2f), of %s data "+
		"sheets", s.To, s.From, s.Factor, 100*s.MatrixShare, s.Matrix, s.Memory, s.makers)
}

// ToGPU converts the compute times of a program to another GPU. A computation with known operations and bytes
// is scaled by its roofline; others by their kind, recognised by name: matrix products by the tensor cores'
// peak, all else by memory bandwidth. A computation without a name counts as a matrix product.
func ToGPU(p *workload.Program, from, to string) (*workload.Program, *OnGPU, error) {
	known := "write one of " + strings.Join(datasheet.Names(), ", ")
	b, ok := datasheet.Find(to)
	if !ok {
		return nil, nil, &Error{Problem: fmt.Sprintf("GPU %q is not known", to), Hint: known}
	}
	a, ok := datasheet.Find(from)
	switch {
	case from == "":
		return nil, nil, &Error{Problem: "the job does not say which GPU its times are of",
			Hint: "write both, as A100:H100"}
	case !ok:
		return nil, nil, &Error{Problem: fmt.Sprintf("GPU %q is not known", from), Hint: known}
	}
	if p.GPU.Name != "" {
		if of, ok := datasheet.Find(p.GPU.Name); !ok || of.Name != a.Name {
			return nil, nil,
				&Error{Problem: fmt.Sprintf("the times of the job are of %s, not of %s", p.GPU.Name,
					a.Name), Hint: "leave the first one out"}
		}
	}
	s := &OnGPU{From: a.Name, To: b.Name, makers: datasheet.Makers(a, b),
		Matrix: peak(&p.GPU, a) / peak(&p.GPU, b),
		Memory: a.Memory / b.Memory}
	if p.GPU.Class != "" {
		s.old, _ = compute.Find(a.Name)
		s.now, _ = compute.Find(b.Name)
	}
	q := *p
	if q.GPU.Name != "" {
		q.GPU.Name = b.Name
	}
	q.Lists = slices.Clone(p.Lists)
	uses := make([]float64, len(p.Lists))
	for _, i := range p.Of {
		uses[i]++
	}
	var matrix, before, after float64
	for i := range q.Lists {
		q.Lists[i].Steps = slices.Clone(p.Lists[i].Steps)
		for k := range q.Lists[i].Steps {
			x := &q.Lists[i].Steps[k]
			if x.Kind != workload.Compute || workload.OnHost(x.Stream) || p.Communicates(x) {
				continue
			}
			f, product := s.factor(p, x, a, b)
			if product {
				matrix += float64(x.Time) * uses[i]
			}
			before += float64(x.Time) * uses[i]
			x.Time = min(units.Time(float64(x.Time)*f), workload.MaxTime)
			after += float64(x.Time) * uses[i]
		}
	}
	s.Factor = 1
	if before > 0 {
		s.MatrixShare, s.Factor = matrix/before, after/before
	}
	return &q, s, nil
}

// peak returns the matrix rate in TFLOP/s that limits the job's products: TF32's for element types of more
// than 16 bits, else BF16's.
func peak(made *workload.GPU, g datasheet.GPU) float64 {
	if made.Efficiency > 0 && made.Type.Size() > 2 {
		return g.Single
	}
	return g.Matrix
}

// roof returns the roofline time of a computation on a GPU in microseconds, with the efficiencies that the
// job was generated with, else at the peaks: the larger of the product's compute and memory time, then the
// additional elementwise traffic. product reports whether the matrix product is the limit.
func roof(made *workload.GPU, w *workload.Work, g datasheet.GPU) (us float64, product bool) {
	e, m, overhead := 1.0, 1.0, 0.0
	if made.Efficiency > 0 {
		e, m, overhead = made.Efficiency, made.MemoryEfficiency, made.Overhead.Micros()
	}
	extra := min(w.Extra, w.Bytes)
	flops, bytes := float64(w.FLOPs)/(peak(made, g)*e)/1e6, float64(w.Bytes-extra)/(g.Memory*m)/1e3
	return max(flops, bytes) + float64(extra)/(g.Memory*m)/1e3 + overhead, flops >= bytes
}

// factor is by how much longer a step takes, and whether matrix products limit it on
// the first GPU.
func (s *OnGPU) factor(p *workload.Program, x *workload.Step, a, b datasheet.GPU) (float64, bool) {
	if x.Work == 0 {
		return s.Matrix, true
	}
	w := &p.Works[x.Work-1]
	if s.old != nil && s.now != nil {
		if old, ok := s.old.Time(w); ok && old > 0 {
			now, _ := s.now.Time(w)
			return float64(now) / float64(old), w.FLOPs > 0
		}
	}
	if w.FLOPs > 0 && w.Bytes > 0 {
		old, product := roof(&p.GPU, w, a)
		now, _ := roof(&p.GPU, w, b)
		return now / old, product
	}
	if made := &p.GPU; made.Efficiency > 0 && w.Bytes > 0 {
		old, _ := roof(made, w, a)
		now, _ := roof(made, w, b)
		return now / old, false
	}
	if product := w.FLOPs > 0 || w.Bytes == 0 && (w.Name == "" || products().MatchString(w.Name)); product {
		return s.Matrix, true
	}
	return s.Memory, false
}
