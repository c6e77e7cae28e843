package decision_test

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/ruletest"
	"github.com/simccl/simccl/study/decision"
)

// TestCostTextHasALineAnAlgorithm: below the protocols' names a line has an operation, an algorithm and the
// costs of each protocol.
func TestCostTextHasALineAnAlgorithm(t *testing.T) {
	c := ruletest.Comm(t, "cpu 0\n  gpu 11\n  gpu 12\n", 1)
	lines := strings.Split(strings.TrimSuffix(decision.CostText(c.Model), "\n"), "\n")
	costs := decision.Costs(c.Model)
	if want := 1 + len(costs)/int(coll.NumProtocols); len(lines) != want {
		t.Fatalf("%d lines, want %d", len(lines), want)
	}
	for i, l := range lines[1:] {
		of := costs[i*int(coll.NumProtocols)]
		if words := strings.Fields(l); len(words) < 2 || words[0] != of.Func || words[1] != of.Algo ||
			strings.Count(l, "/") != int(coll.NumProtocols) {
			t.Errorf("%q, want the costs of %s by %s", l, of.Func, of.Algo)
		}
	}
}
