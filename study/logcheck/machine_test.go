package logcheck

import (
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/study/ncclog"
	"github.com/simccl/simccl/topo/decl"
)

// TestSilentRanksAreWholeNodesLikeTheOneBefore: ranks that logged nothing are nodes like the one before them,
// or, at the beginning, like the first that did; what is no whole number of such nodes is refused.
func TestSilentRanksAreWholeNodesLikeTheOneBefore(t *testing.T) {
	for _, x := range []struct {
		nodes [][2]int // first rank and ranks of those that logged
		ranks int
		want  string // nodes of each kind
	}{
		{[][2]int{{0, 4}, {4, 2}}, 6, "[1 1]"},
		{[][2]int{{4, 4}}, 8, "[2]"},
		{[][2]int{{0, 4}, {12, 2}}, 14, "[3 1]"}, // 4 to 11 are two of four, not four of two
		{[][2]int{{0, 2}, {2, 4}, {10, 2}}, 12, "[1 2 1]"},
		{[][2]int{{0, 4}, {4, 2}}, 10, "[1 3]"},
		{[][2]int{{0, 4}, {6, 2}}, 8, "ranks 4 to 5"},
		{[][2]int{{0, 4}}, 6, "ranks 4 to 5"},
	} {
		var nodes []*printed
		for _, n := range x.nodes {
			p := &printed{root: &decl.Element{Name: "system"}, gpus: map[int]*decl.Element{}}
			for r := range n[1] {
				p.gpus[n[0]+r] = &decl.Element{Name: "gpu"}
			}
			nodes = append(nodes, p)
		}
		m, err := fromLog(&ncclog.Communicator{NRanks: x.ranks}, nodes, rules.Default(), 90)
		got := fmt.Sprint(err)
		if err == nil {
			var counts []int
			for _, n := range m.spec.Nodes {
				counts = append(counts, n.Count)
			}
			got = fmt.Sprint(counts)
		}
		if refused := x.want[0] != '['; refused != (err != nil) || !strings.Contains(got, x.want) {
			t.Errorf("%v of %d ranks: %s, want %s", x.nodes, x.ranks, got, x.want)
		}
	}
}
