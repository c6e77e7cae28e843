package tuning_test

import (
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
	"pgregory.net/rapid"
)

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
