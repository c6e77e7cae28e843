package fabric_test

import (
	"testing"

	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// TestFabricOfAllOrNone holds mnnvl.cc:27-46: one host without a completed
// fabric, or with a zero cluster UUID, switches MNNVL off for every rank, and
// the hosts of each domain are machines of their own.
func TestFabricOfAllOrNone(t *testing.T) {
	domain, tray, dgx := specOf(t, "gb200-nvl72-2tray"), specOf(t, "gb200-nvl72-tray"), specOf(t, "dgx-h100")
	for _, c := range []struct {
		name     string
		members  []fabric.Member
		gpus     int
		split    bool // NCCL_MNNVL_ENABLE=0
		ranks    []int
		noFabric string
	}{
		{"domains alone", []fabric.Member{{Spec: domain, Count: 2}}, 0, false, []int{8, 8}, ""},
		{"and a DGX", []fabric.Member{{Spec: domain, Count: 2}, {Spec: dgx, Count: 1}}, 0, false,
			[]int{4, 4, 4, 4, 8}, "dgx-h100.xml"},
		{"and a tray without IMEX", []fabric.Member{{Spec: tray, Count: 1}, {Spec: domain, Count: 1}}, 0,
			false, []int{4, 4, 4}, "gb200-nvl72-tray.xml"},
		{"and a tray with a fabric", []fabric.Member{{Spec: tray, Count: 1, Fabric: true},
			{Spec: domain, Count: 1}}, 0, false, []int{4, 8}, ""},
		{"one with a fabric, one without", []fabric.Member{{Spec: tray, Count: 1, Fabric: true},
			{Spec: dgx, Count: 1}, {Spec: domain, Count: 1}}, 0, false, []int{4, 8, 4, 4}, "dgx-h100.xml"},
		{"none of the other", []fabric.Member{{Spec: domain, Count: 1}, {Spec: dgx, Count: 0}}, 0, false,
			[]int{8}, ""},
		{"trays alone", []fabric.Member{{Spec: tray, Count: 2}, {Spec: dgx, Count: 1}}, 0, false,
			[]int{4, 4, 8}, ""},
		{"six GPUs of each", []fabric.Member{{Spec: domain, Count: 2}, {Spec: dgx, Count: 1}}, 6, false,
			[]int{4, 2, 4, 2, 6}, "dgx-h100.xml"},
		{"three GPUs of each", []fabric.Member{{Spec: domain, Count: 2}, {Spec: dgx, Count: 1}}, 3, false,
			[]int{3, 3, 3}, "dgx-h100.xml"},
		{"six GPUs, switched off", []fabric.Member{{Spec: domain, Count: 1}}, 6, true, []int{4, 2}, ""},
	} {
		p := topo.DefaultParams()
		p.SplitHosts = c.split
		if c.gpus > 0 {
			p.GPUs = units.Some(c.gpus)
		}
		cl, err := fabric.New(c.members, p)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var ranks []int
		for h := range cl.NHosts() {
			ranks = append(ranks, cl.Host(h).NRanks())
			for _, s := range cl.Host(h).Systems {
				if s.NHosts > 1 && cl.NoFabric != "" {
					t.Errorf("%s: host %d is still a domain of %d", c.name, h, s.NHosts)
				}
			}
		}
		same := len(ranks) == len(c.ranks)
		for i := range ranks {
			same = same && ranks[i] == c.ranks[i]
		}
		if !same || cl.NoFabric != c.noFabric {
			t.Errorf("%s: ranks of the hosts %v, no fabric on %q; want %v and %q", c.name, ranks, cl.NoFabric,
				c.ranks, c.noFabric)
		}
	}
	p := topo.DefaultParams()
	p.GPUs = units.Some(9)
	if _, err := fabric.New([]fabric.Member{{Spec: domain, Count: 1}, {Spec: dgx, Count: 1}}, p); err == nil {
		t.Error("nine GPUs of a domain of eight were given")
	}
}
