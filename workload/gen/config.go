package gen

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/jsonfile"
)

// MaxConfig is the largest accepted size of a config.json, in bytes.
const MaxConfig = 4 << 20

// published lists the members of a config.json that determine the size of a model. Other members are ignored.
type published struct {
	Type      string `json:"model_type"`
	Layers    int64  `json:"num_hidden_layers"`
	Hidden    int64  `json:"hidden_size"`
	Heads     int64  `json:"num_attention_heads"`
	KVHeads   int64  `json:"num_key_value_heads"`
	HeadDim   int64  `json:"head_dim"`
	FFN       int64  `json:"intermediate_size"`
	DenseFFN  int64  `json:"intermediate_size_mlp"` // Llama 4: of layers without experts
	Vocab     int64  `json:"vocab_size"`
	Tied      *bool  `json:"tie_word_embeddings"`
	Act       string `json:"hidden_act"`
	HybridAct string `json:"mlp_hidden_act"`

	LocalExperts  int64   `json:"num_local_experts"`
	NumExperts    int64   `json:"num_experts"`
	Routed        int64   `json:"n_routed_experts"`
	TopK          int64   `json:"num_experts_per_tok"`
	ExpertFFN     int64   `json:"moe_intermediate_size"`
	Shared        int64   `json:"n_shared_experts"`
	SharedFFN     int64   `json:"moe_shared_expert_intermediate_size"`
	SharedFFNQwen int64   `json:"shared_expert_intermediate_size"`
	Latent        int64   `json:"moe_latent_size"`
	FirstDense    int64   `json:"first_k_dense_replace"`
	Frequency     int64   `json:"moe_layer_freq"`
	Step          int64   `json:"decoder_sparse_step"`
	Interleave    int64   `json:"interleave_moe_layer_step"`
	DenseLayers   []int64 `json:"mlp_only_layers"`
	LastSparse    *int64  `json:"moe_layer_end_index"` // the last layer with experts; below 0: of all layers

	QRank    int64 `json:"q_lora_rank"`
	KVRank   int64 `json:"kv_lora_rank"`
	NopeDim  int64 `json:"qk_nope_head_dim"`
	RopeDim  int64 `json:"qk_rope_head_dim"`
	ValueDim int64 `json:"v_head_dim"`
	MTP      int64 `json:"num_nextn_predict_layers"`

	Window     int64    `json:"sliding_window"`
	UseWindow  *bool    `json:"use_sliding_window"`
	LayerTypes []string `json:"layer_types"`
	WindowsOf  int64    `json:"sliding_window_pattern"` // the last of so many layers has no window
	Bias       bool     `json:"attention_bias"`
	MLPBias    bool     `json:"mlp_bias"`
	Positions  int64    `json:"max_position_embeddings"`

	Vision json.RawMessage `json:"vision_config"`
	Audio  json.RawMessage `json:"audio_config"`

	MultiQuery bool `json:"multi_query"`              // all heads share one of keys and values
	Grouped    bool `json:"new_decoder_architecture"` // Falcon: num_kv_heads counts in spite of multi_query

	Pattern    string `json:"hybrid_override_pattern"`
	SSMHeads   int64  `json:"mamba_num_heads"`
	SSMHeadDim int64  `json:"mamba_head_dim"`
	SSMGroups  int64  `json:"n_groups"`
	Groups     int64  `json:"n_group"`
	TopKGroups int64  `json:"topk_group"`
	SSMState   int64  `json:"ssm_state_size"`
	SSMConv    int64  `json:"conv_kernel"`
}

// ParseModel parses a Hugging Face config.json. A file without model_type is a decoder like Llama. Errors
// are of package fail and have a position.
func ParseModel(data []byte, file string) (*Model, error) {
	r := jsonfile.New(data, file)
	of, err := members(r)
	if err == nil {
		err = r.End()
	}
	var x published
	places := map[string]int64{}
	if err == nil {
		err = x.read(r, of, places)
	}
	if err == nil {
		err = x.unknown(r, of)
	}
	if err == nil {
		err = x.check(r, places)
	}
	if err != nil {
		return nil, err
	}
	return x.model(), nil
}

// member is a member of config.json that is not null, and the offset of its name.
type member struct {
	at    int64
	value json.RawMessage
}

// members reads the members of an object. Those of text_config, in which a multimodal model keeps its
// decoder, take precedence.
func members(r *jsonfile.Reader) (of map[string]member, err error) {
	of = map[string]member{}
	var text map[string]member
	err = r.Object(func(key string, at int64) (err error) {
		if key == "text_config" {
			text, err = members(r)
			return err
		}
		var value json.RawMessage
		if err := r.Decode(&value); err != nil || string(value) == "null" {
			return err
		}
		if _, twice := of[key]; twice {
			return r.Fail(at, "keep one", "member %q twice", key)
		}
		of[key] = member{at, value}
		return nil
	})
	maps.Copy(of, text)
	return of, err
}

// byPlace lists the names of members in the order of the file.
func byPlace(of map[string]member) []string {
	return slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Compare(of[a].at, of[b].at) })
}

// read sets what published lists, and the places of members by the names of published.
func (x *published) read(r *jsonfile.Reader, of map[string]member, places map[string]int64) error {
	for _, key := range byPlace(of) {
		m, name := of[key], key
		if other, ok := aliases[key]; ok {
			if _, there := of[other]; there || places[other] > 0 {
				continue
			}
			name = other
		}
		places[name] = m.at
		one, err := json.Marshal(map[string]json.RawMessage{name: m.value})
		if err != nil {
			return r.Fail(m.at, "", "%v", err)
		}
		if other := (*json.UnmarshalTypeError)(nil); errors.As(json.Unmarshal(one, x), &other) {
			return r.Fail(m.at, "write what its publisher has", "%s: %s where %s is expected", key,
				other.Value, jsonfile.KindOf(other.Type))
		}
	}
	return nil
}

// known are the names of the members that published lists.
var known = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for f := range reflect.TypeFor[published]().Fields() {
		out[f.Tag.Get("json")] = true
	}
	return out
})

// check returns an error for a missing or impossible member.
func (x *published) check(r *jsonfile.Reader, places map[string]int64) error {
	for _, m := range []struct {
		key   string
		value int64
		most  int64
	}{{"num_hidden_layers", x.Layers, 1 << 14}, {"hidden_size", x.Hidden, 1 << 20},
		{"num_attention_heads", x.Heads, 1 << 16}, {"vocab_size", x.Vocab, 1 << 26}} {
		if m.value < 1 || m.value > m.most {
			hint := fmt.Sprintf("write a number from 1 to %d", m.most)
			if _, there := places[m.key]; !there {
				return r.Fail(0, `add "`+m.key+`": N`, "no %s, so this is no config.json of a decoder", m.key)
			}
			return r.Fail(places[m.key], hint, "%s: %d", m.key, m.value)
		}
	}
	for _, m := range []struct {
		key   string
		value int64
	}{{"num_key_value_heads", x.KVHeads}, {"head_dim", x.HeadDim}, {"intermediate_size", x.FFN},
		{"intermediate_size_mlp", x.DenseFFN}, {"moe_intermediate_size", x.ExpertFFN},
		{"num_local_experts", x.LocalExperts}, {"num_experts", x.NumExperts}, {"n_routed_experts", x.Routed},
		{"num_experts_per_tok", x.TopK}, {"n_shared_experts", x.Shared}, {"moe_latent_size", x.Latent},
		{"moe_shared_expert_intermediate_size", x.SharedFFN},
		{"shared_expert_intermediate_size", x.SharedFFNQwen}, {"first_k_dense_replace", x.FirstDense},
		{"q_lora_rank", x.QRank}, {"kv_lora_rank", x.KVRank}, {"qk_nope_head_dim", x.NopeDim},
		{"qk_rope_head_dim", x.RopeDim}, {"v_head_dim", x.ValueDim}, {"num_nextn_predict_layers", x.MTP},
		{"sliding_window", x.Window}, {"mamba_num_heads", x.SSMHeads}, {"mamba_head_dim", x.SSMHeadDim},
		{"n_groups", x.SSMGroups}, {"n_group", x.Groups}, {"topk_group", x.TopKGroups},
		{"ssm_state_size", x.SSMState}, {"conv_kernel", x.SSMConv},
		{"sliding_window_pattern", x.WindowsOf},
		{"decoder_sparse_step", x.Step}, {"interleave_moe_layer_step", x.Interleave}} {
		if m.value < 0 || m.value > 1<<24 {
			return r.Fail(places[m.key], "write a number from 0 to 16777216", "%s: %d", m.key, m.value)
		}
	}
	return x.consistent(r, places)
}

// consistent finds sizes that contradict each other, and architectures that are not known.
func (x *published) consistent(r *jsonfile.Reader, places map[string]int64) error {
	experts := max(x.LocalExperts, x.NumExperts, x.Routed)
	switch {
	case x.Type == "deepseek_v4":
		return fail.NotYet("attention over compressed keys, and hyper-connections",
			"a model of type deepseek_v4")
	case experts > 1<<16:
		key := map[int64]string{x.LocalExperts: "num_local_experts", x.NumExperts: "num_experts",
			x.Routed: "n_routed_experts"}[experts]
		return r.Fail(places[key], "write at most 65536", "%s: %d", key, experts)
	case experts > 0 && (x.TopK < 1 || x.TopK > experts):
		return r.Fail(places["num_experts_per_tok"], fmt.Sprintf("write a number from 1 to %d", experts),
			"num_experts_per_tok: %d of %d experts", x.TopK, experts)
	case x.grouped() && (experts%x.Groups != 0 || x.TopKGroups < 1 || x.TopKGroups > x.Groups ||
		x.TopK > experts/x.Groups*x.TopKGroups):
		return r.Fail(places["n_group"], "write a divisor of the experts, and a topk_group that has them",
			"n_group: %d groups, of which %d have %d of %d experts", x.Groups, x.TopKGroups, x.TopK, experts)
	case x.KVHeads > 0 && x.Heads%x.KVHeads != 0:
		return r.Fail(places["num_key_value_heads"], "write a divisor of num_attention_heads",
			"num_key_value_heads: %d heads are not a multiple of %d", x.Heads, x.KVHeads)
	case x.HeadDim == 0 && x.KVRank == 0 && x.Hidden%x.Heads != 0:
		return r.Fail(places["hidden_size"], "add head_dim", "hidden_size: %d is not a multiple of %d heads",
			x.Hidden, x.Heads)
	case x.KVRank > 0 && (x.NopeDim+x.RopeDim < 1 || x.ValueDim < 1):
		return r.Fail(places["kv_lora_rank"], "add qk_nope_head_dim, qk_rope_head_dim and v_head_dim",
			"kv_lora_rank without the sizes of heads")
	case x.FFN < 1 && x.ExpertFFN < 1 && !slices.Contains(ungated, x.Type):
		return r.Fail(places["intermediate_size"], "add intermediate_size",
			"no size of the feed-forward network")
	}
	at := places["hybrid_override_pattern"]
	if x.Pattern == "" {
		return nil
	}
	if int64(len(x.Pattern)) != x.Layers {
		return r.Fail(at, "write a letter a layer", "hybrid_override_pattern: %d letters of %d layers",
			len(x.Pattern), x.Layers)
	}
	for i := range x.Pattern {
		switch k := LayerKind(x.Pattern[i]); {
		case k == ssm && (x.SSMHeads < 1 || x.SSMHeadDim < 1 || x.SSMState < 1):
			return r.Fail(at, "add mamba_num_heads, mamba_head_dim and ssm_state_size",
				"layers of a state space without its sizes")
		case k == onlyExperts && experts < 1:
			return r.Fail(at, "add n_routed_experts", "layers of experts without their number")
		case k != ssm && k != onlyAttention && k != onlyExperts && k != onlyFFN:
			return r.Fail(at, "write M, *, E or -", "hybrid_override_pattern: %q is no kind of layer",
				x.Pattern[i])
		}
	}
	return nil
}

// model converts the members to a Model.
func (x *published) model() *Model {
	m := &Model{Layers: x.Layers, Hidden: x.Hidden, Heads: x.Heads, KVHeads: x.KVHeads, FFN: x.FFN,
		Vocab: x.Vocab, HeadDim: x.HeadDim, Tied: slices.Contains(tied, x.Type), Gated: true,
		Experts: int(max(x.LocalExperts, x.NumExperts, x.Routed)), TopK: int(x.TopK),
		ExpertFFN: x.ExpertFFN, Latent: x.Latent, MTP: x.MTP,
		QRank: x.QRank, KVRank: x.KVRank, NopeDim: x.NopeDim, RopeDim: x.RopeDim, ValueDim: x.ValueDim,
		SSMHeads: x.SSMHeads, SSMHeadDim: x.SSMHeadDim, SSMGroups: max(x.SSMGroups, 1), SSMState: x.SSMState,
		SSMConv: x.SSMConv, QKVBias: x.Bias, OutBias: x.Bias, FFNBias: x.MLPBias}
	if x.Tied != nil {
		m.Tied = *x.Tied
	}
	if x.MultiQuery && !x.Grouped {
		m.KVHeads = 1
	}
	m.KVHeads = cmp.Or(m.KVHeads, m.Heads)
	for _, act := range []string{x.Act, x.HybridAct} { // SwiGLU is the rule
		m.Gated = m.Gated && !slices.Contains([]string{"relu2", "gelu", "gelu_new", "relu"}, act)
	}
	m.Gated = m.Gated && !slices.Contains(ungated, x.Type)
	m.SharedFFN = max(x.SharedFFN, x.SharedFFNQwen)
	if m.SharedFFN == 0 {
		m.SharedFFN = x.Shared * m.ExpertSize()
	}
	if x.grouped() {
		m.Groups, m.TopKGroups = int(x.Groups), int(x.TopKGroups)
	}
	x.byType(m)
	m.Pattern = x.pattern(m)
	switch {
	case len(x.Vision) > 0:
		m.LeftOut = "vision_config"
	case len(x.Audio) > 0:
		m.LeftOut = "audio_config"
	}
	return m
}

// byType sets properties that an architecture has and config.json does not state.
func (x *published) byType(m *Model) {
	switch x.Type {
	case "qwen2", "qwen2_moe":
		m.QKVBias, m.OutBias = true, false
	case "qwen3", "qwen3_moe":
		m.QKNorm = true
	case "gpt_oss":
		m.FFNBias, m.RouterBias, m.Sinks = true, true, true
	case "deepseek_v3", "kimi_k2", "nemotron_h":
		m.RouterBias = true
	case "gemma", "gemma2", "gemma3", "gemma3_text":
		m.Gated = true // also with gelu
	case "gpt2", "gpt_neox":
		m.QKVBias, m.OutBias, m.FFNBias, m.NormBias = true, true, true, true
		if x.Type == "gpt2" {
			m.Positions = x.Positions
		}
	case "llama4_text": // a shared expert beside the routed ones, and other layers in between
		m.ExpertFFN, m.SharedFFN = x.FFN, x.FFN
		if x.DenseFFN > 0 {
			m.FFN = x.DenseFFN
		}
	}
	if m.FFN == 0 && slices.Contains(ungated, x.Type) {
		m.FFN = 4 * m.Hidden
	}
}

// grouped reports whether a token's experts are of some groups; one group is none.
func (x *published) grouped() bool {
	return x.Groups > 1 && max(x.LocalExperts, x.NumExperts, x.Routed) > 0
}

// pattern returns the kind of each layer; "" where all are equal.
func (x *published) pattern(m *Model) string {
	if x.Pattern != "" {
		return x.Pattern
	}
	windows := x.Window > 0 && (x.UseWindow == nil || *x.UseWindow)
	m.Window = 0
	if windows {
		m.Window = x.Window
	}
	if x.Type == "gemma2" { // every other layer
		x.WindowsOf = 2
	}
	every := max(x.Step, x.Interleave, x.Frequency, 1)
	kinds, same := make([]byte, m.Layers), true
	for i := range m.Layers {
		experts := m.Experts > 0 && i >= x.FirstDense && (i+1)%every == 0 &&
			!slices.Contains(x.DenseLayers, i) &&
			(x.LastSparse == nil || *x.LastSparse < 0 || i <= *x.LastSparse)
		if x.Frequency > 1 { // DeepSeek counts from 0
			experts = m.Experts > 0 && i >= x.FirstDense && i%every == 0
		}
		window := windows && (x.WindowsOf < 1 || (i+1)%x.WindowsOf != 0)
		if n := int64(len(x.LayerTypes)); n > 0 {
			window = windows && x.LayerTypes[i%n] == "sliding_attention"
		}
		k := dense
		switch {
		case experts && window:
			k = sparseWindow
		case experts:
			k = sparse
		case window:
			k = denseWindow
		}
		kinds[i] = byte(k)
		same = same && (k == dense && m.Experts == 0 || k == sparse)
	}
	if same {
		return ""
	}
	return string(kinds)
}
