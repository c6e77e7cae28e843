package build

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
)

// TestEveryPlanIsRight proves, for random communicators and operations, that
// the data arrives, once, and nothing hangs.
func TestEveryPlanIsRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := draw.Layout(t, draw.Shape{
			PerNode:  rapid.IntRange(1, 8).Draw(t, "perNode"),
			Nodes:    rapid.IntRange(1, 4).Draw(t, "nodes"),
			Channels: rapid.IntRange(1, 6).Draw(t, "channels"),
		})
		r := draw.Request(t, c)
		p, err := Plan(c, r)
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		if err := check.Plan(p); err != nil {
			t.Fatalf("%v %v/%v: %v", r.Func, r.Algo, r.Proto, err)
		}
		checkCounts(t, p)
	})
}

// checkCounts compares NumOps with the ops that come, and their numbering.
func checkCounts(t interface{ Fatalf(string, ...any) }, p *plan.Plan) {
	var op plan.Op
	for rank := range int32(p.Comm.NRanks) {
		for _, pr := range p.Programs(rank) {
			n := int64(0)
			for c := p.Open(&pr); c.Next(&op); n++ {
				if int64(op.Seq) != n {
					t.Fatalf("%v: op %d is numbered %d", pr, n, op.Seq)
				}
			}
			if got := p.NumOps(&pr); got != n {
				t.Fatalf("%v %v %+v: NumOps %d, but %d come", p.Req.Func, p.Req.Algo, pr, got, n)
			}
		}
	}
}

// TestEveryKernelAtAwkwardSizes walks all kernels over sizes around every
// boundary: none, fewer than ranks, odd, one chunk more or less.
func TestEveryKernelAtAwkwardSizes(t *testing.T) {
	counts := []int64{0, 1, 2, 7, 255, 1000, 65537, 1 << 20}
	shapes := [][3]int{{1, 1, 1}, {2, 1, 2}, {3, 1, 4}, {8, 1, 8}, {1, 5, 1}, {4, 2, 4}, {2, 8, 2}}
	plans, ops := 0, int64(0)
	for _, s := range shapes {
		c := draw.Plain(s[0], s[1], s[2])
		for _, r := range draw.Kernels(s[1]) {
			for i, count := range counts {
				r.Count, r.Channels, r.InPlace = count, s[2], i%2 == 1
				r.Type = []coll.DataType{coll.Float32, coll.Int8, coll.Float64, coll.BFloat16}[i%4]
				r.Root = int32(i % c.NRanks)
				if testing.Short() && count > 70000 {
					continue
				}
				p, err := Plan(c, r)
				if err == nil {
					err = check.Plan(p)
				}
				if err != nil {
					t.Fatalf("%v ranks, %v %v/%v count %d %v: %v", s, r.Func, r.Algo, r.Proto, count, r.Type,
						err)
				}
				checkCounts(t, p)
				plans++
				ops += p.TotalOps()
			}
		}
	}
	t.Logf("%d plans of %d ops proven", plans, ops)
}

// TestPATAtEverySize: the aggregation of PAT depends on both ranks and size.
func TestPATAtEverySize(t *testing.T) {
	most := 70
	if testing.Short() {
		most = 20
	}
	for n := 2; n <= most; n++ {
		c := draw.Plain(1, n, 1)
		for _, f := range []coll.Func{coll.AllGather, coll.ReduceScatter} {
			for _, count := range []int64{1, 100, 4096, 65536, 300001} {
				for _, inPlace := range []bool{false, true} {
					p, err := Plan(c, plan.Request{Func: f, Algo: coll.PAT, Proto: coll.Simple, Count: count,
						Type: coll.Float32, Channels: 1, Warps: 16, InPlace: inPlace})
					if err == nil {
						err = check.Plan(p)
					}
					if err != nil {
						t.Fatalf("%v over %d ranks, %d elements: %v", f, n, count, err)
					}
				}
			}
		}
	}
}

// TestAllMachinesPlansAreRight proves plans on NCCL's own rings and trees, as
// chosen by NCCL.
func TestAllMachinesPlansAreRight(t *testing.T) {
	plans, ops := 0, int64(0)
	for i, path := range goldenFiles(t) {
		d := readGolden(t, path)
		if i%16 != 0 || d.NRanks < 2 || d.NRanks > 32 {
			continue
		}
		c := d.comm()
		for j := range d.Selection {
			g := &d.Selection[j]
			if g.Error != 0 || g.Size > 1<<22 || (testing.Short() && j%8 != 0) {
				continue
			}
			p, err := Plan(c, g.request(t))
			if err == nil {
				err = check.Plan(p)
			}
			if err != nil {
				t.Fatalf("%s: %s %d %s/%s: %v", path, g.Func, g.Size, g.Algo, g.Proto, err)
			}
			plans++
			ops += p.TotalOps()
		}
	}
	t.Logf("%d plans of %d ops proven", plans, ops)
}
