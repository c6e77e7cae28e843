package parity

import (
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// TestRCCLSegmentsAgreeWithChoose: the ranges in which one algorithm and protocol are taken cover all sizes,
// and at their borders and within them RCCL's choice, with all that changes it after the minimum of times, is
// theirs.
func TestRCCLSegmentsAgreeWithChoose(t *testing.T) {
	for _, version := range []string{"2.30.4", "2.28.3"} {
		refs := golden.Few(golden.RCCL(t, version), 15)
		for i := range refs {
			r := &refs[i]
			s, err := site.OpenFor(r.Version, site.Nodes(r.Topo, r.Nodes))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range coll.CollFuncs() {
				checkSegments(t, r.Name, s.Comm.Model, f)
			}
		}
	}
}

func checkSegments(t *testing.T, name string, m *tuning.Model, f coll.Func) {
	t.Helper()
	o := tuning.Op{Func: f, Type: coll.Float32}
	segs, err := m.Segments(o, 0)
	if err != nil {
		t.Fatalf("%s %s: %v", name, f, err)
	}
	unit := tuning.Op{Func: f, Type: coll.Float32, Count: 1}.NBytes(m.In.NRanks)
	next := unit
	for i, s := range segs {
		if s.From != next || s.To < s.From {
			t.Fatalf("%s %s: segment %d is %+v, want it to begin at %d", name, f, i, s, next)
		}
		next = s.To + unit
		for _, at := range []units.Bytes{s.From, s.From + unit, (s.From + s.To) / 2 / unit * unit, s.To} {
			if at > s.To || s.Mixed && at != s.From {
				continue
			}
			o.Count = int64(at / unit)
			c, err := m.Choose(o)
			if err != nil || c.Algo != s.Algo || c.Proto != s.Proto || c.Direct != s.Direct {
				t.Fatalf("%s %s: at %d RCCL takes %s/%s %s (%v), the segment says %+v", name, f, at, c.Algo,
					c.Proto, c.Direct, err, s)
			}
		}
	}
}
