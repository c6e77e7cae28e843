package fabric

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/units"
)

// A tree's wires lead every port to one root, each switch over one wire only,
// and come back by the same cables: so each carries the data once, whatever the
// number of ports. With k ports below u switches that is k+u wires up.
func TestTreesReduceOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLayout(t)
		f := bind(t, l, rapid.Uint64().Draw(t, "seed"))
		r := f.Router()
		for net := range l.Nets {
			var ends []End
			for h := range l.Hosts {
				if rapid.Bool().Draw(t, "in") {
					ends = append(ends, End{Host: h, Net: net})
				}
			}
			if len(ends) == 0 {
				continue
			}
			tree, err := r.Tree(ends)
			if err != nil {
				t.Fatal(err)
			}
			parent := map[int32]int32{}
			for i, w := range tree.Up {
				down := tree.Down[i]
				if f.Wires[down].From != f.Wires[w].To || f.Wires[down].To != f.Wires[w].From ||
					f.Wires[down].Cable != f.Wires[w].Cable {
					t.Fatalf("%s is not the other direction of %s", f.Wires[down].Name, f.Wires[w].Name)
				}
				if _, twice := parent[f.Wires[w].From]; twice {
					t.Fatalf("two wires up from one vertex: %v", tree.Up)
				}
				parent[f.Wires[w].From] = f.Wires[w].To
			}
			used := map[int32]bool{}
			for _, e := range ends {
				v, far := f.at(e), 0
				for up, ok := parent[v]; ok; up, ok = parent[v] {
					used[v] = true
					v = up
					far++
				}
				if name := f.Network.Switches[v-f.first[len(f.first)-1]].Name; name != tree.Root ||
					far > tree.Levels || far == 0 {
					t.Fatalf("%v ends at %s after %d wires; the root is %s, %d levels", e, name, far,
						tree.Root, tree.Levels)
				}
			}
			if len(used) != len(tree.Up) {
				t.Fatalf("%d wires up, %d of them used", len(tree.Up), len(used))
			}
		}
	})
}

// Rails of one group reduce in their own leaf. Where groups meet in spines, the
// trees of eight rails have eight roots and share no wire; on fewer spines they
// share them evenly.
func TestTreesSpread(t *testing.T) {
	for _, tt := range []struct{ perLeaf, spines, levels, most int }{{8, 8, 1, 1}, {2, 8, 2, 1},
		{2, 4, 2, 2}} {
		n, err := Generate(Layout{Kind: "rail", Hosts: 8, Nets: 8, Gbit: 400, PerLeaf: tt.perLeaf,
			Spines: tt.spines})
		if err != nil {
			t.Fatal(err)
		}
		f, err := n.Bind(slices.Repeat([]int{8}, 8), 1)
		if err != nil {
			t.Fatal(err)
		}
		r, roots, on := f.Router(), map[string]int{}, map[int32]int{}
		for net := range 8 {
			var ends []End
			for h := range 8 {
				ends = append(ends, End{Host: h, Net: net})
			}
			tree, err := r.Tree(ends)
			if err != nil {
				t.Fatal(err)
			}
			if tree.Levels != tt.levels {
				t.Fatalf("%d levels, want %d", tree.Levels, tt.levels)
			}
			roots[tree.Root]++
			for _, w := range tree.Up {
				if on[w]++; on[w] > 1 {
					t.Errorf("%s carries two trees", f.Wires[w].Name)
				}
			}
		}
		for root, k := range roots {
			if k != tt.most {
				t.Errorf("%s is root of %d trees, want %d", root, k, tt.most)
			}
		}
	}
}

// TestTreesAreAsLateAsTheLongestRoute: way up and down, and as lossy as the worst, of which each wire keeps
// its part.
func TestTreesAreAsLateAsTheLongestRoute(t *testing.T) {
	n, err := Generate(Layout{Kind: "rail", Hosts: 2, Nets: 1, Gbit: 400, PerLeaf: 1, Spines: 1})
	if err != nil {
		t.Fatal(err)
	}
	f, err := n.Bind([]int{1, 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for w := range f.Wires {
		f.Wires[w].Latency, f.Wires[w].Loss = 10, 0
	}
	ends := []End{{Host: 0}, {Host: 1}}
	tree, err := f.Router().Tree(ends)
	if err != nil || len(tree.Up) == 0 || tree.Loss != 0 {
		t.Fatal(tree, err)
	}
	levels, later := tree.Levels, tree.Later
	f.Wires[tree.Up[0]].Loss, f.Wires[tree.Down[0]].Loss = 0.5, 0.25
	f.Wires[tree.Up[0]].Latency += 3
	f.Wires[tree.Down[0]].Latency += 4
	tree, err = f.Router().Tree(ends)
	if err != nil || later != 20*units.Time(levels) || tree.Later != later+7 || tree.Loss != 1-0.5*0.75 {
		t.Errorf("%d levels, %v later, then %v, loss %g: %v", levels, later, tree.Later, tree.Loss, err)
	}
}

// Planes have no switch in common: what would reduce over two of them cannot.
func TestNoTreeOverPlanes(t *testing.T) {
	n, _ := Generate(Layout{Kind: "planes", Hosts: 2, Nets: 2, Planes: 2, Gbit: 400, PerLeaf: 1})
	f, err := n.Bind([]int{2, 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var none *NoTreeError
	if _, err := f.Router().Tree([]End{{Host: 0, Net: 0}, {Host: 1, Net: 1}}); !errors.As(err, &none) ||
		none.Ports != 2 {
		t.Fatalf("%v, want a NoTreeError", err)
	}
}
