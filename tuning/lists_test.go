package tuning_test

import (
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
	"pgregory.net/rapid"
)

// TestNothingLeftOfLists: before 2.24.3 a collective of which the lists leave nothing has
// Ring in the table of costs, before 2.22.3 with the protocols too that NCCL_PROTO leaves
// out (graph/tuning.cc:334 of v2.21.5, 318 of v2.22.3).
func TestNothingLeftOfLists(t *testing.T) {
	in := rapid.Custom(drawInput).Example(1)
	for release, want := range map[string][3]bool{"2.21.5": {true, true, true},
		"2.22.3": {false, false, true}, "2.23.4": {false, false, true}} {
		old, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		m, err := tuning.New(in, tuning.Params{Rules: old, Algo: units.Some("Tree"),
			Proto: units.Some("Simple")})
		if err != nil {
			t.Fatal(err)
		}
		var got [3]bool
		for p := range got {
			got[p] = m.Bandwidth[coll.Broadcast][coll.Ring][p] > 0
		}
		if got != want || m.Bandwidth[coll.AllReduce][coll.Ring][coll.Simple] > 0 {
			t.Errorf("NCCL %s: Broadcast by Ring with %v of LL, LL128, Simple, want %v", release, got, want)
		}
	}
}

// TestListsOfOldReleases: before 2.24.3 NCCL_ALGO is one list for all collectives, names
// that it does not know are passed over, and Ring is taken where nothing is left.
func TestListsOfOldReleases(t *testing.T) {
	old, err := rules.For("2.23.4")
	if err != nil {
		t.Fatal(err)
	}
	in := rapid.Custom(drawInput).Example(1)
	for _, x := range []struct {
		algo string
		f    coll.Func
		want coll.Algorithm
	}{{"Tree", coll.Broadcast, coll.Ring}, {"tree,NoSuch", coll.AllReduce, coll.Tree},
		{"^Tree", coll.AllReduce, coll.Ring}, {"NoSuch", coll.Broadcast, coll.Ring}} {
		m, err := tuning.New(in, tuning.Params{Rules: old, Algo: units.Some(x.algo),
			Proto: units.Some("Simple")})
		if err != nil {
			t.Fatal(err)
		}
		c, err := m.Choose(tuning.Op{Func: x.f, Count: 1024, Type: coll.Int8})
		if err != nil || c.Algo != x.want || c.Proto != coll.Simple {
			t.Errorf("NCCL_ALGO=%s for %v: %v %v, %v", x.algo, x.f, c.Algo, c.Proto, err)
		}
	}
	if _, err := tuning.New(in, tuning.Params{Rules: rules.Default(), Algo: units.Some("NoSuch")}); err ==
		nil {
		t.Error("2.28.9 takes an unknown name")
	}
}
