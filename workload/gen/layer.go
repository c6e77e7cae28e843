package gen

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/workload"
)

// unit is what a stage is made of: the embedding, a layer, or the head. FSDP gathers
// and reduces unit by unit.
type unit struct {
	kind           byte  // 'e', 'l', 'h'
	dense, experts int64 // parameters of a rank, apart from FSDP
}

// units are those of a stage, in forward order.
func (w *writer) units(chunk int) (out []unit) {
	c := w.g.c
	first, last := w.stageEnds(chunk)
	if first {
		out = append(out, unit{kind: 'e', dense: c.Vocab * c.Hidden / int64(c.TP)})
	}
	dense, experts := c.layerParams()
	for range c.Layers / int64(c.PP*c.Virtual) {
		out = append(out, unit{'l', dense, experts})
	}
	if last {
		head := c.Vocab * c.Hidden / int64(c.TP)
		if c.Tied && first {
			head = 0 // the embedding's
		}
		out = append(out, unit{kind: 'h', dense: head + c.Hidden})
	}
	return out
}

// layerParams are the parameters of a layer on a rank: norms, attention, and the
// feed-forward network or router and experts.
func (c *Config) layerParams() (dense, experts int64) {
	tp := int64(c.TP)
	matrices := int64(2)
	if c.Gated {
		matrices = 3
	}
	dense = 2*c.Hidden + c.Hidden*(c.Hidden+2*c.KVHeads*(c.Hidden/c.Heads))/tp + c.Hidden*c.Hidden/tp
	if c.Experts == 0 {
		return dense + matrices*c.Hidden*c.FFN/tp, 0
	}
	return dense + c.Hidden*int64(c.Experts), int64(c.Experts/c.EP) * matrices * c.Hidden * c.FFN
}

// allParams are the parameters of the model.
func (g *generator) allParams() int64 {
	whole := *g.c
	whole.TP, whole.EP = 1, 1
	dense, experts := whole.layerParams()
	ends := int64(2)
	if g.c.Tied {
		ends = 1
	}
	return whole.Layers*(dense+experts) + ends*whole.Vocab*whole.Hidden + whole.Hidden
}

// activation is the elements of a tensor parallel rank's input of a layer: all tokens.
func (w *writer) activation() int64 { return int64(w.g.shape().tokens) * w.g.c.Hidden }

// enter gathers the input of a tensor parallel part; leave sums its output. Without
// sequence parallelism the input is there and the sum is an all_reduce.
func (w *writer) enter(what string) {
	if w.g.c.SequenceParallel {
		w.blocking(tensor, what, coll.AllGather, w.message())
	}
}

func (w *writer) leave(what string) {
	if w.g.c.SequenceParallel {
		w.blocking(tensor, what, coll.ReduceScatter, w.message())
	} else {
		w.blocking(tensor, what, coll.AllReduce, w.activation())
	}
}

func (w *writer) matrix(name string, k kind) { w.compute(w.g.matrixOp(name, k)) }

// forward is a pass over a stage.
func (w *writer) forward(chunk int) {
	for i, u := range w.units(chunk) {
		w.fully.before(i)
		switch u.kind {
		case 'e':
			s := w.g.shape()
			w.compute(w.g.operation("embedding", product{}, 2*s.tokens*s.h*s.size))
			w.leave("embedding")
		case 'h':
			w.enter("head")
			w.matrix("head", forward)
			w.loss()
		default:
			w.layer()
		}
	}
}

// loss emits the three all_reduces of a vocabulary-parallel loss: the largest logit, the sum and the wanted
// logit of each token (Shoeybi et al., 2019, section 3).
func (w *writer) loss() {
	for range 3 {
		w.then(w.issue(tensor, "loss", coll.AllReduce, coll.Float32, int64(w.g.shape().tokens), 0))
	}
}

func (w *writer) layer() {
	w.enter("attention")
	w.matrix("qkv", forward)
	w.attention(forward)
	w.matrix("proj", forward)
	w.leave("attention")
	if w.g.c.Experts > 0 {
		w.matrix("router", forward)
		w.exchange("dispatch")
		w.matrix("expert_up", forward)
		w.matrix("expert_down", forward)
		w.exchange("combine")
		return
	}
	w.enter("feed-forward")
	w.matrix("up", forward)
	w.matrix("down", forward)
	w.leave("feed-forward")
}

// exchange sends tokens to their experts, or back.
func (w *writer) exchange(what string) {
	tokens := int64(w.g.shape().routed+0.999999) / int64(w.g.c.EP)
	w.blocking(expert, what, coll.AllToAll, max(tokens, 1)*w.g.c.Hidden)
}

// keys are the elements of the keys and values of a rank's part of the sequence.
func (w *writer) keys() int64 {
	c := w.g.c
	return int64(w.g.shape().tokens) * 2 * c.KVHeads * (c.Hidden / c.Heads) / int64(c.TP)
}

// attention over all of the sequence: in a ring, part by part while the next part comes
// in, or at once when all keys and values are gathered.
func (w *writer) attention(k kind) {
	c := w.g.c
	if c.CP < 2 || !c.Ring {
		if c.CP > 1 {
			w.blocking(context, "keys and values", coll.AllGather, w.keys())
		}
		w.attentionPart(k, 1)
		if c.CP > 1 && k == backward {
			w.blocking(context, "gradients of keys and values", coll.ReduceScatter, w.keys())
		}
		return
	}
	passed, grads := int32(-1), int32(-1)
	for part := range c.CP {
		w.then(passed)
		if part < c.CP-1 {
			passed = w.pass("keys and values", passed)
		}
		w.attentionPart(k, c.CP)
		if k == backward { // gradients of the part travel with it, and home in the end
			grads = w.pass("gradients of keys and values", grads)
		}
	}
	w.then(grads)
}

// attentionPart is attention of 1/parts of the keys, in a backward pass after its forward
// pass where that is done again.
func (w *writer) attentionPart(k kind, parts int) {
	if k == backward && w.g.c.Selective {
		w.compute(w.g.attentionOp(forward, parts))
	}
	w.compute(w.g.attentionOp(k, parts))
}

// pass sends a part of keys and values to the next rank of the ring and receives one.
func (w *writer) pass(what string, after int32) int32 {
	n, me := int32(w.size[context]), int32(w.me[context])
	var deps []int32
	if after >= 0 {
		deps = []int32{after}
	}
	w.steps = append(w.steps, workload.Step{Kind: workload.GroupStart})
	w.issue(context, what, coll.Send, w.g.c.Type, w.keys(), (me+1)%n, deps...)
	got := w.issue(context, what, coll.Recv, w.g.c.Type, w.keys(), (me+n-1)%n, deps...)
	w.steps = append(w.steps, workload.Step{Kind: workload.GroupEnd})
	return got
}

// backward is a pass over a stage, with the gradients of weights or without.
func (w *writer) backward(a action, both bool) {
	list := w.units(a.chunk)
	for n := range list {
		i := len(list) - 1 - n
		w.fully.before(n)
		w.unitBackward(list[i].kind, both)
		if both {
			w.reduce(a, list[i])
		}
	}
}

// weights is the rest of a backward pass.
func (w *writer) weights(a action) {
	list := w.units(a.chunk)
	for n := range list {
		u := list[len(list)-1-n]
		switch u.kind {
		case 'h':
			w.weight("head")
		case 'l':
			names := w.g.layerMatrices()
			for k := range names {
				w.weight(names[len(names)-1-k])
			}
		default:
			w.embeddingWeights()
		}
		w.reduce(a, u)
	}
}

// again gathers the input of a divided matrix for the gradient of its weight, where only
// a part was kept (Korthikanti et al., 2022, section 4.2.2).
func (w *writer) again() int32 {
	if !w.g.c.SequenceParallel {
		return -1
	}
	return w.issue(tensor, "input again", coll.AllGather, w.g.c.Type, w.message(), 0, w.wait...)
}

// divides reports whether a matrix is divided by columns, so that its input is needed
// whole and the gradient of its input is a sum.
func (w *writer) divides(name string) bool {
	return name == "qkv" || name == "head" || name == "up"
}

// weight is the gradient of a matrix by itself.
func (w *writer) weight(name string) {
	if w.divides(name) {
		w.then(w.again())
	}
	w.matrix(name, weights)
}

// product is the backward pass of a matrix: its input's gradient and, with both, its
// weight's, beside which the former is summed up.
func (w *writer) product(name, what string, both bool) {
	gathered, sum := int32(-1), int32(-1)
	if both && w.divides(name) {
		gathered = w.again()
	}
	w.matrix(name, backward)
	if w.divides(name) {
		fn, n := coll.AllReduce, w.activation()
		if w.g.c.SequenceParallel {
			fn, n = coll.ReduceScatter, w.message()
		}
		sum = w.issue(tensor, what, fn, w.g.c.Type, n, 0)
	}
	if both {
		w.then(gathered)
		w.matrix(name, weights)
	}
	w.then(sum)
}

// unitBackward is the backward pass of a unit. What summed in the forward pass copies
// here, and what copied sums.
func (w *writer) unitBackward(kind byte, both bool) {
	switch kind {
	case 'h':
		w.product("head", "head, backward", both)
	case 'e':
		w.enter("embedding, backward")
		if both {
			w.embeddingWeights()
		}
	default:
		w.layerBackward(both)
	}
}

func (w *writer) embeddingWeights() {
	s := w.g.shape()
	w.compute(w.g.operation("embedding_backward_weight", product{}, 3*s.tokens*s.h*s.size))
}

func (w *writer) layerBackward(both bool) {
	if w.g.c.Recompute {
		w.layer()
	}
	if w.g.c.Experts > 0 {
		w.exchange("combine, backward")
		w.product("expert_down", "", both)
		w.product("expert_up", "", both)
		w.exchange("dispatch, backward")
		w.product("router", "", both)
	} else {
		w.enter("feed-forward, backward")
		w.product("down", "", both)
		w.product("up", "feed-forward, backward", both)
	}
	w.enter("attention, backward")
	w.product("proj", "", both)
	w.attention(backward)
	w.product("qkv", "attention, backward", both)
}
