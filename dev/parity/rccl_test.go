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
		refs := golden.RCCL(t, version)
		equal, total, trees := map[string]int{}, map[string]int{}, 0
		for i := range refs {
			r := &refs[i]
			if testing.Short() && i%9 != 0 {
				continue
			}
			r.Load(t)
			got := rcclDocument(t, r)
			for _, s := range sections {
				var want any
				if !r.Section(t, s, &want) {
					continue
				}
				total[s]++
				if graphs, ok := want.([]any); ok && s == "graphs" {
					trees += withoutTrees(graphs)
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
		t.Logf("equal to RCCL %s: %s; left out: treeBase of %d graphs", version,
			strings.Join(line, ", "), trees)
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

// withoutTrees takes the texts of a model's trees from graphs, which documents here do not have yet,
// and returns of how many.
func withoutTrees(graphs []any) (n int) {
	for _, g := range graphs {
		if m := g.(map[string]any); m["treeBase"] != nil {
			delete(m, "treeBase")
			n++
		}
	}
	return n
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
