package parity

import (
	"errors"
	"strings"
	"testing"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/builtin"
)

// runAMD simulates one size of an operation on a machine by name.
func runAMD(t *testing.T, machine string, nodes int, op, size string, env ...string) (*scenario.Result,
	error) {
	t.Helper()
	spec := scenario.Spec{Machine: site.Nodes(machine, nodes),
		Workload: scenario.Workload{Op: op, Sizes: []string{size}}}
	opt := site.Options()
	opt.Settings.Flags = env
	return scenario.Run(t.Context(), spec, opt)
}

// TestUnmodelledOfRCCLIsRefused: what RCCL 2.30.4 does in a way that has no plan here is an error of its
// type, which names the way and what leaves it out; with that set, and beyond the way's sizes, the operation
// runs.
func TestUnmodelledOfRCCLIsRefused(t *testing.T) {
	for _, c := range []struct {
		machine      string
		nodes        int
		op, size     string
		way, without string
	}{
		{"mi300x-8-thor2", 1, "all_gather", "1M", "DDA", "RCCL_DDA_ENABLE=0 RCCL_DIRECT_ALLGATHER_DISABLE=1"},
		{"mi300x-8-thor2", 1, "reduce_scatter", "1M", "DDA", "RCCL_DDA_ENABLE=0"},
		{"mi300x-8-thor2", 1, "alltoall", "4M", "DDA", "RCCL_DDA_ENABLE=0"},
		{"mi355x-8-thor2", 1, "alltoall", "64M", "DDA", "RCCL_DDA_ENABLE=0"},
		{"mi300x-8-thor2", 2, "all_gather", "1M", "AllGatherDirect", "RCCL_DIRECT_ALLGATHER_DISABLE=1"},
		{"mi355x-8-thor2", 4, "reduce_scatter", "1M", "ReduceScatterDirect",
			"RCCL_DIRECT_REDUCE_SCATTER_DISABLE=1"},
		{"mi300x-8-thor2", 8, "all_gather", "32M", "Hierarchical", "RCCL_HIERARCHICAL_ALLGATHER=0"},
	} {
		without := strings.Fields(c.without)
		_, err := runAMD(t, c.machine, c.nodes, c.op, c.size)
		if !errors.Is(err, plan.ErrUnsupported) || !strings.Contains(err.Error(), c.way) ||
			!strings.Contains(err.Error(), without[0]) {
			t.Errorf("%s of %s on %d %s: %v, want %s to be refused", c.op, c.size, c.nodes, c.machine, err,
				c.way)
		}
		if c.nodes > 2 {
			continue
		}
		if _, err := runAMD(t, c.machine, c.nodes, c.op, c.size, without...); err != nil {
			t.Errorf("%s with %s: %v", c.op, c.without, err)
		}
	}
	if _, err := runAMD(t, "mi300x-8-thor2", 1, "alltoall", "8M"); err != nil {
		t.Errorf("alltoall beyond DDA: %v", err)
	}
	for _, set := range []string{"RCCL_WARP_SPEED_FORCE_ENABLE=1", "RCCL_TREES=x", "NCCL_RINGS=0 1",
		"RCCL_ALL_TO_ALL_PIVOT_ENABLE=1", "RCCL_ENABLE_INTRANET=1"} {
		var refused *config.UnmodelledError
		if _, err := runAMD(t, "mi300x-8-thor2", 1, "all_reduce", "32M", set); !errors.As(err, &refused) {
			t.Errorf("%s: %v, want an UnmodelledError", set, err)
		}
	}
}

// TestMachinesOfAMDRun: every machine of AMD by name runs an AllReduce and sends and receives on one and two
// nodes.
func TestMachinesOfAMDRun(t *testing.T) {
	ran := 0
	for _, m := range builtin.List() {
		name := m.Name
		if !m.AMD {
			continue
		}
		ran++
		for nodes := 1; nodes <= 2 && (nodes == 1 || name != "mi300x-8-no-nic"); nodes++ {
			for _, op := range []string{"all_reduce", "sendrecv"} {
				r, err := runAMD(t, name, nodes, op, "1M")
				if err != nil || r.Rows[0].Out.Time <= 0 {
					t.Errorf("%s, %d nodes, %s: %v", name, nodes, op, err)
				}
			}
		}
	}
	if ran < 12 {
		t.Errorf("only %d machines of AMD", ran)
	}
}
