package sim_test

import (
	"math"
	"slices"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// A run without jitter takes what one with jitter does, but for what channels
// lose or gain by drifting apart: lockstep is no artefact that costs time. NVLS
// trees once took up to 43 % longer without jitter, as proxy threads were done
// with all channels' messages at once, after the last (docs/adr/0016).
func TestLockstepAgreesWithJitter(t *testing.T) {
	worst := map[coll.Algorithm]float64{}
	for _, nodesN := range []int{2, 4, 8} {
		if testing.Short() && nodesN == 8 {
			continue
		}
		c, systems := nodes(t, "dgx-h100+nvls.n2", nodesN, comm.Params{})
		for _, algo := range []coll.Algorithm{coll.NVLSTree, coll.Tree} {
			for _, bytes := range []int64{1 << 20, 8 << 20, 32 << 20} {
				op := comm.Op{Func: coll.AllReduce, Count: bytes / 4, Type: coll.Float32}
				_, choice, err := c.PlanAs(op, algo, coll.Simple)
				if err != nil {
					t.Fatal(err)
				}
				req := plan.Request{Func: op.Func, Count: op.Count, Type: op.Type, Algo: algo,
					Proto: coll.Simple, Channels: choice.MaxChannels, Warps: choice.Warps}
				cfg := sim.Config{Systems: systems, Launch: sim.Graph}
				with, _ := simulatePlan(t, c, cfg, req, trace.Discard)
				cfg.NoJitter = true
				without, _ := simulatePlan(t, c, cfg, req, trace.Discard)
				off := float64(without.Elapsed)/float64(with.Elapsed) - 1
				worst[algo] = max(worst[algo], math.Abs(off))
				if math.Abs(off) > 0.08 {
					t.Errorf("%d nodes %v %d bytes: %v in lockstep, %v with jitter: %+.1f %%", nodesN, algo,
						bytes, without.Elapsed, with.Elapsed, 100*off)
				}
			}
		}
	}
	t.Logf("worst: %.3v", worst)
}

// The same where one GPU's proxy thread has all channels of rings and of PAT, the median of five
// draws on average of sizes: at single ones all channels' looks may coincide, or none.
func TestLockstepAgreesWithJitterOfOneGPU(t *testing.T) {
	c, systems := nodes(t, "gh200.n2", 8, comm.Params{})
	for _, k := range []struct {
		f coll.Func
		a coll.Algorithm
	}{{coll.AllReduce, coll.Ring}, {coll.AllGather, coll.Ring}, {coll.AllGather, coll.PAT}} {
		sum, sizes := 0.0, []int64{1 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20, 64 << 20}
		for _, bytes := range sizes {
			op := comm.Op{Func: k.f, Count: bytes / 4, Type: coll.Float32}
			if k.f.PerRank() {
				op.Count /= int64(c.NRanks)
			}
			_, choice, err := c.PlanAs(op, k.a, coll.Simple)
			if err != nil {
				t.Fatal(err)
			}
			req := plan.Request{Func: k.f, Count: op.Count, Type: op.Type, Algo: k.a, Proto: coll.Simple,
				Channels: choice.MaxChannels, Warps: choice.Warps}
			cfg := sim.Config{Systems: systems, Launch: sim.Graph}
			var drawn []units.Time // a draw of PAT at 64 MiB is 5 % faster or 20 % slower than most
			for cfg.Seed = range uint64(5) {
				with, _ := simulatePlan(t, c, cfg, req, trace.Discard)
				drawn = append(drawn, with.Elapsed)
			}
			slices.Sort(drawn)
			cfg.NoJitter = true
			without, _ := simulatePlan(t, c, cfg, req, trace.Discard)
			off := float64(without.Elapsed)/float64(drawn[2]) - 1
			t.Logf("%v %v %d: %+.1f %%", k.f, k.a, bytes, 100*off)
			sum += math.Abs(off)
		}
		if mean := sum / float64(len(sizes)); mean > 0.05 {
			t.Errorf("%v %v: lockstep and jitter differ by %.1f %% in the mean", k.f, k.a, 100*mean)
		}
	}
}

// A class without jitter is simulated in lockstep, at every size: it had windows, whose parts fold apart.
func TestClassesWithoutJitterRunInLockstep(t *testing.T) {
	c, systems := nodes(t, "dgx-h100.n2", 2, comm.Params{})
	class := sim.ClassOf(systems[0])
	class.Jitter = gpu.JitterCost{}
	for _, f := range []coll.Func{coll.AllReduce, coll.AllGather, coll.AllToAll} {
		for _, count := range []int64{1 << 14, 50_000_001, 1 << 30} {
			if f.PerRank() {
				count /= int64(c.NRanks)
			}
			req, _, err := c.Request(comm.Op{Func: f, Count: count, Type: coll.Float32})
			if err != nil {
				t.Fatal(err)
			}
			without, _ := simulatePlan(t, c, sim.Config{Systems: systems, Class: &class}, req, trace.Discard)
			off, _ := simulatePlan(t, c, sim.Config{Systems: systems, NoJitter: true}, req, trace.Discard)
			if without.Elapsed != off.Elapsed || without.Account.Method != off.Account.Method {
				t.Errorf("%v of %d: %v (%v), with jitter off %v (%v)", f, count, without.Elapsed,
					without.Account.Method, off.Elapsed, off.Account.Method)
			}
		}
	}
}
