package gen

import (
	"math"

	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Sources of an operation's time.
const (
	fromRoofline = "roofline"
	fromClass    = "class"
	fromFile     = "file"
)

// product is a matrix product of m×k by k×n, with elements of size bytes: its operations
// and the bytes that it moves at least. Several of that shape are made at once where count is more than 1.
type product struct{ m, n, k, count float64 }

func (p product) times() float64 { return max(p.count, 1) }
func (p product) flops() float64 { return 2 * p.m * p.n * p.k * p.times() }
func (p product) bytes(size float64) float64 {
	return (p.m*p.k + p.k*p.n + p.m*p.n) * size * p.times()
}

// shapes are the dimensions of a rank's matrix products for one microbatch.
type shapes struct {
	tokens float64 // of a rank in the parts that are not sequence parallel
	routed float64 // tokens that a rank's experts see
	part   float64 // tokens in the sequence parallel parts
	h, qkv, attn, values,
	ffn, vocab, size float64
	heads float64 // of a rank
	up    float64 // matrices into the feed-forward network
	tp    float64
}

func (g *generator) shape() shapes {
	c := g.c
	tp := float64(c.TP)
	s := shapes{tokens: float64(c.tokens() / int64(c.CP)), h: float64(c.Hidden),
		size: float64(c.Type.Size()), up: float64(c.Matrices() - 1), tp: tp,
		heads: float64(c.Heads) / tp, ffn: float64(c.FFN) / tp, vocab: float64(c.vocabulary()) / tp}
	s.attn, s.values = s.heads*float64(c.Dim()), s.heads*float64(c.ValueSize())
	s.qkv = s.attn + 2*float64(c.kvHeads()*c.Dim())
	s.part = s.tokens
	if c.SequenceParallel {
		s.part /= tp
	}
	s.routed = s.part * float64(c.TopK) * c.Capacity
	return s
}

// kvHeads are the heads of keys and values of a rank: where there are more ranks than heads, one each.
func (c *Config) kvHeads() int64 { return max(c.KVHeads/int64(c.TP), 1) }

// vocabulary is the size that divides among tensor parallel ranks, as Megatron-LM pads it: to a multiple
// of 128 on each of them.
func (c *Config) vocabulary() int64 {
	tp := int64(c.TP)
	if c.Vocab%tp == 0 {
		return c.Vocab
	}
	each := 128 * tp
	return (c.Vocab + each - 1) / each * each
}

// kernel is a computation: a product or attention by its shape, bytes that are moved beside it by so many
// kernels.
type kernel struct {
	p       product
	extra   float64
	kernels int32
	shape   workload.Shape
	moved   float64 // bytes of p, 0: those of its operands
}

// operation is a computation by name. Matrix products take the longer of computing and
// moving; what is done element by element, extra bytes, comes on top.
func (g *generator) operation(name string, k kernel) int32 {
	if i, known := g.ops[name]; known {
		return i
	}
	flops, bytes := k.p.flops(), 0.0
	if flops > 0 {
		if bytes = k.moved; bytes == 0 {
			bytes = k.p.bytes(float64(g.c.Type.Size()))
		}
	}
	work := workload.Work{Name: name, FLOPs: clip(flops), Bytes: clip(bytes + k.extra)}
	if flops > 0 {
		work.Extra = clip(k.extra)
	}
	t, source := g.roof(k, flops, bytes), fromRoofline
	if class := g.c.Class; class != nil {
		work.Shape, work.Kernels, source = k.shape, k.kernels, fromClass
		t, _ = class.Time(&work)
	}
	if given, ok := g.c.Times[name]; ok {
		t, source = given, fromFile
	}
	g.p.Works = append(g.p.Works, work)
	g.times = append(g.times, min(t, workload.MaxTime/2))
	g.hosts = append(g.hosts, g.launching(k))
	i := int32(len(g.p.Works))
	g.ops[name] = i
	g.operations = append(g.operations, Operation{Name: name, FLOPs: clip(flops),
		Bytes: clip(bytes + k.extra), Us: t.Micros(), Source: source})
	return i
}

// roof is what a computation takes by the roofline.
func (g *generator) roof(k kernel, flops, bytes float64) units.Time {
	gpu := &g.c.GPU
	sec := max(flops/(gpu.FLOPS*gpu.Efficiency), bytes/(gpu.Memory*gpu.MemoryEfficiency)) +
		k.extra/(gpu.Memory*gpu.MemoryEfficiency)
	return units.Time(math.Round(min(sec*1e12, float64(workload.MaxTime)/2))) + gpu.Overhead
}

func clip(x float64) int64 { return int64(min(x, 1<<62)) }

// matrix is a matrix product of a layer, with what is done element by element beside it.
type matrix struct {
	name    string
	p       product
	extra   float64
	kernels int32
	// wide: it stays in 16 bits whatever the recipe of precision (NVIDIA, Transformer Engine's FP8
	// recipes: the router, the head and attention do).
	wide bool
}

// matrices are those of a layer, by name.
func (g *generator) matrices() map[string]matrix {
	s, c := g.shape(), g.c
	f, in := float64(c.ExpertSize()), float64(c.ExpertInput())
	mine := max(float64(c.Experts/max(c.EP, 1)), 1)
	each := s.routed / mine
	qk, latent := s.qkv+s.attn, float64(c.QRank+c.KVRank+c.RopeDim)
	shared := float64(c.SharedFFN) / s.tp
	query := product{s.tokens, s.attn, float64(c.QRank), 1}
	if c.QRank == 0 {
		query.k = s.h
	}
	norm := 4 * s.part * s.h * s.size
	out := map[string]matrix{}
	for _, m := range []matrix{
		{"qkv", product{s.tokens, s.qkv, s.h, 1}, norm + 2*s.tokens*(qk-s.attn)*s.size, 3, false},
		{"qkv_down", product{s.tokens, latent, s.h, 1}, norm + 2*s.tokens*latent*s.size, 3, false},
		{"q_up", query, 2 * s.tokens * s.attn * s.size, 1, false},
		{"kv_up", product{s.tokens, s.heads * float64(c.NopeDim+c.ValueDim), float64(c.KVRank), 1},
			2 * s.tokens * s.heads * float64(c.Dim()) * s.size, 1, false},
		{"proj", product{s.tokens, s.h, s.values, 1}, 0, 0, false},
		{"up", product{s.tokens, s.up * s.ffn, s.h, 1}, norm + (s.up+1)*s.tokens*s.ffn*s.size, 3, false},
		{"down", product{s.tokens, s.h, s.ffn, 1}, 0, 0, false},
		{"router", product{s.part, float64(c.Experts), s.h, 1}, (4+2*float64(c.TopK))*s.part*s.h*s.size +
			24*s.part*float64(c.Experts), 8, true},
		{"latent_down", product{s.part, in, s.h, 1}, 0, 0, false},
		{"latent_up", product{s.part, s.h, in, 1}, 0, 0, false},
		{"expert_up", product{each, s.up * f, in, mine},
			(s.up+1)*s.routed*f*s.size + 2*s.routed*in*s.size, 3, false},
		{"expert_down", product{each, in, f, mine}, 2 * s.routed * in * s.size, 2, false},
		{"shared_up", product{s.tokens, s.up * shared, s.h, 1}, (s.up + 1) * s.tokens * shared * s.size, 1,
			false},
		{"shared_down", product{s.tokens, s.h, shared, 1}, s.tokens * s.h * s.size, 1, false},
		{"ssm_in", product{s.tokens, float64(c.SSMInput()) / s.tp, s.h, 1}, norm +
			4*s.tokens*float64(c.SSMInput())/s.tp*s.size, 3, false},
		{"ssm_out", product{s.tokens, s.h, float64(c.Inner()) / s.tp, 1},
			4 * s.tokens * float64(c.Inner()) / s.tp * s.size, 2, false},
		{"mtp_join", product{s.part, s.h, 2 * s.h, 1}, 6 * s.part * s.h * s.size, 3, false},
		// with the loss in 32 bits
		{"head", product{s.tokens, s.vocab, s.h, 1}, 4 * s.tokens * s.vocab * 4, 4, true},
	} {
		out[m.name] = m
	}
	return out
}

// matrixOp is a pass of a matrix product: forward, or backward of its input or weight. What the first two
// bring to the precision, operands and gradients, the third one finds so.
func (g *generator) matrixOp(name string, k kind) int32 {
	m := g.mats[name]
	p, extra, kernels, quantised := m.p, m.extra, m.kernels, false
	switch k {
	case backward:
		name += "_backward_input"
		p.n, p.k, extra = p.k, p.n, 1.5*extra
	case weights:
		name += "_backward_weight"
		p.m, p.k, extra, kernels, quantised = p.k, p.m, 0, 0, true
	}
	precision, sums := g.c.Precision, int64(0)
	if k == weights && g.sums() {
		sums = 2 * int64(g.c.GradType.Size())
	}
	if m.wide {
		precision = workload.BF16
	}
	if g.c.Type.Size() > 2 {
		precision = workload.TF32
	}
	return g.operation(name, kernel{p: p, extra: extra, kernels: kernels,
		shape: workload.Shape{Op: workload.ProductShape, M: whole(p.m), N: whole(p.n), K: whole(p.k),
			Count: int64(p.times()), Precision: precision, Quantised: quantised, Sums: sums}})
}

// sums reports whether gradients of weights are added to those of the microbatches before, in their own type,
// by the product itself (Megatron-LM's gradient_accumulation_fusion); shards of ZeRO 2 and 3 are added when
// they are reduced.
func (g *generator) sums() bool { return g.whole > 1 && (g.c.FSDP < 2 || g.c.PP > 1) }

// whole is a dimension, of at least one.
func whole(x float64) int64 { return max(int64(math.Ceil(x)), 1) }

// attentionOp is attention of 1/parts of the keys: scores and values, half of them as
// later keys are masked; backward does five products for two (Dao, FlashAttention-2).
func (g *generator) attentionOp(of LayerKind, k kind, parts int) int32 {
	s, c := g.shape(), g.c
	name, times, op := "attention", 1.0, workload.ForwardShape
	if of.Windowed() {
		name = "window"
	}
	if k == backward {
		name, times, op = name+"_backward", 2.5, workload.BackwardShape
	}
	if parts > 1 {
		name += "_part"
	}
	keys := c.Context(of, c.Seq) / float64(parts)
	return g.operation(name, kernel{p: product{s.tokens, times * (s.attn + s.values), keys, 1},
		shape: workload.Shape{Op: op, M: c.Seq / int64(c.CP), N: whole(keys), K: c.Dim(),
			Count: whole(float64(c.MicroBatch) * s.heads)}})
}

// scanOp is what a state space layer computes beside its matrices (mamba_ssm's ssd kernels): the convolution
// reads and writes heads and groups, the states of chunks read heads and outputs read and write them; states
// of 32 bits are written, read and written by their scan, and read. A backward pass is two and a half times
// as much.
func (g *generator) scanOp(k kind) int32 {
	s, c := g.shape(), g.c
	name, times := "ssm_scan", 1.0
	if k == backward {
		name, times = "ssm_scan_backward", 2.5
	}
	in := float64(c.Inner()) / s.tp
	p := product{s.tokens, times * c.SSMProducts() / s.tp, 1, 1}
	return g.operation(name, kernel{p: p, extra: times * s.tokens *
		((5*in+4*float64(c.SSMGroups*c.SSMState)/s.tp)*s.size + 16*in*c.SSMStates()), kernels: 6,
		shape: workload.Shape{Op: workload.ForwardShape, M: c.Seq / int64(c.CP), N: 1, K: c.SSMHeadDim,
			Count: whole(float64(c.MicroBatch*c.SSMHeads) / s.tp)}})
}

// update is an optimizer's step over n parameters: Adam reads the gradient, and reads and writes two
// moments and a copy of 32 bits, and writes the parameter.
func (g *generator) update(name string, n int64) int32 {
	each := int64(3*g.c.Type.Size() + 16)
	if g.c.Class != nil {
		each = int64(g.c.Type.Size()+g.c.GradType.Size()) + 2*g.c.optimizerBytes()
	}
	return g.operation(name, kernel{extra: float64(n) * float64(each),
		shape: workload.Shape{Op: workload.OptimizerShape}})
}
