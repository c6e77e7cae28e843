package scenario_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/tuning"
)

// TestMachinesOfAMDThatAreRefused: what RCCL cannot do, or what is not modelled, is refused with what to
// write.
func TestMachinesOfAMDThatAreRefused(t *testing.T) {
	mixed := scenario.Machine{Nodes: []scenario.Nodes{{Topo: "mi300x-8-thor2", Count: 1},
		{Topo: "mi355x-8-thor2", Count: 1}}}
	domain := site.Nodes("mi300x-8-thor2", 2)
	domain.NVLinkDomain = 2
	for _, x := range []struct {
		machine       scenario.Machine
		version, want string
		env           []string
	}{
		{machine: mixed, want: "a communicator of gfx942 and gfx950"},
		{machine: domain, want: "GPUs of AMD have no links to another node"},
		{machine: site.Nodes("mi300x-8-thor2", 2), version: "rccl-2.27",
			want: `"2.27" is no version of RCCL`},
		{machine: site.Nodes("mi300x-8-thor2", 2), env: []string{"RCCL_OVERRIDE_ALGO=Rign"},
			want: "write one of Tree"},
	} {
		_, err := site.OpenFor(x.version, x.machine, x.env...)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v, want %q", err, x.want)
		}
	}
	_, err := site.Open(mixed)
	var refused *plan.UnsupportedError
	if !errors.As(err, &refused) {
		t.Errorf("%v, not by type", err)
	}
}

// TestNothingIsLeftForRCCL: where a list of algorithms leaves none of RCCL's there is no choice, by size or
// as a list of sizes.
func TestNothingIsLeftForRCCL(t *testing.T) {
	s := site.Load(t, site.Nodes("mi300x-8-thor2", 2), "NCCL_ALGO=NVLS")
	op := tuning.Op{Func: coll.AllReduce, Count: 1 << 18, Type: coll.Float32}
	var none *tuning.NoChoiceError
	if _, err := s.Comm.Choose(op); !errors.As(err, &none) {
		t.Errorf("%v", err)
	}
	if _, err := s.Comm.Model.Segments(op, 1<<30); err != nil && !errors.As(err, &none) {
		t.Errorf("%v", err)
	}
}
