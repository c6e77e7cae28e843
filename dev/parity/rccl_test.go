package parity

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/study/decision"
)

// TestRCCLDecisions compares what inspect --json prints of every machine of AMD with RCCL's decisions,
// section after section, and reports the equal ones. Of channels connect has the test.
func TestRCCLDecisions(t *testing.T) {
	sections := []string{"nRanks", "system", "paths", "graphs", "graphXml", "graphsFinal", "rccl"}
	for _, version := range []string{"2.30.4", "2.28.3"} {
		refs := golden.RCCL(t, version)
		equal, total := map[string]int{}, map[string]int{}
		for i := range refs {
			r := &refs[i]
			if testing.Short() && i%9 != 0 {
				continue
			}
			r.Load(t)
			got := unfinished(t, r)
			for _, s := range sections {
				var want any
				if !r.Section(t, s, &want) {
					continue
				}
				total[s]++
				if s == "rccl" {
					want = among(want.(map[string]any), got[s].(map[string]any))
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

// unfinished is the document of a reference's machine.
func unfinished(t *testing.T, r *golden.Reference) map[string]any {
	t.Helper()
	s, err := site.OpenFor(r.Version, site.Nodes(r.Topo, r.Nodes))
	var unbuilt *rules.UnbuiltError
	if !errors.As(err, &unbuilt) {
		t.Fatalf("%s: %v", r.Name, err)
	}
	text, err := decision.Unfinished(s.Comm, s.Settings(), unbuilt)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// among are the members of want that got has, and that the reference knows: 2.28.3 keeps no model (-2).
func among(want, got map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range want {
		if _, ok := got[k]; ok && !(k == "romeTopoModelIdx" && v == -2.0) {
			out[k] = v
		}
	}
	return out
}
