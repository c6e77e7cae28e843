package accuracy

import (
	"math"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/plan/sym"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim"
)

// Groups of AllGathers in windows on 4 x H200 that NCCL did in one symmetric kernel
// each, measured as device time in CUDA graphs (2026-11-22). Parts that no word divides
// go byte by byte.
func TestSymmetricGroups(t *testing.T) {
	opt := site.Options()
	opt.Files = site.Files(t)
	spec := scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "h200x4-4.xml"}},
		Multicast: "off"},
		Workload: scenario.Workload{Op: "all_gather"}, Engine: scenario.Engine{Launch: "graph"}}
	r, err := scenario.Prepare(spec, opt)
	if err != nil {
		t.Fatal(err)
	}
	gather := func(count int64, typ coll.DataType) sym.Task {
		return sym.Task{Func: coll.AllGather, Type: typ, Count: count, Windows: sym.Both}
	}
	for _, tt := range []struct {
		us    float64
		tasks []sym.Task // by size, as NCCL sorts them
	}{
		{39.86, []sym.Task{gather(696704, coll.BFloat16), gather(17805, coll.Float16),
			gather(995, coll.BFloat16), gather(128, coll.BFloat16), gather(67, coll.Float32)}},
		{114.36, []sym.Task{gather(881743, coll.BFloat16), gather(92, coll.BFloat16),
			gather(71, coll.BFloat16)}},
		{12.69, []sym.Task{gather(3584, coll.Float32), gather(1845, coll.Float32), gather(256, coll.Float32),
			gather(238, coll.Float32), gather(154, coll.BFloat16)}},
	} {
		launches, rest, err := r.Site.Comm.Symmetric().Launches(tt.tasks, nil)
		if err != nil || len(rest) > 0 || len(launches) != 1 {
			t.Fatalf("%d kernels, %d tasks left, %v", len(launches), len(rest), err)
		}
		cfg, err := r.Site.SimConfig(&spec)
		if err != nil {
			t.Fatal(err)
		}
		x, err := sim.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		res, err := x.Symmetric(t.Context(), &launches[0])
		if err != nil {
			t.Fatal(err)
		}
		off := res.Elapsed.Micros()/tt.us - 1
		t.Logf("%s: simulated %.2f us, measured %.2f us, off %.1f %%", launches[0].Line(),
			res.Elapsed.Micros(), tt.us, 100*off)
		if math.Abs(off) > .1 {
			t.Errorf("off %.1f %%", 100*off)
		}
	}
}
