package gen

import (
	"slices"
	"strings"

	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Modules are parts of a layer whose forward pass is done again in its backward pass, by the names of
// Megatron-Core's recompute_modules (megatron/core/transformer/transformer_config.py, core_v0.15.0).
type Modules uint8

// What is computed again: attention's scores and values, the activation function of experts, norms, what
// makes heads of latent vectors (MLA), a dense feed-forward network, all of a layer of experts (router,
// dispatch, products, combine and the shared expert), or the shared expert alone.
const (
	CoreAttention Modules = 1 << iota
	ExpertActivation
	Norms
	LatentUp
	FeedForward
	MoE
	SharedExpert
	// Operators is torchtitan's selective checkpointing by operator (operators), by itself.
	Operators
)

// AllModules are all of Megatron-Core's.
const AllModules = 2*SharedExpert - 1

var moduleNames = [...]string{"core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe",
	"shared_experts", "ops"}

// has reports whether all of some modules are among m.
func (m Modules) has(some Modules) bool { return m&some == some }

// String is the list of --recompute.
func (m Modules) String() string {
	var out []string
	for i, name := range moduleNames {
		if m.has(1 << i) {
			out = append(out, name)
		}
	}
	return strings.Join(out, ",")
}

// parseModules reads a list with commas; ok is false for a word that names no module.
func parseModules(text string) (m Modules, ok bool) {
	for _, name := range strings.Split(text, ",") {
		i := slices.Index(moduleNames[:], strings.TrimSpace(name))
		if i < 0 {
			return 0, false
		}
		m |= 1 << i
	}
	return m, true
}

// usable is the part of a GPU's memory that a framework's tensors can have: the rest is CUDA's context,
// buffers of NCCL and what lies unused between tensors (SimuMax v1.2's mem_factor, configs/strategy).
const usable = 0.94

// fit sets what is computed again where Fit asks for it and the job fits only so: the norms and activation
// functions of experts with what makes heads of latent vectors, else experts and feed-forward networks, else
// layers, as Megatron Bridge's recipes have them. It returns what the job would hold otherwise.
func (c *Config) fit() units.Bytes {
	room := units.Bytes(usable * float64(c.GPU.Capacity))
	if !c.Fit || c.Recompute || room == 0 {
		return 0
	}
	whole := c.held().Total()
	if whole <= room {
		return 0
	}
	before := c.Modules
	for _, more := range []Modules{Norms | ExpertActivation | LatentUp,
		Norms | LatentUp | MoE | FeedForward} {
		if c.Modules = before | more; c.held().Total() <= room {
			return whole
		}
	}
	c.Modules, c.Recompute = before, true
	if c.held().Total() > room {
		c.Recompute, whole = false, 0
	}
	return whole
}

// recompute computes a block's part of Modules once more, before its backward pass.
func (w *writer) recompute(b *block) {
	m, s := w.g.c.Modules, w.g.shape()
	switch m {
	case 0:
		return
	case Operators:
		w.operators(b)
		return
	}
	if m.has(Norms) && b.normed {
		w.compute(w.g.operation("norm_again", kernel{extra: 2 * s.part * s.h * s.size, kernels: 1}))
	}
	switch {
	case b.experts && m.has(MoE):
		w.experts()
	case b.what == sharedExpert && m&(MoE|SharedExpert) != 0, b.what == feedForward && m.has(FeedForward):
		w.block(b)
	case b.experts && m.has(ExpertActivation):
		w.compute(w.g.operation("expert_activation", kernel{kernels: 1,
			extra: (s.up + 1) * s.routed * float64(w.g.c.ExpertSize()) * s.size}))
	case m.has(LatentUp) && slices.Contains(b.first, "kv_up"):
		w.matrix("q_up", forward)
		w.matrix("kv_up", forward)
	}
}

// operators computes a dense layer's block once more but for what torchtitan's selective checkpointing keeps
// (torchtitan @5ae50d0, models/llama3/parallelize_llama.py, _save_list): attention's output and every first
// of two products, so that the second, fourth and sixth of a layer are done again: keys, the projection and
// the second matrix into the feed-forward network. Products of 8 bits (_scaled_mm) are not in its list.
// Gathers of inputs and sums of outputs are made again, too. No gradient needs the last product.
func (w *writer) operators(b *block) {
	s, c := w.g.shape(), w.g.c
	again := block{what: b.what}
	kept := c.Precision == workload.BF16 // every first product
	norm := 2 * s.part * s.h * s.size
	switch {
	case b.what == feedForward && !kept:
		again.first = []string{"up"}
	case b.what == feedForward:
		again.between = func(w *writer, _ kind) {
			w.compute(w.g.productAgain("gate_again", (s.up-1)*s.ffn, norm+(s.up+1)*s.tokens*s.ffn*s.size))
		}
	case kept:
		again.then = []string{"proj"}
		again.between = func(w *writer, _ kind) {
			w.compute(w.g.productAgain("keys_again", (s.qkv-s.attn)/2, norm+2*s.tokens*s.qkv*s.size))
		}
	default:
		again.first, again.then = []string{"qkv"}, []string{"proj"}
	}
	w.block(&again)
}

// productAgain is a product of all tokens by n columns, and bytes that norms and activation functions move.
func (g *generator) productAgain(name string, n, extra float64) int32 {
	s := g.shape()
	k := kernel{extra: extra, kernels: 3}
	if n > 0 {
		k.p = product{s.tokens, n, s.h, 1}
		k.shape = workload.Shape{Op: workload.ProductShape, M: whole(s.tokens), N: whole(n), K: whole(s.h),
			Count: 1, Precision: g.c.Precision}
	}
	return g.operation(name, k)
}
