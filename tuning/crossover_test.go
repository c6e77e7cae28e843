package tuning_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// TestSegmentsAgreeWithChoose walks every golden: the segments of each
// collective cover all sizes without a gap, and at every border, at its
// neighbours and at every golden's own size the model itself chooses what the
// segment says.
func TestSegmentsAgreeWithChoose(t *testing.T) {
	mixed, segments := 0, 0
	for _, path := range goldenFiles(t) {
		d := loadDoc(t, path)
		name := strings.TrimSuffix(filepath.Base(path), ".json.gz")
		if d.NRanks == 1 {
			continue
		}
		m, err := tuning.New(d.input(), d.params(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range coll.CollFuncs() {
			o := tuning.Op{Func: f, Type: coll.Float32}
			segs, err := m.Segments(o, 0)
			if err != nil {
				if _, e := m.Choose(tuning.Op{Func: f, Type: coll.Float32, Count: 1}); e == nil {
					t.Errorf("%s %s: %v", name, f, err)
				}
				continue
			}
			unit := tuning.Op{Func: f, Type: coll.Float32, Count: 1}.NBytes(d.NRanks)
			next := unit
			for i, s := range segs {
				segments++
				if s.Mixed {
					mixed++
				}
				if s.From != next || s.To < s.From {
					t.Fatalf("%s %s: segment %d is %+v, want it to begin at %d", name, f, i, s, next)
				}
				next = s.To + unit
				for _, at := range []units.Bytes{s.From, s.From + unit, (s.From + s.To) / 2 / unit * unit,
					s.To} {
					if at > s.To || s.Mixed && at != s.From {
						continue
					}
					o.Count = int64(at / unit)
					c, err := m.Choose(o)
					if err != nil || c.Algo != s.Algo || c.Proto != s.Proto {
						t.Fatalf("%s %s: at %d the model takes %s/%s (%v), the segment says %+v", name, f, at,
							c.Algo, c.Proto, err, s)
					}
				}
			}
		}
	}
	t.Logf("%d segments, %d of them mixed", segments, mixed)
	if mixed > segments/100 {
		t.Errorf("%d of %d segments undecided", mixed, segments)
	}
}

// TestSegmentsExhaustive compares with a walk over every element on one
// machine, up to 4 MiB.
func TestSegmentsExhaustive(t *testing.T) {
	d := loadDoc(t, "../testdata/topos/golden/dgx-h100.n2.json.gz")
	m, err := tuning.New(d.input(), d.params(t))
	if err != nil {
		t.Fatal(err)
	}
	const limit = 4 << 20
	for _, f := range coll.CollFuncs() {
		o := tuning.Op{Func: f, Type: coll.Float32}
		segs, err := m.Segments(o, limit)
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for o.Count = 1; o.NBytes(d.NRanks) <= limit; o.Count++ {
			n := o.NBytes(d.NRanks)
			for segs[i].To < n {
				i++
			}
			c, err := m.Choose(o)
			if err != nil {
				t.Fatal(err)
			}
			if !segs[i].Mixed && (c.Algo != segs[i].Algo || c.Proto != segs[i].Proto) {
				t.Fatalf("%s at %d bytes: the model takes %s/%s, the segment says %+v", f, n, c.Algo, c.Proto,
					segs[i])
			}
		}
	}
}

// TestDeriveEndsAtTheModel: what Derive returns is what the model computed, for
// every cell of every golden.
func TestDeriveEndsAtTheModel(t *testing.T) {
	for _, path := range goldenFiles(t) {
		d := loadDoc(t, path)
		m, err := tuning.New(d.input(), d.params(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range coll.CollFuncs() {
			for _, a := range coll.Algorithms() {
				for _, p := range coll.Protocols() {
					steps := m.Derive(f, a, p)
					raw := m.Raw[f][a][p]
					if (len(steps) == 0) != (raw == 0) || len(steps) > 0 && steps[len(steps)-1].GBps != raw {
						t.Fatalf("%s: %s %s %s: %v, the model has %g", filepath.Base(path), f, a, p, steps,
							raw)
					}
					n := len(steps)
					if n > 1 && strings.HasPrefix(steps[n-1].What, "bytes of") &&
						!near32(steps[n-2].GBps*ratio(f, a, d.NRanks), raw) {
						t.Fatalf("%s: %s %s %s: the last step hides a difference: %v", filepath.Base(path), f,
							a, p, steps)
					}
				}
			}
		}
	}
}

// ratio is the bytes of an operation per byte on the bus (tuning.cc:345).
func ratio(f coll.Func, a coll.Algorithm, ranks int) float32 {
	switch {
	case a != coll.Ring && a != coll.NVLS && a != coll.NVLSTree:
		return .5
	case f == coll.AllReduce:
		return float32(ranks) / float32(2*(ranks-1))
	case f == coll.AllGather || f == coll.ReduceScatter:
		return float32(ranks) / float32(ranks-1)
	}
	return 1
}

func near32(a, b float32) bool { return a-b <= 1e-6*b && b-a <= 1e-6*b }

// TestEveryOffCellHasAReason: a cell that cannot be taken says why, and one
// that can does not.
func TestEveryOffCellHasAReason(t *testing.T) {
	for _, path := range goldenFiles(t) {
		d := loadDoc(t, path)
		if d.NRanks == 1 {
			continue
		}
		m, err := tuning.New(d.input(), d.params(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range coll.CollFuncs() {
			o := tuning.Op{Func: f, Count: 1, Type: coll.Float32}
			c, _ := m.Choose(o)
			for a := range c.Times {
				for p, v := range c.Times[a] {
					why := m.WhyOff(o, coll.Algorithm(a), coll.Protocol(p))
					if (v < 0) != (len(why) > 0) {
						t.Fatalf("%s: %s %v %v: time %g, reasons %v", filepath.Base(path), f,
							coll.Algorithm(a), coll.Protocol(p), v, why)
					}
				}
			}
		}
	}
}
