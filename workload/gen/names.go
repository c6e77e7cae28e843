package gen

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
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
	// Also lists other models of the same architecture and sizes.
	Also []string `json:"also"`
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

// ModelNames lists the names of the models.
func ModelNames() (out []string) {
	for _, p := range table() {
		out = append(out, p.Name)
	}
	return out
}

// decorations are parts of published names that leave the architecture as it is: tuning, precision, the
// number of Llama 4's experts, the first version of Mistral's models. Dates of four digits are others.
var decorations = map[string]bool{"meta": true, "nvidia": true, "instruct": true, "chat": true, "it": true,
	"base": true, "hf": true, "thinking": true, "preview": true, "original": true, "v0.1": true,
	"bf16": true, "fp8": true, "fp4": true, "nvfp4": true, "mxfp4": true, "awq": true, "gptq": true,
	"int4": true, "int8": true, "16e": true, "128e": true}

// nameWords are the letters and numbers of a name in order, without decorations:
// Qwen3-235B-A22B-Instruct-2507 has qwen 3 235b a 22b. The publisher, before a slash, is not among them.
func nameWords(name string) (out []string) {
	name = strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	between := func(r rune) bool { return strings.ContainsRune("-_ :", r) }
	for _, part := range strings.FieldsFunc(name, between) {
		if !decorations[part] && !date().MatchString(part) {
			out = append(out, parts().FindAllString(part, -1)...)
		}
	}
	return out
}

var (
	date  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{4}$`) })
	parts = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[a-z]+|[0-9][0-9.]*[a-z0-9]*`) })
)

// FindModel returns the model of a name, as people write it: Llama-3.1-70B, llama3.1 70b,
// meta-llama/Llama-3.1-70B-Instruct, qwen3-235b. A name that leaves words out means a model where no other
// has all of its words; like lists those that have, where there are several.
func FindModel(name string) (m *Model, like []string) {
	said := nameWords(name)
	var found *modelPublished
	for i, all := 0, table(); i < len(all); i++ {
		p := &all[i]
		for _, called := range append([]string{p.Name}, p.Also...) {
			switch of := nameWords(called); {
			case slices.Equal(said, of):
				return p.model(), nil
			case len(said) > 0 && within(said, of):
				if found = p; !slices.Contains(like, p.Name) {
					like = append(like, p.Name)
				}
			}
		}
	}
	if len(like) == 1 {
		return found.model(), nil
	}
	return nil, like
}

// within reports whether some words are among others, in their order.
func within(some, all []string) bool {
	for _, w := range all {
		if len(some) > 0 && some[0] == w {
			some = some[1:]
		}
	}
	return len(some) == 0
}

// model is that of the list; nil if it cannot be read, which a test excludes.
func (p *modelPublished) model() *Model {
	m, err := ParseModel(p.Config, "models.json")
	if err != nil {
		return nil
	}
	m.Name = p.Name
	return m
}
