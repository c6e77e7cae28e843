package scenario_test

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/scenario"
)

// TestNodesAreBounded: the nodes of a machine are counted before any of them is laid out.
func TestNodesAreBounded(t *testing.T) {
	for _, nodes := range [][]scenario.Nodes{
		{{Count: 4294967295}},
		{{Count: scenario.MaxNodes}, {}},
		{{Count: 1<<63 - 1}, {Count: 1<<63 - 1}},
	} {
		_, err := scenario.Load(&scenario.Spec{Machine: scenario.Machine{Nodes: nodes}}, scenario.Options{})
		if err == nil || !strings.Contains(err.Error(), "more than 65536 nodes in all") {
			t.Errorf("%v: %v", nodes, err)
		}
	}
}
