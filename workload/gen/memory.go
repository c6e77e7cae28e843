package gen

import (
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// optimizerBytes returns the optimizer's bytes of one parameter: Adam's two moments of 32 bits, and a master
// copy of 32 bits for a parameter of fewer (Rajbhandari et al., ZeRO, 2020, section 3.1: K = 12).
func (c *Config) optimizerBytes() int64 {
	if c.Type.Size() < 4 {
		return 12
	}
	return 8
}

// memory is what the fullest GPU holds, and its rank: an estimate, without the context of CUDA, the
// buffers of NCCL, workspaces, temporary tensors and what lies unused between others.
//
// Parameters, gradients and the optimizer are those of the rank, divided as ZeRO divides them
// (Rajbhandari et al., 2020, section 5). With stages 2 and 3 what is not reduced yet of one unit is
// whole; with stage 3 so are the parameters of the unit that is computed and of those gathered ahead
// (Zhao et al., PyTorch FSDP, 2023, section 3.2).
func (g *generator) memory() (most workload.Memory, rank int) {
	for pp := range g.c.PP {
		w := &writer{g: g, at: place{pp: pp}}
		for f := range numGroups {
			_, _, w.size[f] = g.index(f, w.at)
		}
		m := workload.Memory{}
		if g.c.Phase != Train {
			m = w.servedMemory()
		} else {
			m = w.states()
			m.Activations = units.Bytes(w.activations())
		}
		if m.Total() > most.Total() {
			most, rank = m, pp*g.c.DP*g.c.CP*g.c.TP
		}
	}
	return most, rank
}

// Memory is what the fullest GPU holds of the job of a Config, without making it. The error is an *Error.
func (c Config) Memory() (workload.Memory, error) {
	if err := c.check(); err != nil {
		return workload.Memory{}, err
	}
	if err := c.tensors(); err != nil {
		return workload.Memory{}, err
	}
	c.fit()
	return c.held(), nil
}

// held is the memory of a Config that is checked.
func (c *Config) held() workload.Memory {
	g := newGenerator(c, nil)
	g.passes()
	m, _ := g.memory()
	return m
}

// states are parameters, gradients and the optimizer of a rank.
func (w *writer) states() (m workload.Memory) {
	c := w.g.c
	var whole, part, unit int64 // parameters; of them the rank's; those of the largest unit
	var ahead []int64           // by unit
	for chunk := range c.Virtual {
		for _, u := range w.units(chunk) {
			whole += u.dense + u.experts
			part += share(u.dense, w.shards(data)) + share(u.experts, w.shards(expertData))
			unit = max(unit, u.dense+u.experts)
			ahead = append(ahead, u.dense+u.experts)
		}
	}
	param, grad := int64(c.Type.Size()), int64(c.GradType.Size())
	held, reduced := whole, whole
	if c.FSDP >= 2 && c.PP == 1 {
		reduced = min(part+unit, whole)
	}
	if c.FSDP == 3 && c.PP == 1 {
		held = min(part+longest(ahead, 1+c.Prefetch), whole)
	}
	return workload.Memory{Parameters: units.Bytes(held * param), Gradients: units.Bytes(reduced * grad),
		Optimizer: units.Bytes(part * c.optimizerBytes())}
}

// longest is the largest sum of n values that follow each other.
func longest(list []int64, n int) (most int64) {
	sum := int64(0)
	for i, x := range list {
		if sum += x; i >= n {
			sum -= list[i-n]
		}
		most = max(most, sum)
	}
	return most
}

// activations are the most bytes of activations that a rank holds at a time, in the order of its passes:
// those of a microbatch and stage from its forward pass until its backward pass, of weights where that
// is by itself.
func (w *writer) activations() int64 {
	g := w.g
	kept := make([]float64, g.c.Virtual) // of a microbatch, by stage of the rank
	head := make([]float64, g.c.Virtual) // of it the head's, which is through when layers begin
	beside := 0.0                        // gradients within a layer, and what of it is computed again
	for chunk := range kept {
		for _, u := range w.units(chunk) {
			kept[chunk] += g.kept(u)
			switch {
			case u.kind == 'h':
				head[chunk] += g.kept(u)
			case u.kind == 'l':
				beside = max(beside, g.inner(u.layer)+g.layerActivations(u.layer, 0)-g.kept(u))
			}
		}
	}
	now, most := 0.0, 0.0
	for _, a := range g.plan[w.at.pp] {
		switch {
		case a.kind == forward:
			now += kept[a.chunk]
			most = max(most, now)
		case a.kind == backward:
			most = max(most, now-head[a.chunk]+beside)
			if g.c.Schedule != ZeroBubble {
				now -= kept[a.chunk]
			}
		default:
			now -= kept[a.chunk]
		}
	}
	return clip(most)
}

// kept are the bytes that a unit keeps of a microbatch for its backward pass.
func (g *generator) kept(u unit) float64 {
	s := g.shape()
	switch u.kind {
	case 'e':
		return 0 // its output is the first layer's input
	// inputs of the last norm and of the head, logits of 32 bits (Korthikanti et al., section 4.3), and those
	// that the head has made, or their gradients, beside them while the loss is computed
	case 'h':
		return 2*s.part*s.h*s.size + (4+s.size)*s.tokens*s.vocab
	case 'j':
		return 4 * s.part * s.h * s.size // two inputs, before and after their norms
	}
	if g.c.Recompute {
		return s.part * s.h * s.size // its input (section 5)
	}
	return g.layerActivations(u.layer, g.c.Modules)
}

// inner are the bytes of the gradients that a layer's backward pass has at a time: of what lies before and
// after the activation function, the widest tensors.
func (g *generator) inner(of LayerKind) float64 {
	s := g.shape()
	wide := s.up + 1
	switch {
	case of.HasFFN():
		return s.tokens * wide * s.ffn * s.size
	case of.HasExperts():
		return s.routed * wide * float64(g.c.ExpertSize()) * s.size
	}
	return 0
}

// operand is the bytes of an element that a matrix product keeps of its input: those of its precision
// (Transformer Engine keeps the cast tensor, in the order that the gradient of weights needs).
func (g *generator) operand() float64 {
	switch g.c.Precision {
	case workload.FP8:
		return 1
	case workload.MXFP8:
		return 1 + 1.0/32
	case workload.NVFP4:
		return 0.5 + 1.0/16
	}
	return float64(g.c.Type.Size())
}

// layerActivations are the bytes of a layer's activations: Korthikanti et al., Reducing Activation
// Recomputation, 2022, section 4.1 to 4.2, tensor by tensor, which is s·b·h·(10 + 24/t) bytes and
// s·b·h·34/t with sequence parallelism for 16 bits, four hidden sizes of a feed-forward network and as
// many heads of keys as of queries; less 2 for masks of dropout, which is not made. Scores of attention,
// 5·a·s²·b, are not kept, as by flash attention (Dao et al., 2022, section 3.1), but their sums are. What is
// computed again is not kept but for its input.
func (g *generator) layerActivations(of LayerKind, again Modules) (bytes float64) {
	s, c, in := g.shape(), g.c, g.operand()
	if again.has(Operators) {
		bytes = s.part*s.h*s.size + s.tokens*s.values*s.size + 4*s.tokens*s.heads
		if c.Precision == workload.BF16 { // queries, values and the first matrix of the network
			bytes += s.tokens * ((s.attn+s.qkv)/2 + s.ffn) * s.size
		}
		return bytes
	}
	norm := s.part * s.h * (s.size + in) // inputs of the norm and of the first product
	if again.has(Norms) {
		norm = s.part * s.h * s.size
	}
	if of == ssm {
		inner := float64(c.Inner()) / s.tp
		return norm + s.tokens*(2*float64(c.SSMInput())/s.tp*s.size+inner*(s.size+in))
	}
	if of.Attention() {
		bytes += norm + s.tokens*s.values*in + 4*s.tokens*s.heads // sums of 32 bits
		if !again.has(LatentUp) || c.KVRank == 0 {
			bytes += s.tokens * s.qkv * s.size
		}
		if in < s.size {
			bytes += s.tokens * s.values * s.size // attention's output, beside what the product has of it
		}
		if c.KVRank > 0 {
			bytes += s.tokens * (float64(c.QRank+c.KVRank)*(s.size+in) + float64(c.RopeDim)*s.size)
		}
	}
	switch {
	case of.HasFFN() && again.has(FeedForward):
		bytes += norm
	case of.HasFFN():
		bytes += norm + s.tokens*s.ffn*(s.up*s.size+in) // before and after the activation function
	case of.HasExperts() && again.has(MoE):
		bytes += norm
	case of.HasExperts():
		x, f := float64(c.ExpertInput()), float64(c.ExpertSize())
		bytes += norm + 4*s.part*float64(c.Experts) // of the router
		after := f * in                             // of the activation function, the second product's input
		if again.has(ExpertActivation) {
			after = 0
		}
		if in < s.size {
			bytes += s.routed * (x*in + x*s.size + f*s.up*s.size + after)
		} else {
			bytes += s.routed * ((2*x+s.up*f)*s.size + after) // tokens of experts, before and after
		}
		if !again.has(SharedExpert) {
			bytes += s.tokens * float64(c.SharedFFN) / s.tp * (s.up*s.size + in)
		}
		bytes += 2 * s.part * float64(c.Latent) * s.size
	}
	return bytes
}
