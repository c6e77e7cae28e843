package parity

import (
	"errors"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
)

// TestRCCLPlansAreProven proves the plans of the ten own machines: all operations by Ring and Tree with
// every protocol, and those of sends and receives, of sizes that fill and do not fill the chunks.
func TestRCCLPlansAreProven(t *testing.T) {
	for _, version := range []string{"2.30.4", "2.28.3"} {
		proven, without := 0, 0
		for _, r := range golden.RCCL(t, version) {
			if r.Nodes > 2 || testing.Short() && r.Nodes > 1 || strings.HasPrefix(r.Name, "topo_") {
				continue
			}
			s, err := site.OpenFor(r.Version, site.Nodes(r.Topo, r.Nodes), "RCCL_DDA_ENABLE=0")
			if err != nil {
				t.Fatalf("%s: %v", r.Name, err)
			}
			n, no := provePlans(t, r.Name, s.Comm)
			proven, without = proven+n, without+no
		}
		t.Logf("RCCL %s: %d plans proven; %d combinations have no kernel", version, proven, without)
		if proven < 100 {
			t.Errorf("RCCL %s: only %d plans", version, proven)
		}
	}
}

func provePlans(t *testing.T, name string, c *comm.Comm) (proven, without int) {
	t.Helper()
	var proofs check.Proofs
	try := func(o comm.Op, a coll.Algorithm, p coll.Protocol) {
		t.Helper()
		pl, err := func() (*plan.Plan, error) {
			if o.Func.IsP2P() {
				pl, _, err := c.Plan(o)
				return pl, err
			}
			pl, _, err := c.PlanAs(o, a, p)
			return pl, err
		}()
		switch {
		case errors.Is(err, plan.ErrUnsupported):
			without++
			return
		case err == nil:
			_, err = proofs.Parts(pl)
		}
		if err != nil {
			t.Errorf("%s: %v of %d by %v, %v: %v", name, o.Func, o.Count, a, p, err)
		}
		proven++
	}
	for _, count := range []int64{1, 4099, 1 << 20} {
		for _, f := range coll.Funcs() {
			o := comm.Op{Func: f, Count: count, Type: coll.Float32}
			if f.IsP2P() {
				try(o, 0, 0)
				continue
			}
			for _, a := range []coll.Algorithm{coll.Ring, coll.Tree} {
				for _, p := range coll.Protocols() {
					try(o, a, p)
				}
			}
		}
	}
	return proven, without
}
