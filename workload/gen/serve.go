package gen

import (
	"fmt"
	"math"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Phase is what a job does with its model.
type Phase uint8

// Phases: training; one step of serving, of all prompts' tokens or of one more token a request.
const (
	Train Phase = iota
	Prefill
	Decode
	numPhases
)

var phaseNames = [numPhases]string{"train", "prefill", "decode"}

// String is the word of --phase.
func (p Phase) String() string { return phaseNames[p] }

// Phases are the words that ParsePhase reads.
func Phases() []string { return phaseNames[:] }

// ParsePhase returns the phase of a name.
func ParsePhase(word string) (Phase, bool) {
	for i, n := range phaseNames {
		if n == word {
			return Phase(i), true
		}
	}
	return 0, false
}

// Ways of tokens to experts, beside the kernels of package peer.
const (
	// Gathered: each rank has the tokens of all, and sums up what its experts made of them.
	Gathered = "gather"
	// ByNCCL: tokens go to the ranks of their experts by alltoall.
	ByNCCL = "nccl"
)

// What an exchange of tokens is for.
const dispatching, combining, backwards = "dispatch", "combine", ", backward"

// serving makes a step of serving of what the options say: MicroBatch requests of Length tokens, of one
// replica.
func (c *Config) serving() error {
	if c.Phase == Train {
		return nil
	}
	c.Launch, c.Fit = 0, false // graphs launch what decodes; there is no backward pass
	c.GlobalBatch, c.MTP, c.Capacity, c.SequenceParallel, c.Seq = c.MicroBatch, 0, 1, false, 1
	if c.Phase == Prefill {
		c.Seq = c.Length
	}
	for _, x := range []struct {
		bad                   bool
		option, problem, hint string
	}{
		{c.Length < 1 || c.Length > 1<<26, "context", fmt.Sprintf("%d tokens", c.Length),
			"write the tokens of a request, from 1 to 67108864"},
		{c.DP > 1, "dp", "a step is of one replica",
			"leave it out; --dp-attention divides requests among --tp ranks"},
		{c.CP > 1, "cp", "requests are not divided along their tokens", "leave it out"},
		{c.FSDP > 0, "fsdp", "a step of serving has no optimizer", "leave it out"},
		{c.KVFrom < 0 || c.KVFrom > 0 && (c.Phase != Decode || c.PP > 1), "kv-from",
			"a cache comes while one stage decodes", "write --phase decode and --pp 1, or leave it out"},
		{c.Prompt < 0 || c.Prompt > 1<<24 || c.Prompt > 0 && c.Phase != Decode, "prompt-tokens",
			fmt.Sprintf("%d tokens of prompts", c.Prompt), "write 0 to 16777216 with --phase decode"},
		{c.Prompt > 0 && c.SSMHeads > 0, "prompt-tokens",
			"prompts between answers are not simulated of state space layers", "leave it out"},
		{c.Prompt > 0 && c.DPAttention && c.Prompt%int64(c.TP) != 0, "prompt-tokens",
			fmt.Sprintf("%d tokens cannot be divided by %d", c.Prompt, c.TP), "write " +
				fmt.Sprint((c.Prompt/int64(c.TP)+1)*int64(c.TP))},
		{c.Virtual > 1, "virtual", "a step of serving has one batch", "leave it out"},
		{c.Iterations != 1, "iterations", "a step of serving is one", "leave it out"},
		{c.TP%max(c.EP, 1) != 0, "ep",
			fmt.Sprintf("%d ranks are not a multiple of %d: experts are divided among them",
				c.TP, c.EP), "write a divisor of --tp"},
		{c.DPAttention && c.MicroBatch%int64(c.TP) != 0, "dp-attention",
			fmt.Sprintf("%d requests cannot be divided by %d", c.MicroBatch, c.TP), "write --batch " +
				fmt.Sprint((c.MicroBatch/int64(c.TP)+1)*int64(c.TP))},
		{c.dispatched() && (!c.DPAttention || c.EP != c.TP || c.Experts == 0), "dispatch",
			"tokens go to the ranks of their experts where each rank has tokens and experts of its own",
			"add --dp-attention, --ep as --tp and a model with experts, or write --dispatch gather"},
	} {
		if x.bad {
			return &Error{x.option, x.problem, x.hint}
		}
	}
	return nil
}

// tokens are those of a microbatch, and of the prompts of its step.
func (c *Config) tokens() int64 { return c.MicroBatch*c.Seq + c.Prompt }

// among is how many ranks divide a layer's heads.
func (c *Config) among() int64 {
	if c.DPAttention {
		return 1
	}
	return int64(c.TP)
}

// dispatched reports whether tokens go to the ranks of their experts. What is not an expert each rank then
// has whole, for its own tokens (DeepSeek-V3, arXiv:2412.19437, section 3.4; SGLang's moe-dense-tp-size and
// enable-dp-lm-head of 1).
func (c *Config) dispatched() bool { return c.Phase != Train && c.Dispatch != Gathered }

// wide is how many ranks divide feed-forward networks, shared experts and the head.
func (c *Config) wide() int64 {
	if c.dispatched() {
		return 1
	}
	return int64(c.TP)
}

// busiest is about the most that falls to one of n ranks where a number of things fall to them evenly and at
// random: the mean and as many standard deviations as the largest of n normal values lies above it.
func busiest(things float64, n int64) float64 {
	p := 1 / float64(n)
	return things*p + math.Sqrt(2*math.Log(float64(n))*things*p*(1-p))
}

// served are the matrix products of a step of serving and the kernels beside them: norms with the residual,
// rotation of heads, writing of keys and values, activation functions, and each operand's cast.
func (g *generator) served() map[string]matrix {
	c := g.c
	size, h, among := float64(c.Type.Size()), float64(c.Hidden), float64(c.among())
	all, prompt := float64(c.tokens()), float64(c.Prompt)
	if c.Phase == Prefill {
		prompt = all
	}
	mine := all
	if c.DPAttention {
		mine, prompt = mine/float64(c.TP), prompt/float64(c.TP)
	}
	norm, norms := 2*h, int32(1) // of a token: read and written
	if c.Normed && !c.DPAttention {
		norm, norms = 0, 0
	}
	heads, wide, seen := float64(c.Heads)/among, float64(c.wide()), all // seen: tokens of what is wide
	if c.dispatched() {
		seen = mine
	}
	q, v, kv := heads*float64(c.Dim()), heads*float64(c.ValueSize()),
		float64(max(c.KVHeads/c.among(), 1)*c.Dim())
	ffn, shared, up := float64(c.FFN)/wide, float64(c.SharedFFN)/wide, float64(c.Matrices()-1)
	out := map[string]matrix{}
	add := func(name string, p product, values float64, kernels int32, wide bool) {
		out[name] = matrix{name: name, p: p, extra: values * size, kernels: kernels, wide: wide}
	}
	add("qkv", product{mine, q + 2*kv, h, 1}, mine*(norm+3*(q+kv)), 2+norms, false)
	latent, rank := float64(c.QRank+c.KVRank+c.RopeDim), float64(c.KVRank)
	add("qkv_down", product{mine, latent, h, 1}, mine*(norm+2*latent), 1+norms, false)
	query := product{mine, q, float64(c.QRank), 1}
	if c.QRank == 0 {
		query.k = h
	}
	add("q_up", query, mine*q, 1, false)
	// keys and values of all heads are made of the latent vectors (prefill), or what makes them is
	// multiplied into queries and outputs instead (DeepSeek-V2, section 2.1.2)
	add("kv_up", product{prompt, heads * float64(c.NopeDim+c.ValueDim), rank, 1}, 2*prompt*(q+v), 1, false)
	add("absorb", product{mine - prompt, rank, float64(c.NopeDim), heads},
		(mine-prompt)*heads*float64(c.RopeDim), 1, true)
	add("values", product{mine - prompt, float64(c.ValueDim), rank, heads}, 0, 0, true)
	add("proj", product{mine, h, v, 1}, 0, 0, false)
	add("up", product{seen, up * ffn, h, 1}, seen*(norm+(up+1)*ffn), 1+norms, false)
	add("down", product{seen, h, ffn, 1}, seen*2*h, 1, false)
	g.servedExperts(all, up, norm, norms, add)
	add("shared_up", product{seen, up * shared, h, 1}, seen*(up+1)*shared, 1, false)
	add("shared_down", product{seen, h, shared, 1}, seen*2*h, 1, false)
	add("ssm_in", product{mine, float64(c.SSMInput()) / among, h, 1},
		mine*(norm+2*float64(c.SSMInput())/among), 2+norms, false)
	add("ssm_out", product{mine, h, float64(c.Inner()) / among, 1}, 2*mine*float64(c.Inner())/among, 2, false)
	// the last token of each request; its choice reads the logits of all ranks in 32 bits
	last := float64(c.MicroBatch) * seen / all
	add("head", product{last, float64(c.vocabulary()) / wide, h, 1}, last*(norm+4*float64(c.vocabulary())),
		4+norms, true)
	return out
}

// servedExperts are the products of experts: those that the step's tokens choose, as the busiest rank has
// them.
func (g *generator) servedExperts(all, up, norm float64, norms int32,
	add func(string, product, float64, int32, bool)) {
	c := g.c
	if c.Experts == 0 {
		return
	}
	ep, experts, in := int64(max(c.EP, 1)), float64(c.Experts), float64(c.ExpertInput())
	f := float64(c.ExpertSize()) / float64(int64(c.TP)/ep)
	chosen := experts * (1 - math.Pow(1-float64(c.TopK)/experts, all))
	here := max(min(busiest(chosen, ep), experts/float64(ep)), 1)
	rows := min(busiest(all*float64(c.TopK), ep), all*float64(c.TopK))
	tokens := all
	if c.dispatched() {
		tokens /= float64(c.TP)
	}
	// the choice, the order of tokens by experts, and their sum afterwards
	add("router", product{tokens, experts, float64(c.Hidden), 1}, tokens*(norm+3*experts), 2+norms, true)
	add("latent_down", product{tokens, in, float64(c.Hidden), 1}, 0, 0, false)
	add("latent_up", product{tokens, float64(c.Hidden), in, 1}, 0, 0, false)
	add("expert_up", product{rows / here, up * f, in, here}, rows*(2*in+(up+1)*f), 2, false)
	add("expert_down", product{rows / here, in, f, here}, rows*in+tokens*in, 1, false)
}

// servedAttention is attention of a step: of prompts as in training, or of one token a request over all keys
// and values before it, which memory bounds.
func (w *writer) servedAttention(of LayerKind) {
	g, c := w.g, w.g.c
	batch := float64(c.MicroBatch)
	if c.DPAttention {
		batch /= float64(c.TP)
	}
	heads, name := float64(c.Heads)/float64(c.among()), "attention"
	if of.Windowed() {
		name = "window"
	}
	s := workload.Shape{Op: workload.ForwardShape, M: c.Seq, K: c.Dim(), Count: whole(batch * heads)}
	prompts := func(name string, each, tokens, length int64) { // each attention is of so many tokens
		keys, s := c.Context(of, length), s
		s.M, s.N = each, whole(keys)
		w.compute(g.operation(name, kernel{shape: s,
			p: product{float64(tokens), heads * float64(c.Dim()+c.ValueSize()), keys, 1}}))
	}
	if c.Phase == Prefill {
		prompts(name, c.Seq, whole(batch*float64(c.Seq)), c.Seq)
		return
	}
	if c.Prompt > 0 {
		mine := c.Prompt * int64(c.among()) / int64(c.TP)
		s.Count = whole(heads)
		prompts("prompt_"+name, mine, mine, c.Length)
		s.Count = whole(batch * heads)
	}
	s.Op, s.M, s.N = workload.DecodeShape, whole(batch), c.seen(of)
	values := float64(c.Dim() + c.ValueSize())
	if c.KVRank > 0 {
		values = float64(2*c.KVRank + c.RopeDim)
	}
	w.compute(g.operation(name, kernel{shape: s, p: product{batch, heads * values, float64(s.N), 1},
		moved: batch * float64(s.N) * g.cached()}))
}

// seen is how many tokens before it a token sees.
func (c *Config) seen(of LayerKind) int64 {
	if of.Windowed() && c.Window > 0 {
		return min(c.Window, c.Length)
	}
	return c.Length
}

// cached is the bytes of a token's keys and values in a layer of a rank, in 16 bits. Latent vectors are of
// all heads.
func (g *generator) cached() float64 {
	c := g.c
	if c.KVRank > 0 {
		return float64((c.KVRank + c.RopeDim) * int64(c.Type.Size()))
	}
	return float64(max(c.KVHeads/c.among(), 1) * (c.Dim() + c.ValueSize()) * int64(c.Type.Size()))
}

// serve is a step of a stage.
func (w *writer) serve() {
	c := w.g.c
	if w.at.pp >= c.PP { // it filled a cache
		w.cache()
		return
	}
	if c.KVFrom > 0 {
		w.cache()
	}
	_, last := w.stageEnds(0)
	w.then(w.receive(action{kind: forward}))
	for _, u := range w.units(0) {
		switch u.kind {
		case 'e':
			tokens := float64(c.tokens()*c.wide()) / float64(c.TP)
			w.compute(w.g.operation("embedding", kernel{extra: 2 * tokens * float64(c.Hidden) *
				float64(c.Type.Size()), kernels: 1}))
			w.sum("embedding")
		case 'h':
			w.matrix("head", forward)
			if !c.dispatched() {
				w.blocking(tensor, "logits", coll.AllGather, c.MicroBatch*c.vocabulary()/int64(c.TP))
			}
		default:
			w.servedLayer(u.layer)
		}
	}
	w.send(ahead, !last)
	if len(w.wait) > 0 { // the step ends with its last call
		w.compute(w.g.operation("tokens", kernel{extra: 8 * float64(c.MicroBatch), kernels: 1}))
	}
}

// cacheBlock is the tokens of a block of a KV cache, and cacheSize the bytes of a token in a layer that
// transfers move: those of all heads.
const cacheBlock = 64

func (c *Config) cacheSize() int64 {
	if c.KVRank > 0 {
		return (c.KVRank + c.RopeDim) * int64(c.Type.Size())
	}
	return c.KVHeads * (c.Dim() + c.ValueSize()) * int64(c.Type.Size())
}

// cache writes a request's cache to the ranks that decode, which do not wait for it.
func (w *writer) cache() {
	c := w.g.c
	layers, tokens := int64(0), (c.Length+cacheBlock-1)/cacheBlock*cacheBlock
	for i := range c.Layers {
		if c.Layer(i).Attention() {
			layers++
		}
	}
	w.kernel = workload.Kernel{Name: workload.KVKernel,
		Args: [6]int64{int64(c.KVFrom), int64(c.TP), layers, tokens, cacheBlock, c.cacheSize()}}
	each := layers * tokens * c.cacheSize() / int64(c.KVFrom) // what a rank that filled it writes
	w.issue(caches, "KV cache", coll.AllToAll, coll.Int8, max(each, 1), 0)
	w.kernel = workload.Kernel{}
}

func (w *writer) servedLayer(of LayerKind) {
	c := w.g.c
	products := func(names ...string) {
		for _, n := range names {
			w.matrix(n, forward)
		}
	}
	switch {
	case of == ssm:
		products("ssm_in")
		w.state()
		products("ssm_out")
	case of.Attention() && c.KVRank == 0:
		products("qkv")
		w.servedAttention(of)
		products("proj")
	case of.Attention():
		products("qkv_down", "q_up")
		if c.Phase == Prefill {
			products("kv_up")
			w.servedAttention(of)
		} else {
			if c.Prompt > 0 {
				products("kv_up")
			}
			products("absorb")
			w.servedAttention(of)
			products("values")
		}
		products("proj")
	}
	if (of.Attention() || of == ssm) && !c.DPAttention {
		w.sum("attention")
	}
	switch {
	case of.HasFFN():
		w.gather()
		products("up", "down")
		w.sum("feed-forward")
	case of.HasExperts():
		w.servedLayerExperts(products)
	}
}

func (w *writer) servedLayerExperts(products func(...string)) {
	c := w.g.c
	w.gather()
	products("router")
	if c.Latent > 0 {
		products("latent_down")
	}
	if c.dispatched() {
		w.toExperts(false)
	}
	products("expert_up", "expert_down")
	if c.dispatched() {
		w.toExperts(true)
	}
	if c.Latent > 0 {
		products("latent_up")
	}
	if c.SharedFFN > 0 {
		products("shared_up", "shared_down")
	}
	w.sum("experts")
}

// gather brings the tokens of all ranks to each of them, where they divide what follows.
func (w *writer) gather() {
	if c := w.g.c; c.DPAttention && !c.dispatched() {
		w.blocking(tensor, "tokens", coll.AllGather, c.tokens()/int64(c.TP)*c.Hidden)
	}
}

// sum adds up what tensor parallel ranks have of all tokens.
func (w *writer) sum(what string) {
	c := w.g.c
	switch {
	case c.dispatched():
		return
	case c.DPAttention:
		w.blocking(tensor, what, coll.ReduceScatter, c.tokens()/int64(c.TP)*c.Hidden)
		return
	case c.AllReduce != ByNCCL:
		w.kernel = workload.Kernel{Name: c.AllReduce}
	}
	w.blocking(tensor, what, coll.AllReduce, c.tokens()*c.Hidden)
	w.kernel = workload.Kernel{}
}

// toExperts sends tokens to their experts, or back. Kernels of package peer dispatch FP8.
func (w *writer) toExperts(combine bool) {
	c := w.g.c
	what, typ, tokens := "dispatch", c.Type, c.tokens()/int64(c.TP)
	if combine {
		what = "combine"
	}
	if c.Dispatch != ByNCCL {
		w.kernel = c.expertKernel(tokens, combine)
		if !combine {
			typ = coll.Float8e4m3
		}
	}
	each := max((tokens*int64(c.TopK)+int64(c.EP)-1)/int64(c.EP), 1)
	w.then(w.issue(expert, what, coll.AllToAll, typ, each*c.ExpertInput(), 0, w.wait...))
	w.kernel = workload.Kernel{}
}

// expertKernel is the kernel of Dispatch for so many tokens of each rank.
func (c *Config) expertKernel(tokens int64, combine bool) workload.Kernel {
	return workload.Kernel{Name: c.Dispatch, Combine: combine, Args: [6]int64{int64(c.Experts), int64(c.TopK),
		c.ExpertInput(), tokens, int64(c.Groups), int64(c.TopKGroups)}}
}

// byKernel reports whether a training's tokens go to their experts by a kernel that is not NCCL's.
func (c *Config) byKernel() bool {
	return c.Phase == Train && c.EP > 1 && c.Dispatch != "" && c.Dispatch != Gathered && c.Dispatch != ByNCCL
}

// state is what a state space layer computes beside its products: a scan of prompts, or a step of each
// request's state.
func (w *writer) state() {
	c := w.g.c
	if c.Phase == Prefill {
		w.compute(w.g.scanOp(forward))
		return
	}
	states := float64(c.MicroBatch*c.Inner()*c.SSMState) / float64(c.TP)
	w.compute(w.g.operation("ssm_step", kernel{extra: 2 * states * float64(c.Type.Size()), kernels: 2}))
}

// servedMemory is what the fullest rank holds: weights, in the precision of products but for the embedding
// and the head, and under Activations the keys and values of all requests.
func (w *writer) servedMemory() (m workload.Memory) {
	g, c := w.g, w.g.c
	weights, cache := 0.0, 0.0
	requests := float64(c.MicroBatch)
	if c.DPAttention {
		requests /= float64(c.TP)
	}
	for _, u := range w.units(0) {
		each := g.operand()
		if u.kind != 'l' {
			each = float64(c.Type.Size())
		} else if u.layer.Attention() {
			cache += requests * float64(c.seen(u.layer)) * g.cached()
		}
		weights += float64(u.dense+u.experts) * each
	}
	return workload.Memory{Parameters: units.Bytes(weights), Activations: units.Bytes(cache)}
}
