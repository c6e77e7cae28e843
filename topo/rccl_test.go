package topo_test

import (
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
	topodoc "github.com/simccl/simccl/topo/show"
)

// rcclHost builds the machine of a reference of RCCL.
func rcclHost(t testing.TB, r *golden.Reference) *topo.Host {
	t.Helper()
	spec := specOf(t, r.Topo)
	rs, err := rules.For(r.Version)
	if err != nil {
		t.Fatal(err)
	}
	p := topo.ParamsOf(rs)
	r.Section(t, "nRanks", &p.NRanks)
	h, err := topo.Build(spec, p)
	if err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	return h
}

// TestRCCLReferences compares the paths of every reference of RCCL with it; search/preset has the systems, as
// searches leave them.
func TestRCCLReferences(t *testing.T) {
	for _, version := range []string{"2.30.4", "2.28.3"} {
		refs := golden.RCCL(t, version)
		same := 0
		for i := range refs {
			r := &refs[i]
			r.Load(t)
			s := rcclHost(t, r).System(0)
			var want any
			r.Section(t, "paths", &want)
			if d := differ("paths", want, plain(t, topodoc.Paths(s))); d != "" {
				t.Errorf("%s, %s: %s", version, r.Name, d)
			} else {
				same++
			}
			r.Doc = nil
		}
		t.Logf("RCCL %s: paths %d/%d", version, same, len(refs))
	}
}
