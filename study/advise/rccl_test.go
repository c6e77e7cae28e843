package advise

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/scenario"
)

// TestAdviceForAMDIsOfRCCLsVariables: on machines of AMD only variables are tried that RCCL reads, its own
// among them, with threads that its kernels can have; on others none of RCCL's.
func TestAdviceForAMDIsOfRCCLsVariables(t *testing.T) {
	tried := func(topo string, nodes int) (names []string) {
		var warned []string
		opt := here()
		opt.Warn = func(err error) { warned = append(warned, err.Error()) }
		q := Request{Options: opt, Spec: scenario.Spec{
			Machine:  scenario.Machine{Nodes: []scenario.Nodes{{Topo: topo, Count: nodes}}},
			Workload: scenario.Workload{Op: "all_reduce", Sizes: []string{"32M"}},
			Engine:   scenario.Engine{Launch: "graph", Jitter: "off"}}}
		base, site, err := q.run(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range q.candidates(site, base) {
			spec := with(&q.Spec, &s)
			spec.Workload = scenario.Workload{}
			if _, err := scenario.Load(&spec, opt); err != nil {
				t.Errorf("%s, %d nodes: %v: %v", topo, nodes, s.Lines(), err)
			}
			names = append(names, s.Lines()...)
		}
		if len(warned) > 0 {
			t.Errorf("%s, %d nodes: %q", topo, nodes, warned)
		}
		return names
	}
	for topo, want := range map[string][]string{
		"mi300x-8-thor2": {"RCCL_CHANNEL_TUNING_ENABLE=0", "RCCL_MODEL_MATCHING_DISABLE=1",
			"RCCL_THREADS_PER_BLOCK=192", "NCCL_ALGO=Tree", "NCCL_MAX_NCHANNELS=32"},
		"mi210-4": {"RCCL_CHANNEL_TUNING_ENABLE=0", "RCCL_THREADS_PER_BLOCK=256"},
	} {
		names := tried(topo, 2)
		for _, w := range want {
			if !slices.Contains(names, w) {
				t.Errorf("%s: %s is not among %v", topo, w, names)
			}
		}
		for _, n := range names {
			if strings.Contains(n, "NVLS") || strings.HasPrefix(n, "NCCL_LL128_NTHREADS") ||
				n == "RCCL_DDA_ENABLE=0" {
				t.Errorf("%s: %s is tried", topo, n)
			}
		}
	}
	if names := tried("mi300x-8-thor2", 1); !slices.Contains(names, "RCCL_DDA_ENABLE=0") {
		t.Errorf("on one node DDA is not left out: %v", names)
	}
	if names := tried("h200x4", 1); strings.Contains(strings.Join(names, " "), "RCCL") {
		t.Errorf("of NVIDIA: %v", names)
	}
}
