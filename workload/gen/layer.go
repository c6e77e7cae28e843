package gen

import (
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/workload"
)

// unit is what a stage is made of: the embedding, a layer, or the head. FSDP gathers
// and reduces unit by unit.
type unit struct {
	kind           byte      // 'e', 'l', 'h'; 'j' joins the inputs of a layer that predicts a further token
	layer          LayerKind // of 'l'
	dense, experts int64     // parameters of a rank, apart from FSDP
}

// layersOf are how many layers each stage of the model has. What does not divide is left out of the last
// stage and of the first, which have the head and the embedding; layers that predict further tokens are
// the last stage's.
func (c *Config) layersOf() []int64 {
	n := int64(c.PP * c.Virtual)
	total := c.Layers + c.MTP
	out := slices.Repeat([]int64{total / n}, int(n))
	order := make([]int64, 0, n)
	for i := int64(1); i < n-1; i++ {
		order = append(order, i)
	}
	if order = append(order, 0); n > 1 {
		order = append(order, n-1)
	}
	for i := range total % n {
		out[order[i]]++
	}
	for i := int64(0); out[n-1] < c.MTP; i++ { // those before give theirs
		if at := i % n; at != n-1 && out[at] > 0 {
			out[at]--
			out[n-1]++
		}
	}
	return out
}

// units are those of a stage, in forward order.
func (w *writer) units(chunk int) []unit {
	at := chunk*w.g.c.PP + w.at.pp
	if known := w.g.units[at]; known != nil {
		return known
	}
	c := w.g.c
	of := w.g.layersOf
	first, last := w.stageEnds(chunk)
	from := int64(0)
	for _, n := range of[:at] {
		from += n
	}
	var out []unit
	table := c.vocabulary() * c.Hidden / int64(c.TP)
	if c.dispatched() {
		table = c.vocabulary() * c.Hidden
	}
	if first {
		out = append(out, unit{kind: 'e', dense: table + c.Positions*c.Hidden})
	}
	head := unit{kind: 'h', dense: table + c.FinalNorm()}
	if c.Tied && first {
		head.dense = c.FinalNorm() // the matrix is the embedding's
	}
	for i := from; i < from+of[at]; i++ {
		if i == c.Layers {
			out = append(out, head)
		}
		k := c.Layer(i)
		dense, experts := c.layerParams(k)
		if i >= c.Layers {
			out = append(out, unit{kind: 'j', dense: c.MTPExtra()})
		}
		out = append(out, unit{'l', k, dense, experts})
		if i >= c.Layers {
			out = append(out, unit{kind: 'h'})
		}
	}
	if last && c.MTP == 0 {
		out = append(out, head)
	}
	w.g.units[at] = out
	return out
}

// layerParams are the parameters of a layer on a rank: norms, attention, and the
// feed-forward network or router and experts.
func (c *Config) layerParams(k LayerKind) (dense, experts int64) {
	n := c.LayerCount(k)
	if c.Phase != Train { // ranks that have no expert of their own divide one
		return n.Whole + n.Attention/c.among() + n.FFN/c.wide(), n.Experts / int64(c.TP)
	}
	return n.Whole + (n.Attention+n.FFN)/int64(c.TP), n.Experts / int64(c.EP)
}

// allParams are the parameters of the model, without those that predict further tokens.
func (g *generator) allParams() int64 { return g.c.Params() }

// activation is the elements of a tensor parallel rank's input of a layer: all tokens.
func (w *writer) activation() int64 { return int64(w.g.shape().tokens) * w.g.c.Hidden }

// enter gathers the input of a tensor parallel part; leave sums its output. Without
// sequence parallelism the input is there and the sum is an all_reduce.
func (w *writer) enter(what string) {
	if !w.g.c.SequenceParallel {
		return
	}
	if !w.g.c.TPOverlap {
		w.blocking(tensor, what, coll.AllGather, w.message())
	} else if step := w.issue(tensor, what, coll.AllGather, w.g.c.Type, w.message(), 0, w.wait...); step >=
		0 {
		w.soon = append(w.soon, step)
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
		w.captured = u.kind == 'l'
		switch u.kind {
		case 'e':
			s := w.g.shape()
			w.compute(w.g.operation("embedding", kernel{extra: 2 * s.tokens * s.h * s.size, kernels: 1}))
			w.leave("embedding")
		case 'h':
			w.enter("head")
			w.matrix("head", forward)
			w.loss()
		case 'j':
			w.matrix("mtp_join", forward)
		default:
			w.layer(u.layer)
		}
		w.captured = false
		w.launched(false)
	}
}

// loss emits the three all_reduces of a vocabulary-parallel loss: the largest logit, the sum and the wanted
// logit of each token (Shoeybi et al., 2019, section 3).
func (w *writer) loss() {
	for range 3 {
		w.then(w.issue(tensor, "loss", coll.AllReduce, coll.Float32, int64(w.g.shape().tokens), 0))
	}
}

// block is a part of a layer: matrix products, of which the first one has the input of the part, with
// attention or a scan between some of them.
type block struct {
	what        string
	first, then []string // before and after what lies between
	between     func(w *writer, k kind)
	experts     bool
	normed      bool // it begins with the norm of its input
}

// Blocks that are computed again by themselves.
const feedForward, sharedExpert = "feed-forward", "shared expert"

// blocks are the parts of a layer.
func (g *generator) blocks(of LayerKind) (out []block) {
	c := g.c
	if of == ssm {
		return []block{{what: "state space", first: []string{"ssm_in"}, then: []string{"ssm_out"},
			normed: true, between: (*writer).scan}}
	}
	if of.Attention() {
		first := []string{"qkv"}
		if c.KVRank > 0 {
			first = []string{"qkv_down", "q_up", "kv_up"}
		}
		out = append(out, block{what: "attention", first: first, then: []string{"proj"}, normed: true,
			between: func(w *writer, k kind) { w.attention(of, k) }})
	}
	if of.HasFFN() {
		out = append(out, block{what: feedForward, first: []string{"up"}, then: []string{"down"},
			normed: true})
	}
	if of.HasExperts() {
		out = append(out, block{what: "experts", experts: true, normed: true})
		if c.SharedFFN > 0 {
			out = append(out, block{what: sharedExpert, first: []string{"shared_up"},
				then: []string{"shared_down"}})
		}
	}
	return out
}

// scan is what lies between the matrices of a state space layer.
func (w *writer) scan(k kind) {
	host := scanHost
	if k == backward {
		host = scanBackwardHost
	}
	w.launches(w.g.hostTime(host, scanLaunch))
	w.compute(w.g.scanOp(k))
}

// layer is a layer's forward pass.
func (w *writer) layer(of LayerKind) {
	for _, b := range w.g.blocks(of) {
		if b.experts {
			w.experts()
			continue
		}
		w.block(&b)
	}
}

// block is the forward pass of a part of a layer without experts.
func (w *writer) block(b *block) {
	w.enter(b.what)
	for _, name := range b.first {
		w.matrix(name, forward)
	}
	if b.between != nil {
		b.between(w, forward)
	}
	for i, name := range b.then {
		if last := i == len(b.then)-1; last && w.g.c.TPOverlap {
			wait := w.wait // the product's
			w.wait = append([]int32{}, wait...)
			w.leave(b.what)
			w.soon, w.wait = append(w.soon, w.wait[len(wait):]...), wait
		}
		w.matrix(name, forward)
	}
	if !w.g.c.TPOverlap && len(b.then) > 0 {
		w.leave(b.what)
	}
}

// experts are the forward pass of a layer's experts.
func (w *writer) experts() {
	w.matrix("router", forward)
	w.launches(w.g.routing(routeHost))
	if w.g.c.routed() {
		w.launched(true)
	}
	if w.g.c.Latent > 0 {
		w.matrix("latent_down", forward)
	}
	captured := w.captured
	w.captured = false
	defer func() { w.captured = captured }()
	if w.g.c.routed() { // nothing is launched while the host waited
		w.launches(w.g.routing(permuteHost))
		w.launched(false)
	}
	w.exchange(dispatching)
	w.matrix("expert_up", forward)
	w.matrix("expert_down", forward)
	w.exchange(combining)
	if w.g.c.Latent > 0 {
		w.matrix("latent_up", forward)
	}
}

// exchange sends tokens to their experts, or back: by alltoall, or by a kernel of package peer, whose
// gradients go the other way.
func (w *writer) exchange(what string) {
	c := w.g.c
	tokens := int64(w.g.shape().routed+0.999999) / int64(c.EP)
	if c.byKernel() {
		w.kernel = c.expertKernel(int64(w.g.shape().part), what == combining || what == dispatching+backwards)
	}
	w.blocking(expert, what, coll.AllToAll, max(tokens, 1)*c.ExpertInput())
	w.kernel = workload.Kernel{}
}

// keys are the elements of the keys and values of a rank's part of the sequence.
func (w *writer) keys() int64 {
	c := w.g.c
	return int64(w.g.shape().tokens) * c.kvHeads() * (c.Dim() + c.ValueSize())
}

// attention over all of the sequence: in a ring, part by part while the next part comes
// in, or at once when all keys and values are gathered.
func (w *writer) attention(of LayerKind, k kind) {
	c := w.g.c
	if c.CP < 2 || !c.Ring {
		if c.CP > 1 {
			w.blocking(context, "keys and values", coll.AllGather, w.keys())
		}
		w.attentionPart(of, k, 1)
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
		w.attentionPart(of, k, c.CP)
		if k == backward { // gradients of the part travel with it, and home in the end
			grads = w.pass("gradients of keys and values", grads)
		}
	}
	w.then(grads)
}

// attentionPart is attention of 1/parts of the keys, in a backward pass after its forward
// pass where that is done again.
func (w *writer) attentionPart(of LayerKind, k kind, parts int) {
	if k == backward && w.g.c.Modules.has(CoreAttention) {
		w.compute(w.g.attentionOp(of, forward, parts))
	}
	w.compute(w.g.attentionOp(of, k, parts))
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
