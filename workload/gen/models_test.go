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
		m, ok := FindModel(p.Name)
		if !ok {
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
		"llama-3.1": "", "gpt": "", "": ""} {
		if m, ok := FindModel(name); ok != (want != "") || ok && m.Name != want {
			t.Errorf("%q: %v", name, m)
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
