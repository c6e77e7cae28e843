package gen

import (
	"slices"

	"github.com/simccl/simccl/coll"
)

// backward is a pass over a stage, with the gradients of weights or without.
func (w *writer) backward(a action, both bool) {
	list := w.units(a.chunk)
	for n := range list {
		i := len(list) - 1 - n
		w.fully.before(n)
		w.captured = list[i].kind == 'l'
		w.unitBackward(list[i], both)
		w.captured = false
		if both {
			w.reduce(a, list[i])
		}
		w.launched(false)
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
		case 'j':
			w.weight("mtp_join")
		case 'l':
			names := w.g.layerMatrices(u.layer)
			for k := range names {
				w.weight(names[len(names)-1-k])
			}
		default:
			w.embeddingWeights()
		}
		w.reduce(a, u)
		w.launched(false)
	}
}

// layerMatrices are the names of a layer's matrix products in order.
func (g *generator) layerMatrices(of LayerKind) (out []string) {
	for _, b := range g.blocks(of) {
		switch {
		case !b.experts:
			out = append(append(out, b.first...), b.then...)
		case g.c.Latent > 0:
			out = append(out, "router", "latent_down", "expert_up", "expert_down", "latent_up")
		default:
			out = append(out, "router", "expert_up", "expert_down")
		}
	}
	return out
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
	return slices.Contains([]string{"qkv", "qkv_down", "head", "up", "shared_up", "ssm_in"}, name)
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
func (w *writer) unitBackward(u unit, both bool) {
	switch u.kind {
	case 'h':
		w.product("head", "head, backward", both)
	case 'j':
		w.product("mtp_join", "", both)
	case 'e':
		w.enter("embedding, backward")
		if both {
			w.embeddingWeights()
		}
	default:
		w.layerBackward(u.layer, both)
	}
}

func (w *writer) embeddingWeights() {
	s := w.g.shape()
	w.compute(w.g.operation("embedding_backward_weight", kernel{extra: 3 * s.tokens * s.h * s.size,
		kernels: 1}))
}

func (w *writer) layerBackward(of LayerKind, both bool) {
	if w.g.c.Recompute {
		w.layer(of)
	}
	blocks := w.g.blocks(of)
	for n := range blocks {
		b := &blocks[len(blocks)-1-n]
		w.recompute(b)
		if b.experts {
			w.expertsBackward(both)
			continue
		}
		what := b.what + ", backward"
		w.enter(what)
		for i := range b.then {
			w.product(b.then[len(b.then)-1-i], "", both)
		}
		if b.between != nil {
			b.between(w, backward)
		}
		for i := range b.first {
			w.product(b.first[len(b.first)-1-i], what, both)
		}
	}
}

// expertsBackward is the backward pass of a layer's experts.
func (w *writer) expertsBackward(both bool) {
	latent, captured := w.g.c.Latent > 0, w.captured
	if latent {
		w.product("latent_up", "", both)
	}
	w.captured = false
	w.launches(w.g.routing(permuteHost))
	w.exchange(combining + backwards)
	w.product("expert_down", "", both)
	w.product("expert_up", "", both)
	w.exchange(dispatching + backwards)
	w.captured = captured
	if latent {
		w.product("latent_down", "", both)
	}
	w.launches(w.g.routing(routeHost))
	w.product("router", "", both)
}
