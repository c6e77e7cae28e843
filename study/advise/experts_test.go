package advise

import (
	"context"
	"strings"
	"testing"

	"github.com/simccl/simccl/plan/peer"
	"github.com/simccl/simccl/scenario"
)

func layouts(t *testing.T, topo string, nodes int, tokens int) *Layouts {
	t.Helper()
	q := Request{Spec: scenario.Spec{Format: scenario.FormatVersion, Engine: scenario.Engine{Launch: "graph"},
		Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: topo, Count: nodes}}},
		Workload: scenario.Workload{Op: scenario.Dispatch, Serving: scenario.Serving{Experts: 256, TopK: 8,
			Hidden: 7168, Tokens: tokens}}}}
	l, err := Experts(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestExperts: of many tokens between nodes the links bound those that send once to a node, with no more SMs
// than that takes, and they gain on those that send once for each expert; of few the fixed costs do. What a
// machine lacks comes last, with the reason.
func TestExperts(t *testing.T) {
	at := func(l *Layouts, kernel string) (int, Layout) {
		for i, r := range l.Rows {
			if r.Kernel == kernel {
				return i, r
			}
		}
		t.Fatalf("no %s", kernel)
		return 0, Layout{}
	}
	many := layouts(t, "dgx-h200", 4, 8192)
	v2, best := at(many, peer.DeepEPV2)
	ll, last := at(many, peer.DeepEPLowLatency)
	if v2 > ll || !strings.HasPrefix(best.Bound, "link ") || best.SMs > 12 || best.Gain <= 1 ||
		last.Us < 2*best.Us {
		t.Errorf("%+v %+v", best, last)
	}
	if _, few := at(layouts(t, "dgx-h200", 1, 1), peer.DeepEP); few.SMs != 4 || !strings.HasPrefix(few.Bound,
		"fixed") {
		t.Errorf("one token: %+v", few)
	}
	efa := layouts(t, "aws-p5", 2, 128)
	if efa.Rows[0].Kernel != scenario.NCCLKernel || efa.Rows[1].Refused == "" ||
		!strings.Contains(efa.Text(), "over efa-v2") {
		t.Errorf("%+v", efa)
	}
}
