package gen

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// models is the embedded list of named models: published figures under the names of config.json.
//
//go:embed models.json
var models []byte

// modelPublished is a model by name, with where its sizes are from.
type modelPublished struct {
	Name string `json:"name"`
	// Parameters is the published number of parameters, exact or rounded as Rounded says.
	Parameters int64           `json:"parameters"`
	Rounded    string          `json:"published"`
	Source     string          `json:"source"`
	Config     json.RawMessage `json:"config"`
}

// table parses the embedded list once.
var table = sync.OnceValue(func() (list []modelPublished) {
	if err := json.Unmarshal(models, &list); err != nil {
		panic(fmt.Sprintf("models.json: %v", err)) // a file of ours, which a test reads
	}
	return list
})

// ModelNames lists the names that Find accepts.
func ModelNames() (out []string) {
	for _, p := range table() {
		out = append(out, p.Name)
	}
	return out
}

// plain returns a name without what people write in several ways: case, dashes, blanks.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_ ", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// FindModel returns the model of a name, as people write it: Llama-3.1-70B, llama3.1 70b,
// meta-llama/Llama-3.1-70B.
func FindModel(name string) (*Model, bool) {
	word := plain(name[strings.LastIndexByte(name, '/')+1:])
	word = strings.TrimPrefix(strings.TrimPrefix(word, "meta"), "nvidia")
	for _, suffix := range []string{"instruct", "hf", "base", "v01"} {
		word = strings.TrimSuffix(word, suffix)
	}
	for _, p := range table() {
		if plain(p.Name) != word {
			continue
		}
		m, err := ParseModel(p.Config, "models.json")
		if err != nil {
			return nil, false // a test reads them all
		}
		m.Name = p.Name
		return m, true
	}
	return nil, false
}
