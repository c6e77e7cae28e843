package gen

import (
	"math"
	"strings"
	"testing"
)

// TestParameters: each model by name has as many parameters as its publisher says: exactly, where the
// number is exact, within a half of the last digit and what is left out otherwise.
func TestParameters(t *testing.T) {
	for _, p := range table() {
		m, _ := FindModel(p.Name)
		if m == nil {
			t.Errorf("%s is not found", p.Name)
			continue
		}
		got, most := float64(m.Params())/float64(p.Parameters)-1, 0.0
		if p.Parameters%1000000 == 0 {
			most = 0.02
		}
		if math.Abs(got) > most {
			t.Errorf("%s: %d parameters, published %d (%+.3f %%, %d)", p.Name, m.Params(), p.Parameters,
				100*got, m.Params()-p.Parameters)
		}
		if p.Source == "" || p.Rounded == "" {
			t.Errorf("%s has no source", p.Name)
		}
	}
}

// TestNames: a model is found as people write it, and another is not taken for it.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{"Llama-3.1-70B": "llama-3.1-70b",
		"meta-llama/Llama-3.1-70B-Instruct": "llama-3.1-70b", "llama3.1 70b": "llama-3.1-70b",
		"Meta-Llama-3-8B": "llama-3-8b", "deepseek_v3": "deepseek-v3", "Qwen3-30B-A3B": "qwen-3-30b-a3b",
		"qwen3-235b": "qwen-3-235b-a22b", "Qwen/Qwen3-235B-A22B-Instruct-2507": "qwen-3-235b-a22b",
		"deepseek-ai/DeepSeek-R1-0528": "deepseek-v3", "DeepSeek-V2-Chat": "deepseek-v2",
		"meta-llama/Llama-4-Scout-17B-16E-Instruct": "llama-4-scout", "gpt3-175b": "gpt-3-175b",
		"nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "nemotron-3-nano-30b-a3b",
		"Mixtral-8x22B-Instruct-v0.1":                "mixtral-8x22b", "llama2-70b-chat-hf": "llama-2-70b",
		"Qwen2.5-72B-Instruct-AWQ": "qwen-2.5-72b",
		// Other architectures, or sizes.
		"mistral-7b-instruct-v0.3": "", "DeepSeek-R1-Distill-Llama-70B": "", "qwen3-next-80b-a3b": "",
		"qwen3-vl-235b-a22b": "", "llama-3.2-90b-vision": "", "": ""} {
		m, like := FindModel(name)
		if want == "" && (m != nil || len(like) > 0) || want != "" && (m == nil || m.Name != want) {
			t.Errorf("%q: %v, %q", name, m, like)
		}
	}
	for name, want := range map[string]string{"gpt-oss": "gpt-oss-20b gpt-oss-120b",
		"llama-70b": "llama-2-70b llama-3-70b llama-3.1-70b llama-3.3-70b"} {
		if m, like := FindModel(name); m != nil || strings.Join(like, " ") != want {
			t.Errorf("%q: %v, %q, want %q", name, m, like, want)
		}
	}
}

// TestConfigErrors: what is missing or cannot be has its place and what to write.
func TestConfigErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{}":                           "x.json:1:1: no num_hidden_layers",
		`{"num_hidden_layers": "two"}`: "x.json:1:2: ",
		"{\n \"num_hidden_layers\": 2, \"hidden_size\": 10, \"num_attention_heads\": 3, \"vocab_size\": 9," +
			"\"intermediate_size\": 4}": "x.json:2:",
		`{"num_hidden_layers": -1}`: "write a number from 1 to 16384",
		`[1]`:                       "x.json:1:1",
		`{"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2, "vocab_size": 9, ` +
			`"intermediate_size": 4, "num_experts": 4}`: "num_experts_per_tok: 0 of 4 experts",
		`{"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2, "vocab_size": 9, ` +
			`"intermediate_size": 4, "hybrid_override_pattern": "MQ"}`: "layers of a state space",
	} {
		if _, err := ParseModel([]byte(text), "x.json"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// FuzzParse: no config.json makes Parse panic, and what it takes has parameters.
func FuzzParse(f *testing.F) {
	for _, p := range table() {
		f.Add([]byte(p.Config))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseModel(data, "x")
		if err == nil && (m.Params() == 0 || m.Heads < 1) {
			t.Errorf("%+v", m)
		}
	})
}
