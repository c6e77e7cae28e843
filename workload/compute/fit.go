package compute

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/topo/machine/datasheet"
	"github.com/simccl/simccl/workload"
)

// Row is a line of a measurement: a kernel, what it computes, and its time in a CUDA graph.
type Row struct {
	// machine, gemm, attn_fwd, attn_bwd+fwd, rms, swiglu, adam, decode; others are skipped
	Kind  string `json:"kind"`
	GPU   string `json:"gpu"`
	SMs   int64  `json:"sm"`
	Torch string `json:"torch"`
	Date  string `json:"date"`

	M     int64  `json:"m"`
	N     int64  `json:"n"`
	K     int64  `json:"k"`
	Dtype string `json:"dtype"`

	B       int64 `json:"b"`
	Heads   int64 `json:"heads"`
	Seq     int64 `json:"seq"`
	HeadDim int64 `json:"head_dim"`

	Rows     int64   `json:"rows"`
	Cols     int64   `json:"cols"`
	Elements int64   `json:"elements"`
	Us       float64 `json:"us"`

	// Of kind decode: a layer of D values with H heads, KV of keys and values, and a feed-forward network of
	// FF, on one of TP ranks, for Batch requests of Context tokens.
	D       int64   `json:"d"`
	H       int64   `json:"h"`
	KV      int64   `json:"kv"`
	FF      int64   `json:"ff"`
	Gated   *bool   `json:"gated"` // nil: it is
	Batch   int64   `json:"batch"`
	Context int64   `json:"context"`
	TP      int64   `json:"tp"`
	LayerUs float64 `json:"graph_us_per_layer"`
}

// MaxRows is the largest accepted number of rows of a measurement.
const MaxRows = 1 << 20

// Rows reads a measurement, a JSON object a line; lines that are none, as a script prints them, are
// passed over.
func Rows(data []byte, file string) (list []Row, err error) {
	for n, line := range bytes.Split(data, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' {
			continue
		}
		var r Row
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fail.At(file, n+1, 1, strings.TrimPrefix(err.Error(), "json: "),
				"write what the script of calibrate compute prints")
		}
		if list = append(list, r); len(list) > MaxRows {
			return nil, fail.At(file, n+1, 1, fmt.Sprintf("more than %d lines", MaxRows), "write fewer")
		}
	}
	return list, nil
}

// work returns the Work of the kernel that a row measures; false for rows of other kinds.
func (r *Row) work() (w workload.Work, ok bool) {
	switch r.Kind {
	case "gemm":
		p := workload.BF16
		if strings.HasPrefix(r.Dtype, "float8") {
			p = workload.FP8
		}
		w.Shape = workload.Shape{Op: workload.ProductShape, M: r.M, N: r.N, K: r.K, Count: 1, Precision: p,
			Quantised: true}
		return w, r.Us > 0 && r.M > 0 && r.N > 0 && r.K > 0
	case "attn_fwd", "attn_bwd+fwd":
		w.Shape = workload.Shape{Op: workload.ForwardShape, M: r.Seq, N: r.Seq, K: r.HeadDim,
			Count: r.B * r.Heads}
		w.FLOPs = 2 * r.B * r.Heads * r.Seq * r.Seq * r.HeadDim
		if r.Kind != "attn_fwd" {
			w.Shape.Op = workload.BackwardShape
			w.FLOPs = w.FLOPs / 2 * 5
		}
		return w, r.Us > 0 && r.Seq > 0 && r.HeadDim > 0 && r.B > 0 && r.Heads > 0
	}
	return w, false
}

// bytes returns the memory traffic of a memory-bound kernel, with 16-bit elements: a norm reads and writes
// its input, an activation function in two kernels moves five tensors, Adam reads four tensors and writes
// three.
func (r *Row) bytes() float64 {
	switch r.Kind {
	case "rms":
		return 4 * float64(r.Rows*r.Cols)
	case "swiglu":
		return 10 * float64(r.Rows*r.Cols)
	case "adam":
		return 14 * float64(r.Elements)
	}
	return 0
}

// layer returns the computations of a decoder layer that generates one token for each request; nil for rows
// of other kinds. Besides products and attention PyTorch launches six kernels: norms, an activation function
// in two parts, sums.
func (r *Row) layer() []workload.Work {
	if r.Kind != "decode" || min(r.D, r.H, r.KV, r.FF, r.Batch, r.Context, r.TP) < 1 || r.LayerUs <= 0 {
		return nil
	}
	heads, kv, ff, dim, in := max(r.H/r.TP, 1), max(r.KV/r.TP, 1), r.FF/r.TP, r.D/r.H, int64(2)
	if r.Gated != nil && !*r.Gated {
		in = 1
	}
	out := []workload.Work{
		{Shape: workload.Shape{Op: workload.DecodeShape}, Bytes: 4 * r.Batch * kv * r.Context * dim,
			FLOPs: 4 * r.Batch * heads * r.Context * dim},
		{Bytes: 2 * r.Batch * (6*r.D + (2*in+1)*ff), Kernels: 6}}
	for _, nk := range [][2]int64{{(heads + 2*kv) * dim, r.D}, {r.D, heads * dim}, {in * ff, r.D},
		{r.D, ff}} {
		out = append(out, workload.Work{Shape: workload.Shape{Op: workload.ProductShape, M: r.Batch, N: nk[0],
			K: nk[1], Count: 1, Quantised: true}})
	}
	return out
}

// decoding fits the parameters of decoding: the minimum time of a kernel, and memory efficiency and fixed
// cost of attention.
func (c *Class) decoding(rows []Row) {
	c.Kernel, c.Decode = 2.5, Decode{Memory: 0.9, Start: 10}
	loss := func() float64 {
		sum := 0.0
		for i := range rows {
			works, us := rows[i].layer(), 0.0
			for k := range works {
				t, _ := c.Time(&works[k])
				us += t.Micros()
			}
			if works != nil {
				sum += math.Abs(math.Log(us / rows[i].LayerUs))
			}
		}
		return sum
	}
	if loss() > 0 {
		descend([]*float64{&c.Kernel, &c.Decode.Memory, &c.Decode.Start}, []float64{100, 1, 200}, loss)
	}
}

// long is the number of operations from which a GPU that repeats a kernel is at its limit of power.
const long = 1e12

// Fit returns the class that fits a measurement best. Each group of parameters is fitted separately, by the
// mean of the relative errors. Long products determine Sustained, the rate that lasts.
func Fit(rows []Row, source string) (*Class, error) {
	c := &Class{Version: 1, Source: source, Uncertainty: 0.1, Gap: 1, Sustained: 1}
	for i := range rows {
		if rows[i].Kind == "machine" {
			c.Name, c.SMs = rows[i].GPU, rows[i].SMs
		}
	}
	g, ok := datasheet.Find(c.Name)
	if !ok || c.SMs <= 0 {
		return nil, fmt.Errorf("the measurement does not say of which GPU it is: no line "+
			`{"kind": "machine", "gpu": NAME, "sm": N} of a known GPU, but %q`, c.Name)
	}
	c.Name, c.Memory.Peak = strings.ToLower(g.Name), g.Memory
	c.memory(rows)
	c.Products = map[string]Product{}
	for _, p := range []workload.Precision{workload.BF16, workload.FP8} {
		peak := g.Matrix
		if p == workload.FP8 {
			peak *= 2
		}
		c.products(rows, p, peak)
	}
	if len(c.Products) == 0 {
		return nil, fmt.Errorf("the measurement has no matrix products, lines of kind gemm")
	}
	c.attention(rows, g.Matrix)
	c.decoding(rows)
	return c, nil
}

// products fits the parameters of a precision's products, and for bf16 Sustained.
func (c *Class) products(rows []Row, precision workload.Precision, peak float64) {
	var works []workload.Work
	var us []float64
	for i := range rows {
		if w, ok := rows[i].work(); ok && w.Shape.Op == workload.ProductShape &&
			w.Shape.Precision == precision {
			works, us = append(works, w), append(us, rows[i].Us)
		}
	}
	if len(works) == 0 {
		return
	}
	p := Product{Peak: peak, Efficiency: 0.8, Depth: 200, Edge: 20, Start: 3, Memory: 0.9}
	at := func(i int) float64 {
		c.Products[precision.String()] = p
		return c.Product(&works[i].Shape, false).Micros()
	}
	loss := func(pick func(i int) bool) float64 {
		sum, n := 0.0, 0.0
		for i := range works {
			if pick(i) {
				weight := 1.0
				if us[i] < 20 {
					weight = 0.3 // short ones decide little
				}
				sum, n = sum+weight*min(math.Abs(math.Log(at(i)/us[i])), 1), n+weight
			}
		}
		return sum / max(n, 1)
	}
	isLong := func(i int) bool {
		s := &works[i].Shape
		return 2*float64(s.M)*float64(s.N)*float64(s.K) > long
	}
	descend([]*float64{&p.Efficiency, &p.Depth, &p.Edge, &p.Start, &p.Memory}, []float64{1, 5000, 500, 50, 1},
		func() float64 { return loss(func(i int) bool { return !isLong(i) }) })
	c.Products[precision.String()] = p
	if precision != workload.BF16 {
		return
	}
	sum, n := 0.0, 0.0
	for i := range works {
		if isLong(i) {
			sum, n = sum+math.Log(us[i]/at(i)), n+1
		}
	}
	if n > 0 {
		c.Sustained = rounded(min(math.Exp(-sum/n), 1))
	}
}

// attention fits both passes; a measured backward pass has its forward pass before it.
func (c *Class) attention(rows []Row, peak float64) {
	for _, op := range []workload.ShapeOp{workload.ForwardShape, workload.BackwardShape} {
		a := &c.Forward
		if op == workload.BackwardShape {
			a = &c.Backward
		}
		*a = Attention{Peak: peak, Efficiency: 0.6, Narrow: 0.75, Tokens: 400, Start: 8}
		var works []workload.Work
		var us []float64
		for i := range rows {
			w, ok := rows[i].work()
			if !ok || w.Shape.Op != op {
				continue
			}
			t := rows[i].Us
			if op == workload.BackwardShape {
				t -= c.attend(&c.Forward, &w.Shape, float64(w.FLOPs)/2.5).Micros()
			}
			if t > 0 {
				works, us = append(works, w), append(us, t)
			}
		}
		if len(works) == 0 {
			continue
		}
		descend([]*float64{&a.Efficiency, &a.Narrow, &a.Tokens, &a.Start}, []float64{1, 1, 1e4, 200},
			func() float64 {
				sum := 0.0
				for i := range works {
					t := c.attend(a, &works[i].Shape, float64(works[i].FLOPs)).Micros()
					sum += min(math.Abs(math.Log(t/us[i])), 1)
				}
				return sum / float64(len(works))
			})
	}
}

// memory fits the efficiencies of memory-bound kernels.
func (c *Class) memory(rows []Row) {
	for _, x := range []struct {
		kind string
		to   *float64
	}{{"rms", &c.Memory.Norm}, {"swiglu", &c.Memory.Stream}, {"adam", &c.Memory.Optimizer}} {
		kind, to := x.kind, x.to
		gap := 3.0
		var list []*Row
		for i := range rows {
			if rows[i].Kind == kind && rows[i].Us > 0 && rows[i].bytes() > 0 {
				list = append(list, &rows[i])
			}
		}
		if *to = 0.8; len(list) == 0 {
			continue
		}
		descend([]*float64{to, &gap}, []float64{1, 100}, func() float64 {
			sum := 0.0
			for _, r := range list {
				sum += math.Abs(math.Log((r.bytes()/(c.Memory.Peak**to*1e3) + gap) / r.Us))
			}
			return sum / float64(len(list))
		})
	}
}

// descend minimises loss by coordinate descent: it multiplies or divides one parameter after the other by a
// factor, and repeats with finer factors.
func descend(x []*float64, most []float64, loss func() float64) {
	best := loss()
	for _, factor := range []float64{1.5, 1.2, 1.08, 1.03, 1.01} {
		for range 6 {
			before := best
			for i, p := range x {
				for _, f := range []float64{factor, 1 / factor} {
					for {
						old := *p
						if *p = min(old*f, most[i]); *p == old {
							break
						}
						if l := loss(); l < best {
							best = l
							continue
						}
						*p = old
						break
					}
				}
			}
			if before-best < 1e-5 {
				break
			}
		}
	}
	for _, p := range x {
		*p = rounded(*p)
	}
}

// rounded returns a number to three digits, as a file has it.
func rounded(x float64) float64 {
	if x == 0 {
		return 0
	}
	scale := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}

// Residual is the mean relative error of a class for kernels of a kind that take at least 20 µs.
type Residual struct {
	Kind    string  `json:"kind"`
	Kernels int     `json:"kernels"`
	Mean    float64 `json:"mean"`
}

// Residuals returns the errors of a class against a measurement, by kind of kernel.
func (c *Class) Residuals(rows []Row) (out []Residual) {
	for i := range rows {
		r := &rows[i]
		w, ok := r.work()
		if !ok || r.Us < 20 {
			continue
		}
		kind, us := r.Kind, 0.0
		switch w.Shape.Op {
		case workload.ProductShape:
			kind += " " + w.Shape.Precision.String()
			lasts := 2*float64(r.M)*float64(r.N)*float64(r.K) > long
			us = c.Product(&w.Shape, lasts).Micros()
		case workload.BackwardShape:
			us = c.attend(&c.Forward, &w.Shape, float64(w.FLOPs)/2.5).Micros() +
				c.attend(&c.Backward, &w.Shape, float64(w.FLOPs)).Micros()
		default:
			us = c.attend(&c.Forward, &w.Shape, float64(w.FLOPs)).Micros()
		}
		at := slices.IndexFunc(out, func(x Residual) bool { return x.Kind == kind })
		if at < 0 {
			at = len(out)
			out = append(out, Residual{Kind: kind})
		}
		x := &out[at]
		x.Mean = (x.Mean*float64(x.Kernels) + math.Abs(us/r.Us-1)) / float64(x.Kernels+1)
		x.Kernels++
	}
	slices.SortFunc(out, func(a, b Residual) int { return strings.Compare(a.Kind, b.Kind) })
	return out
}
