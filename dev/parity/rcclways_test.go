package parity

import (
	"errors"
	"strings"
	"testing"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/site"
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

// TestWaysOfRCCLRun: what RCCL 2.30.4 does in place of an algorithm is planned, proven and timed; groups have
// neither DDA nor hierarchical AllGathers.
func TestWaysOfRCCLRun(t *testing.T) {
	for _, c := range []struct {
		machine  string
		nodes    int
		op, size string
		algo     string // what does it
		grouped  string // what does it in a group of two
	}{
		{"mi300x-8-thor2", 1, "all_reduce", "256K", "PEER dda-flat", "RING"},
		{"mi300x-8-thor2", 1, "all_reduce", "1M", "PEER dda-tree", "RING"},
		{"mi300x-8-thor2", 1, "all_gather", "1M", "PEER dda", "ALLGATHERDIRECT"},
		{"mi300x-8-thor2", 1, "reduce_scatter", "1M", "PEER dda", "RING"},
		{"mi300x-8-thor2", 1, "alltoall", "4M", "PEER dda", "P2P"},
		{"mi300x-8-thor2", 1, "alltoall", "8M", "P2P", ""},
		{"mi355x-8-thor2", 1, "alltoall", "64M", "PEER dda", ""},
		{"mi300x-8-thor2", 2, "all_gather", "1M", "ALLGATHERDIRECT", "ALLGATHERDIRECT"},
		{"mi300x-8-thor2", 2, "all_gather", "8M", "RING", ""},
		{"mi355x-8-thor2", 4, "reduce_scatter", "1M", "REDUCESCATTERDIRECT", ""},
		{"mi300x-8-thor2", 8, "all_gather", "32M", "HIERARCHICAL", ""},
		{"frontier", 8, "all_gather", "16M", "HIERARCHICAL", ""},
	} {
		r, err := runAMD(t, c.machine, c.nodes, c.op, c.size)
		if err != nil {
			t.Errorf("%s of %s on %d %s: %v", c.op, c.size, c.nodes, c.machine, err)
			continue
		}
		row := &r.Rows[0]
		if got := strings.TrimSpace(row.Facts.Algo + " " + row.Facts.Kernel); got != c.algo ||
			!row.Out.Checked ||
			row.Out.Time <= 0 {
			t.Errorf("%s of %s on %d %s: %s, proven %v, %v; want %s", c.op, c.size, c.nodes, c.machine, got,
				row.Out.Checked, row.Out.Time, c.algo)
		}
		if c.grouped == "" {
			continue
		}
		spec := scenario.Spec{Machine: site.Nodes(c.machine, c.nodes),
			Workload: scenario.Workload{Op: c.op, Sizes: []string{c.size}, Group: 2}}
		if r, err = scenario.Run(t.Context(), spec, site.Options()); err != nil {
			t.Errorf("two of %s: %v", c.op, err)
		} else if got := r.Rows[0].Facts.Algo; got != c.grouped {
			t.Errorf("two of %s of %s: %s, want %s", c.op, c.size, got, c.grouped)
		}
	}
}

// TestUnmodelledOfRCCLIsRefused: a setting by which RCCL would do what is not modelled is an error of its
// type.
func TestUnmodelledOfRCCLIsRefused(t *testing.T) {
	for _, set := range []string{"RCCL_WARP_SPEED_FORCE_ENABLE=1", "RCCL_TREES=x", "NCCL_RINGS=0 1",
		"NCCL_RINGS_REMAP=x", "RCCL_ALL_TO_ALL_PIVOT_ENABLE=1", "RCCL_ENABLE_INTRANET=1"} {
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
