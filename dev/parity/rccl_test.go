package parity

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/study/decision"
)

// TestRCCLDecisions compares what inspect --json prints of every machine of AMD with RCCL's decisions,
// section after section, and reports the equal ones. Of channels connect has the test.
func TestRCCLDecisions(t *testing.T) {
	sections := []string{"nRanks", "system", "paths", "graphs", "graphXml", "graphsFinal", "tuning",
		"selection", "rccl"}
	for _, version := range []string{"2.30.4", "2.28.3"} {
		refs := golden.Few(golden.RCCL(t, version), 9)
		equal, total := map[string]int{}, map[string]int{}
		for i := range refs {
			r := &refs[i]
			r.Load(t)
			got := rcclDocument(t, r)
			for _, s := range sections {
				var want any
				if !r.Section(t, s, &want) {
					continue
				}
				total[s]++
				if s == "graphs" {
					asPrinted(got[s].([]any), int(got["gpusPerNode"].(float64)))
				}
				if s == "rccl" {
					want = among(want.(map[string]any))
				}
				if d := Differ(s, want, got[s]); d != "" {
					t.Errorf("%s, %s: %s", version, r.Name, d)
					continue
				}
				equal[s]++
			}
			r.Doc = nil
		}
		var line []string
		for _, s := range sections {
			line = append(line, fmt.Sprintf("%s %d/%d", s, equal[s], total[s]))
		}
		t.Logf("equal to RCCL %s: %s", version, strings.Join(line, ", "))
	}
}

// rcclDocument is the document of a reference's machine.
func rcclDocument(t *testing.T, r *golden.Reference) map[string]any {
	t.Helper()
	s, err := site.OpenFor(r.Version, site.Nodes(r.Topo, r.Nodes))
	if err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	text, warn, err := decision.Of(s.Comm, s.Cluster, s.Settings())
	if err != nil || warn != nil {
		t.Fatal(err, warn)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// asPrinted cuts the trees of models to as many as a node has GPUs: the references' program prints no more,
// while their own channels have all (topo_4p3l_n2_1: twelve trees on 24 channels, eight printed).
func asPrinted(graphs []any, gpus int) {
	for _, g := range graphs {
		m := g.(map[string]any)
		if trees, _ := m["treeBase"].([]any); len(trees) > gpus {
			m["treeBase"] = trees[:gpus]
		}
	}
}

// among are the members of want that the reference knows: 2.28.3 keeps no model (-2).
func among(want map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range want {
		if !(k == "romeTopoModelIdx" && v == -2.0) {
			out[k] = v
		}
	}
	return out
}
