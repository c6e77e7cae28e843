package gen

import (
	"math"

	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Sources of an operation's time.
const (
	fromRoofline = "roofline"
	fromFile     = "file"
)

// product is a matrix product of m×k by k×n, with elements of size bytes: its operations
// and the bytes that it moves at least.
type product struct{ m, n, k float64 }

func (p product) flops() float64             { return 2 * p.m * p.n * p.k }
func (p product) bytes(size float64) float64 { return (p.m*p.k + p.k*p.n + p.m*p.n) * size }

// shapes are the dimensions of a rank's matrix products for one microbatch.
type shapes struct {
	tokens float64 // of a rank in the parts that are not sequence parallel
	routed float64 // tokens that a rank's experts see
	part   float64 // tokens in the sequence parallel parts
	h, qkv, attn, ffn,
	vocab, size float64
	context float64 // keys that a query sees on average
	up      float64 // matrices into the feed-forward network
}

func (g *generator) shape() shapes {
	c := g.c
	tp, head := float64(c.TP), float64(c.Hidden/c.Heads)
	s := shapes{tokens: float64(c.MicroBatch * c.Seq / int64(c.CP)), h: float64(c.Hidden),
		size: float64(c.Type.Size()), up: 1,
		qkv: (float64(c.Hidden) + 2*float64(c.KVHeads)*head) / tp, attn: float64(c.Hidden) / tp,
		ffn: float64(c.FFN) / tp, vocab: float64(c.Vocab) / tp,
		context: float64(c.Seq) / 2}
	s.part = s.tokens
	if c.SequenceParallel {
		s.part /= tp
	}
	if c.Gated {
		s.up = 2
	}
	s.routed = s.part * float64(c.TopK) * c.Capacity
	return s
}

// operation is a computation by name. Matrix products take the longer of computing and
// moving; what is done element by element, extra bytes, comes on top.
func (g *generator) operation(name string, p product, extra float64) int32 {
	if i, known := g.ops[name]; known {
		return i
	}
	gpu := &g.c.GPU
	s := float64(g.c.Type.Size())
	flops, bytes := p.flops(), 0.0
	if flops > 0 {
		bytes = p.bytes(s)
	}
	sec := max(flops/(gpu.FLOPS*gpu.Efficiency), bytes/(gpu.Memory*gpu.MemoryEfficiency)) +
		extra/(gpu.Memory*gpu.MemoryEfficiency)
	t := units.Time(math.Round(min(sec*1e12, float64(workload.MaxTime)/2))) + gpu.Overhead
	source := fromRoofline
	if given, ok := g.c.Times[name]; ok {
		t, source = given, fromFile
	}
	work := workload.Work{Name: name, FLOPs: clip(flops), Bytes: clip(bytes + extra)}
	if flops > 0 {
		work.Extra = clip(extra)
	}
	g.p.Works = append(g.p.Works, work)
	g.times = append(g.times, t)
	i := int32(len(g.p.Works))
	g.ops[name] = i
	g.operations = append(g.operations, Operation{Name: name, FLOPs: clip(flops), Bytes: clip(bytes + extra),
		Us: t.Micros(), Source: source})
	return i
}

func clip(x float64) int64 { return int64(min(x, 1<<62)) }

// matrix is a matrix product of a layer, with what is done element by element beside it.
type matrix struct {
	name  string
	p     product
	extra float64
}

// matrices are those of a layer, by name.
func (g *generator) matrices() map[string]matrix {
	s := g.shape()
	out := map[string]matrix{}
	for _, m := range []matrix{
		{"qkv", product{s.tokens, s.qkv, s.h}, 4 * s.part * s.h * s.size}, // with norm and residual
		{"proj", product{s.tokens, s.h, s.attn}, 0},
		{"up", product{s.tokens, s.up * s.ffn, s.h}, 4*s.part*s.h*s.size + (s.up+1)*s.tokens*s.ffn*s.size},
		{"down", product{s.tokens, s.h, s.ffn}, 0},
		{"router", product{s.part, float64(g.c.Experts), s.h}, (4 + 2*float64(g.c.TopK)) * s.part * s.h *
			s.size},
		{"expert_up", product{s.routed, s.up * float64(g.c.FFN), s.h},
			(s.up + 1) * s.routed * float64(g.c.FFN) * s.size},
		{"expert_down", product{s.routed, s.h, float64(g.c.FFN)}, 0},
		{"head", product{s.tokens, s.vocab, s.h}, 4 * s.tokens * s.vocab * 4}, // with the loss in 32 bits
	} {
		out[m.name] = m
	}
	return out
}

// matrixOp is a pass of a matrix product: forward, or backward of its input or weight.
func (g *generator) matrixOp(name string, k kind) int32 {
	m := g.mats[name]
	switch k {
	case backward:
		return g.operation(name+"_backward_input", product{m.p.m, m.p.k, m.p.n}, 1.5*m.extra)
	case weights:
		return g.operation(name+"_backward_weight", product{m.p.k, m.p.n, m.p.m}, 0)
	}
	return g.operation(name, m.p, m.extra)
}

// attentionOp is attention of 1/parts of the keys: scores and values, half of them as
// later keys are masked; backward does five products for two (Dao, FlashAttention-2).
func (g *generator) attentionOp(k kind, parts int) int32 {
	s := g.shape()
	name, times := "attention", 2.0
	if k == backward {
		name, times = "attention_backward", 5
	}
	if parts > 1 {
		name += "_part"
	}
	return g.operation(name, product{s.tokens, times * s.attn, s.context / float64(parts)}, 0)
}

// layerMatrices are the names of a layer's matrix products in order.
func (g *generator) layerMatrices() []string {
	if g.c.Experts > 0 {
		return []string{"qkv", "proj", "router", "expert_up", "expert_down"}
	}
	return []string{"qkv", "proj", "up", "down"}
}
