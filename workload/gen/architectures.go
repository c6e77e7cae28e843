package gen

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/jsonfile"
)

// aliases are the names that some architectures give the members of config.json (attribute_map of
// transformers' configuration_*.py), by those of published.
var aliases = map[string]string{
	"n_layer": "num_hidden_layers", "n_layers": "num_hidden_layers", "num_layers": "num_hidden_layers",
	"n_embd": "hidden_size", "d_model": "hidden_size",
	"n_head": "num_attention_heads", "n_heads": "num_attention_heads",
	"num_kv_heads": "num_key_value_heads", "multi_query_group_num": "num_key_value_heads",
	"n_inner": "intermediate_size", "ffn_dim": "intermediate_size", "ffn_hidden_size": "intermediate_size",
	"padded_vocab_size": "vocab_size", "n_positions": "max_position_embeddings",
	"activation_function": "hidden_act", "hidden_activation": "hidden_act",
	"moe_num_experts": "num_experts", "moe_k": "num_experts_per_tok", "moe_topk": "num_experts_per_tok",
	"moe_top_k": "num_experts_per_tok", "experts_per_token": "num_experts_per_tok",
	"moe_num_shared_experts": "n_shared_experts", "num_shared_experts": "n_shared_experts",
	"moe_layer_start_index": "first_k_dense_replace", "num_mtp_modules": "num_nextn_predict_layers",
}

// foreign are members that make a model another one in ways that published cannot say, by a part of their
// names, and what is missing of them. Of whole only numbers of at least 2 say so: other values are switches
// and weights of losses.
var foreign = [...]struct {
	part, missing string
	whole         bool
}{
	{"full_attention_interval", "linear attention", false},
	{"linear_num_", "linear attention", false},
	{"attn_type_list", "linear attention", false},
	{"mamba_d_", "state spaces of this form", false},
	{"mamba_n_heads", "state spaces of this form", false},
	{"layers_block_type", "layers of these kinds", false},
	{"block_types", "layers of these kinds", false},
	{"index_topk", "attention over chosen keys; without the member it is over all", false},
	{"cross_attention_layers", "attention to images", false},
	{"is_encoder_decoder", "encoders", false},
	{"ffn_config", "its sizes; write intermediate_size, num_experts and num_experts_per_tok", false},
	{"attn_config", "its sizes; write num_key_value_heads", false},
	{"expert", "experts of this form", true},
	{"moe_", "experts of this form", true},
}

// harmless are members of names as in foreign that leave a model's sizes as they are.
var harmless = []string{"ep_size", "expert_parallel_size", "num_expert_group"}

// unknown returns an error for the first member that makes a model another one and that is not read.
func (x *published) unknown(r *jsonfile.Reader, of map[string]member) error {
	for _, key := range byPlace(of) {
		m := of[key]
		if known()[key] || aliases[key] != "" || slices.Contains(harmless, key) {
			continue
		}
		for i := range foreign {
			f := &foreign[i]
			if strings.Contains(key, f.part) && m.says(f.whole) {
				return fail.NotYet(f.missing, "%v", r.Fail(m.at, "", "%s: %.40s", key, m.value))
			}
		}
	}
	for _, kind := range x.LayerTypes {
		if !slices.Contains([]string{"full_attention", "sliding_attention", "chunked_attention"}, kind) {
			return fail.NotYet("layers of this kind", "%v",
				r.Fail(of["layer_types"].at, "", "layer_types: %.40s", kind))
		}
	}
	return nil
}

// says reports whether a value is more than a default: a number of at least 2, and, unless whole, true, a
// list or an object that is not empty.
func (m *member) says(whole bool) bool {
	var v any
	if json.Unmarshal(m.value, &v) != nil {
		return false
	}
	switch v := v.(type) {
	case float64:
		return v >= 2 && v == math.Trunc(v)
	case bool:
		return v && !whole
	case []any:
		return len(v) > 0 && !whole
	case map[string]any:
		return len(v) > 0 && !whole
	}
	return false
}

// tied are the types whose head multiplies by the embedding's matrix unless config.json says otherwise
// (tie_word_embeddings of transformers' configuration_*.py, which a file leaves out where it is the default).
var tied = []string{"bloom", "cohere", "cohere2", "falcon", "gemma", "gemma2", "gemma3", "gemma3_text",
	"gpt2", "gpt_bigcode", "gpt_neo", "mpt", "opt", "starcoder2"}

// ungated are the types whose feed-forward network has two matrices, whatever its activation.
var ungated = []string{"bloom", "falcon", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gptj", "mpt", "opt",
	"persimmon", "phi", "starcoder2"}
