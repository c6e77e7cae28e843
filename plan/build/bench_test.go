package build

import (
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
)

func benchPlan(tb testing.TB, f coll.Func, a coll.Algorithm, count int64, nodes int) *plan.Plan {
	tb.Helper()
	p, err := Plan(draw.Plain(8, nodes, 16), plan.Request{Func: f, Algo: a, Proto: coll.Simple,
		Count: count, Type: coll.Float32, Channels: 16, Warps: 17})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// BenchmarkCursor measures ops per second of each generator.
func BenchmarkCursor(b *testing.B) {
	for _, bm := range []struct {
		name  string
		f     coll.Func
		a     coll.Algorithm
		nodes int
	}{
		{"ring_all_reduce", coll.AllReduce, coll.Ring, 16},
		{"ring_all_gather", coll.AllGather, coll.Ring, 16},
		{"tree_all_reduce", coll.AllReduce, coll.Tree, 16},
		{"pat_all_gather", coll.AllGather, coll.PAT, 16},
		{"pat_reduce_scatter", coll.ReduceScatter, coll.PAT, 16},
		{"nvlstree_all_reduce", coll.AllReduce, coll.NVLSTree, 16},
		{"alltoall", coll.AllToAll, coll.Ring, 2},
	} {
		b.Run(bm.name, func(b *testing.B) {
			p := benchPlan(b, bm.f, bm.a, 1<<28, bm.nodes)
			prog := p.Programs(5)[0]
			var cur plan.Cursor
			var op plan.Op
			p.OpenInto(&cur, &prog)
			b.ReportAllocs()
			for b.Loop() {
				if !cur.Next(&op) {
					p.OpenInto(&cur, &prog)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
		})
	}
}

func BenchmarkBuild(b *testing.B) {
	c := draw.Plain(8, 128, 16)
	r := plan.Request{Func: coll.AllReduce, Algo: coll.Ring, Proto: coll.Simple, Count: 1 << 28,
		Type: coll.Float32, Channels: 16, Warps: 17}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Plan(c, r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	p := benchPlan(b, coll.AllReduce, coll.Ring, 1<<22, 4)
	b.ReportMetric(float64(p.TotalOps()), "ops")
	for b.Loop() {
		if err := check.Plan(p); err != nil {
			b.Fatal(err)
		}
	}
}

// TestCursorDoesNotAllocate: the simulator opens a cursor per thread group
// once and steps through millions of ops.
func TestCursorDoesNotAllocate(t *testing.T) {
	for _, a := range []coll.Algorithm{coll.Ring, coll.Tree, coll.NVLSTree} {
		p := benchPlan(t, coll.AllReduce, a, 1<<26, 4)
		progs := p.Programs(3)
		var cur plan.Cursor
		var op plan.Op
		p.OpenInto(&cur, &progs[0])
		if n := testing.AllocsPerRun(1000, func() { cur.Next(&op) }); n != 0 {
			t.Errorf("%v: %v allocations per op", a, n)
		}
	}
}

// BenchmarkAtScale: what a folding simulation asks of a plan of 102,400 ranks.
func BenchmarkAtScale(b *testing.B) {
	c := draw.Plain(8, 12800, 16)
	for _, bm := range []struct {
		name string
		a    coll.Algorithm
	}{{"ring", coll.Ring}, {"tree", coll.Tree}, {"nvlstree", coll.NVLSTree}} {
		r := plan.Request{Func: coll.AllReduce, Algo: bm.a, Proto: coll.Simple, Count: 1 << 28,
			Type: coll.Float32, Channels: 16, Warps: 17}
		b.Run("build/"+bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Plan(c, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
