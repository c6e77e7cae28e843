// Package parity compares whole decisions with NCCL's: its test walks every
// available reference and counts the equal sections. It also turns a reference's
// run into a communicator, for other tests and benchmarks.
package parity

import (
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"testing"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/decision"
)

// Sections are the keys of a decision that are compared.
var Sections = []string{"system", "paths", "graphs", "graphXml", "graphsFinal", "domains", "channels",
	"tuning", "selection"}

// Comm builds the communicator of a reference's run.
func Comm(t testing.TB, r *golden.Reference) (*comm.Comm, decision.Given) {
	t.Helper()
	env := make([]string, 0, len(r.Env))
	for k, v := range r.Env {
		env = append(env, k+"="+v)
	}
	env = append(env, "SIMCCL_NET_RAIL=0") // as the plugin reported of which the references were made
	sort.Strings(env)
	m := site.Nodes(r.Topo, r.Nodes)
	if len(r.Kinds) > 0 {
		m.Nodes = nil
	}
	for _, k := range r.Kinds {
		m.Nodes = append(m.Nodes, site.Nodes(k.Topo, k.Count).Nodes...)
	}
	c, given, err := build(r.Version, m, r.Nodes, r.Multicast, env)
	if err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	given.Env = r.Env
	return c, given
}

// Build reads a topology and makes the communicator of n such nodes under the
// settings env (K=V).
func Build(path string, n int, multicast bool, env []string) (*comm.Comm, decision.Given, error) {
	return BuildFor("", path, n, multicast, env)
}

// BuildFor is Build by the rules of a release; "" is the default's.
func BuildFor(version, path string, n int, multicast bool, env []string) (*comm.Comm, decision.Given, error) {
	return build(version, site.Nodes(path, n), n, multicast, env)
}

func build(version string, m scenario.Machine, n int, multicast bool, env []string) (*comm.Comm,
	decision.Given, error) {
	m.Multicast = "off"
	if multicast {
		m.Multicast = "on"
	}
	s, err := site.OpenFor(version, m, env...)
	if err != nil {
		return nil, decision.Given{}, err
	}
	return s.Comm, decision.Given{Nodes: n, GPUsPerNode: s.Cluster.Host(0).NRanks()}, nil
}

// Differ names the first difference between two decoded documents: all that
// want has must be in got; numbers may differ by 1e-5 of themselves.
func Differ(at string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s: want an object, got %.60v", at, got)
		}
		return differKeys(at, w, g)
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s: want %d elements, got %d", at, len(w), len(g))
		}
		for i := range w {
			if d := Differ(fmt.Sprintf("%s[%d]", at, i), w[i], g[i]); d != "" {
				return d
			}
		}
		return ""
	case float64:
		g, ok := got.(float64)
		if !ok || math.Abs(w-g) > 1e-5*max(math.Abs(w), math.Abs(g), 1e-9) {
			return fmt.Sprintf("%s: want %v, got %v", at, want, got)
		}
		return ""
	}
	if want != got {
		return fmt.Sprintf("%s: want %.80v, got %.80v", at, want, got)
	}
	return ""
}

func differKeys(at string, want, got map[string]any) string {
	keys := make([]string, 0, len(want))
	for k := range want {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		g, ok := got[k]
		if !ok {
			return fmt.Sprintf("%s.%s: missing", at, k)
		}
		if d := Differ(at+"."+k, want[k], g); d != "" {
			return d
		}
	}
	return ""
}

// Compare gives, for every section of a reference, "" or the first difference.
func Compare(t testing.TB, r *golden.Reference) map[string]string {
	t.Helper()
	out := map[string]string{}
	c, given := Comm(t, r)
	doc, err := decision.New(c, given)
	if err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	text, err := doc.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%s: the document is no JSON: %v", r.Name, err)
	}
	for _, key := range Sections {
		var want any
		if r.Section(t, key, &want) {
			out[key] = Differ(key, want, got[key])
		}
	}
	return out
}
