package fold

import (
	"fmt"
	"testing"
)

// binary is a tree of n nodes as trees.go describes them: a node lies above those that
// have its number but for a lower last bit.
func binary(n int32) []int32 {
	parent := make([]int32, n)
	parent[0] = -1
	for i := int32(1); i < n; i++ {
		bit := i & -i
		if parent[i] = i&^bit | bit<<1; parent[i] >= n {
			parent[i] = i &^ bit
		}
	}
	return parent
}

// mirror is the tree of which node n-1-i is what node i is in another.
func mirror(parent []int32) []int32 {
	n := int32(len(parent))
	out := make([]int32, n)
	for i, up := range parent {
		out[n-1-int32(i)] = -1
		if up >= 0 {
			out[n-1-int32(i)] = n - 1 - up
		}
	}
	return out
}

// Without depths there are fewer kinds of nodes, but the longest way from a leaf to the
// root is as long as before: each step leads from a kind to that of the parent of the node
// that represents it.
func TestLongestWayStaysWithoutDepths(t *testing.T) {
	for _, n := range []int32{8, 64, 72, 88, 100, 600, 3000, 12800} {
		first := binary(n)
		x := trees{parent: [][]int32{first, mirror(first)}}
		all, _ := positionsIn(first)
		fine, _ := x.kindsOfPositions([]int32{0, 1}, true)
		kind, reps := x.kindsOfPositions([]int32{0, 1}, false)
		for node := range min(n, 100) {
			for other := range min(n, 100) {
				if fine[0][node] == fine[0][other] && kind[0][node] != kind[0][other] {
					t.Fatalf("%d nodes: %d and %d are of one kind, but not without depths", n, node, other)
				}
			}
		}
		longest := 0
		for i := range reps {
			steps := 0
			for at := reps[i]; ; steps++ {
				up := x.parent[at.channel][at.rank]
				if up < 0 {
					break
				}
				at = reps[kind[at.channel][up]]
				if steps > 64 {
					t.Fatalf("%d nodes: kind %d never comes to the root", n, i)
				}
			}
			longest = max(longest, steps)
		}
		root := 0
		for all[root].depth > 0 {
			root++
		}
		if int32(longest) != all[root].height {
			t.Errorf("%d nodes: %d steps to the root, the tree has %d", n, longest, all[root].height)
		}
		what := fmt.Sprintf("%d nodes: %d kinds without depths", n, len(reps))
		if _, with := x.kindsOfPositions([]int32{0, 1}, true); len(reps) > len(with) || n == 12800 &&
			2*len(reps) > len(with) {
			t.Errorf("%s, %d with", what, len(with))
		}
	}
}
