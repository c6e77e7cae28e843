package sim_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace"
	"pgregory.net/rapid"
)

// cluster is a communicator of the tests below.
type cluster struct {
	machine string
	nodes   int
	small   bool // buffers
	c       *comm.Comm
	systems []*topo.System
}

func (s *cluster) String() string {
	return fmt.Sprintf("%d %s, small buffers %v", s.nodes, s.machine, s.small)
}

// clusters are made as they are drawn, of one to nine nodes.
type clusters map[string]*cluster

// nodesDrawn are numbers of nodes, small ones oftener.
var nodesDrawn = []int{1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 5, 6, 7, 8, 9}

func (all clusters) draw(tb testing.TB, t *rapid.T) *cluster {
	m := &cluster{machine: rapid.SampledFrom([]string{"dgx-h100.n2", "dgx-h100+nvls.n2", "dgx-h100+nvls.n2",
		"dgx-a100.n2", "hgx-a100-4.n2", "gh200.n2", "dgx-1v.n2", "pcie-l40s-8.n2", "pcie-rtx4090-8.n2"}).Draw(
		t, "machine"),
		nodes: rapid.SampledFrom(nodesDrawn).Draw(t, "nodes"), small: rapid.Bool().Draw(t, "small buffers")}
	if m.machine == "gh200.n2" {
		m.nodes = min(9, m.nodes+1)
	}
	if strings.HasPrefix(m.machine, "pcie-") { // more take long rank by rank
		m.nodes = min(4, m.nodes)
	}
	if was := all[m.String()]; was != nil {
		return was
	}
	p := comm.Params{}
	if m.small {
		p = smallBuffers()
	}
	m.c, m.systems = nodes(tb, m.machine, m.nodes, p)
	all[m.String()] = m
	return m
}

// drawnFuncs are all operations, those oftener that fold in many ways.
var drawnFuncs = append(coll.Funcs(), coll.AllReduce, coll.AllReduce, coll.AllReduce, coll.AllReduce,
	coll.AllGather, coll.ReduceScatter, coll.AllToAll, coll.AllToAll)

// anyRequest draws an operation with NCCL's choice or another one; ok is false where that
// has no plan.
func anyRequest(t *rapid.T, m *cluster, largest int) (req plan.Request, ok bool) {
	f := rapid.SampledFrom(drawnFuncs).Draw(t, "op")
	op := comm.Op{Func: f, Type: rapid.SampledFrom([]coll.DataType{coll.Float32, coll.Int8}).Draw(t, "type")}
	bytes := int64(1) << rapid.IntRange(2, largest).Draw(t, "doublings") * rapid.SampledFrom([]int64{
		1, 1, 3}).Draw(t, "times")
	if rapid.Bool().Draw(t, "of each rank") {
		bytes *= int64(m.c.NRanks)
	}
	bytes += rapid.SampledFrom([]int64{0, 0, 0, 0, 0, 0, 4, 20, 64, 100}).Draw(t, "more")
	op.Count = max(1, bytes/int64(op.Type.Size()))
	if f.PerRank() {
		op.Count = max(1, op.Count/int64(m.c.NRanks))
	}
	if f.Rooted() {
		op.Root = int32(rapid.IntRange(0, m.c.NRanks-1).Draw(t, "root"))
	}
	req, _, err := m.c.Request(op)
	if err != nil {
		return req, false
	}
	if !f.IsP2P() && rapid.Bool().Draw(t, "not NCCL's choice") {
		algos := []coll.Algorithm{coll.Ring}
		switch {
		case f == coll.AllReduce && m.machine == "dgx-h100+nvls.n2":
			algos = append(algos, coll.Tree, coll.NVLSTree)
			if m.nodes == 1 {
				algos[2] = coll.NVLS
			}
		case f == coll.AllReduce:
			algos = append(algos, coll.Tree)
		case m.machine == "gh200.n2" && (f == coll.AllGather || f == coll.ReduceScatter):
			algos = append(algos, coll.PAT)
		}
		req.Algo = rapid.SampledFrom(algos).Draw(t, "algorithm")
		req.Proto = rapid.SampledFrom([]coll.Protocol{coll.LL, coll.LL128, coll.Simple}).Draw(t, "protocol")
		if req.Algo.IsNVLS() || req.Algo == coll.PAT {
			req.Proto = coll.Simple
		}
		req.Warps = 16
		if rapid.Bool().Draw(t, "few channels") {
			req.Channels = rapid.IntRange(1, min(4, m.c.NChannels)).Draw(t, "channels")
		}
	}
	_, err = build.Plan(m.c.Layout, req)
	return req, err == nil
}

// anyConfig draws the rest of a simulation.
func anyConfig(t *rapid.T, m *cluster) sim.Config {
	class := sim.ClassOf(m.systems[0])
	cfg := sim.Config{Systems: m.systems, Class: &class, Launch: sim.Graph,
		Seed: rapid.Uint64Range(1, 9).Draw(t, "seed"), NoJitter: rapid.IntRange(0, 4).Draw(t, "jitter") == 4,
		Kernels: rapid.SampledFrom([]int{1, 1, 1, 2, 0}).Draw(t, "kernels"),
		QPs:     rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(t, "qps"), SplitData: rapid.Bool().Draw(t,
			"split")}
	switch rapid.IntRange(0, 11).Draw(t, "fault") {
	case 0:
		cfg.Faults = []sim.Fault{{Rank: rapid.IntRange(0, m.c.NRanks-1).Draw(t, "slow rank"), Slow: 1.5}}
	case 1:
		if m.nodes > 1 {
			cfg.Faults = []sim.Fault{{Rank: -1, Host: rapid.IntRange(0, m.nodes-1).Draw(t, "host"), Slow: 2}}
		}
	}
	return cfg
}

// sameTimes compares what two ways found: times of all ranks, and bytes, busy times and
// queues of the links that both have.
func sameTimes(a, b *exec.Result) error {
	if a.Elapsed != b.Elapsed || a.AlgBW != b.AlgBW || a.BusBW != b.BusBW {
		return fmt.Errorf("%v and %v", a.Elapsed, b.Elapsed)
	}
	if !slices.Equal(a.Finish, b.Finish) {
		return fmt.Errorf("ranks end at %v and %v", a.Finish, b.Finish)
	}
	if len(a.Links) == len(b.Links) {
		for i := range a.Links {
			if a.Links[i] != b.Links[i] {
				return fmt.Errorf("links %+v and %+v", a.Links[i], b.Links[i])
			}
		}
		return nil
	}
	of, times := map[string]exec.LinkLoad{}, map[string]int{}
	for _, l := range b.Links {
		of[l.Name] = l
		times[l.Name]++ // a host's memory has several by one name
	}
	common := 0
	for _, l := range a.Links {
		if times[l.Name] != 1 {
			continue
		}
		if common++; of[l.Name] != l {
			return fmt.Errorf("links %+v and %+v", l, of[l.Name])
		}
	}
	if common == 0 {
		return fmt.Errorf("no link of %d and %d in common", len(a.Links), len(b.Links))
	}
	return nil
}

// runSharing simulates a request whose equivalent ranks share their jitter from so many
// pieces on.
func runSharing(t testing.TB, c *comm.Comm, cfg sim.Config, req plan.Request, sink trace.Sink,
	share int64) exec.Result {
	p, err := build.Plan(c.Layout, req)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Comm = c.Layout
	x, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	x.Share(share)
	r, err := x.Run(context.Background(), exec.One(p), sink)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// GPUs that reach each other through host memory fold as others do: it is as fast as what all
// of a node have in transit there lets it, and what comes from it is read over PCIe.
func TestFoldsThroughHostMemory(t *testing.T) {
	oneGoroutine(t)
	for _, x := range []struct {
		nodes int
		op    comm.Op
	}{
		{3, comm.Op{Func: coll.AllToAll, Count: 24504}},
		{4, comm.Op{Func: coll.AllToAll, Count: 16384, InPlace: true}},
	} {
		c, systems := nodes(t, "pcie-l40s-8.n2", x.nodes, comm.Params{})
		x.op.Type = coll.Float32
		req, _, err := c.Request(x.op)
		if err != nil {
			t.Fatal(err)
		}
		cfg := sim.Config{Systems: systems, Launch: sim.Graph, NoJitter: true, Kernels: 1,
			Fold: sim.FoldExact}
		folded := runSharing(t, c, cfg, req, trace.Discard, 0)
		cfg.Fold = sim.Unfolded
		each := runSharing(t, c, cfg, req, trace.Discard, 0)
		if err := sameTimes(&folded, &each); err != nil || folded.Account.Method != exec.Folded {
			t.Errorf("%d nodes, %+v, %v: %v", x.nodes, x.op, folded.Account, err)
		}
	}
}

// A time depends on the operation alone: it is the same to the picosecond with ranks
// folded and one by one, as a trace shows it and, but for windows, with periods skipped
// and in full; with jitter, too, whose draws are those of the operation. On 200
// programs (make equal: 2,500).
func TestTimesDependOnTheOperationAlone(t *testing.T) {
	oneGoroutine(t)
	all, seen := clusters{}, map[string]int{}
	programs := 0
	rapid.Check(t, func(rt *rapid.T) {
		for range programsDrawn() {
			m := all.draw(t, rt)
			req, ok := anyRequest(rt, m, 11)
			if !ok {
				continue
			}
			cfg := anyConfig(rt, m)
			share := rapid.SampledFrom([]int64{0, 0, 0, -1}).Draw(rt, "share")
			run := func(how string, fold sim.Folding, whole bool, sink trace.Sink) exec.Result {
				own := cfg
				own.Fold, own.NoSkip = fold, whole
				r := runSharing(t, m.c, own, req, sink, share)
				seen[how+" "+r.Account.Method.String()]++
				return r
			}
			must := func(what string, a, b exec.Result) {
				if err := sameTimes(&a, &b); err != nil {
					rt.Fatalf("%v, %v %v/%v of %d, %d channels, %d warps, root %d, %+v\n%s (%v, %v): %v", m,
						req.Func, req.Algo, req.Proto, req.Count, req.Channels, req.Warps, req.Root, cfg,
						what, a.Account.Method, b.Account.Method, err)
				}
			}
			programs++
			byDefault, each := run("default", sim.FoldAuto, false, trace.Discard),
				run("off", sim.Unfolded, false, trace.Discard)
			near := byDefault.Account.Method == exec.Near // rings, and only for their cost
			if !byDefault.Account.ByCost && !near {
				must("folded and rank by rank", byDefault, each)
			}
			if d := math.Abs(float64(byDefault.Elapsed)/float64(each.Elapsed) - 1); near &&
				d > byDefault.Account.Margin {
				rt.Fatalf("%v, %v/%v of %d: near %v, rank by rank %v", m, req.Func, req.Proto, req.Count,
					byDefault.Elapsed, each.Elapsed)
			}
			whole := each
			if cfg.NoJitter || each.Account.Method == exec.Window { // else there is nothing to skip
				if whole = run("whole", sim.FoldExact, true, trace.Discard); each.Account.Method !=
					exec.Window {
					must("skipped and whole", each, whole)
				}
			}
			if whole.Account.Method == exec.Window || near && req.Algo != coll.Ring {
				rt.Fatalf("%v, by default %v", whole.Account, byDefault.Account)
			}
			must("whole and traced", whole, run("traced", sim.FoldAuto, false, new(trace.Memory)))
		}
	})
	t.Logf("%d programs: %v", programs, seen)
	const enough = 100 // programs: fewer, as with -short, say nothing of how many fold
	if programs >= enough && 12*seen["default "+exec.Folded.String()] < programs {
		t.Error("few of the programs folded: the test shows little")
	}
}
