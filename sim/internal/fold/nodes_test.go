package fold

import (
	"slices"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/topo"
)

// TestNodesAreEqual: nodes are of one System and have as many ranks each; neither alone is enough.
func TestNodesAreEqual(t *testing.T) {
	a, b := new(topo.System), new(topo.System)
	two, one := []int32{0, 1}, []int32{2}
	for _, x := range []struct {
		systems []*topo.System
		ranks   [][]int32
		want    bool
	}{{[]*topo.System{a, a}, [][]int32{two, two}, true}, {[]*topo.System{a, b}, [][]int32{two, two}, false},
		{[]*topo.System{a, a}, [][]int32{two, one}, false},
		{[]*topo.System{a, b}, [][]int32{two, one}, false}} {
		if got := equalNodes(&connect.Layout{NodeRanks: x.ranks}, x.systems); got != x.want {
			t.Errorf("%v: %t, want %t", x.ranks, got, x.want)
		}
	}
}

// TestTreesHaveOneRoot: each node has one parent, whichever of its ranks has it, and one node has none.
func TestTreesHaveOneRoot(t *testing.T) {
	for _, x := range []struct {
		up   []int32 // by rank, of nodes of two
		want []int32
		ok   bool
	}{{[]int32{-1, 0, 0, 2, 2, 4}, []int32{-1, 0, 1}, true},
		{[]int32{-1, 0, 0, 2, 0, 4}, []int32{-1, 0, 0}, true},
		{[]int32{2, 0, -1, 2, 2, 4}, []int32{1, -1, 1}, true},
		{[]int32{-1, 0, -1, 2, 2, 4}, []int32{-1, -1, 1}, false},
		{[]int32{-1, 0, 0, 2, 2, 0}, nil, false}, {[]int32{2, 0, 4, 2, 0, 4}, []int32{1, 2, 0}, false}} {
		l := &connect.Layout{NRanks: 6, NNodes: 3, NodeOf: []int32{0, 0, 1, 1, 2, 2},
			Channels: []connect.Channel{{}}}
		for _, up := range x.up {
			l.Channels[0].Tree = append(l.Channels[0].Tree, connect.TreeLinks{Up: up})
		}
		p := &plan.Plan{Comm: l, Req: plan.Request{Algo: coll.Tree}}
		if got, ok := (&trees{p: p}).parents(0); ok != x.ok || !slices.Equal(got, x.want) {
			t.Errorf("%v: %v, %t, want %v, %t", x.up, got, ok, x.want, x.ok)
		}
	}
}
