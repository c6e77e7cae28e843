package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// someFaults draws one or two slow ports, late ports or stragglers.
func someFaults(rng *rand.Rand, ranks, hosts, nets int) (out []sim.Fault) {
	for range 1 + rng.IntN(2) {
		port := sim.Fault{Rank: -1, Host: rng.IntN(hosts), Net: rng.IntN(nets), Slow: 1}
		switch rng.IntN(3) {
		case 0:
			port.Slow = 1.5 + 4*rng.Float64()
		case 1:
			port.Later = units.FromMicros(5 + 40*rng.Float64())
		case 2:
			port = sim.Fault{Rank: rng.IntN(ranks), Slow: 1.5 + 2*rng.Float64()}
		}
		out = append(out, port)
	}
	return out
}

// TestShortenedRingsStayWithinTheirMargin: a ring with faults, of which long stretches
// of equal nodes are left out, takes as long as the whole one, within what its
// result says.
func TestShortenedRingsStayWithinTheirMargin(t *testing.T) {
	oneGoroutine(t)
	rng := rand.New(rand.NewPCG(7, 16))
	rounds, sizes := 8, 14
	if testing.Short() {
		rounds = 4
	}
	worst, shortened := 0.0, 0
	for i := range rounds {
		name := []string{"dgx-h100.n2", "dgx-a100.n2"}[rng.IntN(2)]
		n := 24 + rng.IntN(18)
		c, systems := nodes(t, name, n, comm.Params{})
		req, _, err := c.Request(comm.Op{Func: []coll.Func{coll.AllReduce, coll.AllGather,
			coll.ReduceScatter}[i%3],
			Count: 1 << (8 + rng.IntN(sizes)), Type: coll.Float32})
		if err != nil {
			t.Fatal(err)
		}
		req.Algo, req.Proto = coll.Ring, []coll.Protocol{coll.LL, coll.LL128, coll.Simple}[rng.IntN(3)]
		cfg := sim.Config{Systems: systems, NoJitter: true, Fold: sim.FoldExact,
			Faults: someFaults(rng, c.NRanks, n, 8)}
		what := fmt.Sprintf("%s, %d nodes, %v %v of %d with %+v", name, n, req.Func, req.Proto, req.Count,
			cfg.Faults)
		want, _ := simulatePlan(t, c, cfg, req, trace.Discard)
		cfg.Fold = sim.FoldNear
		got, _ := simulatePlan(t, c, cfg, req, trace.Discard)
		off := float64(got.Elapsed)/float64(want.Elapsed) - 1
		worst = max(worst, math.Abs(off))
		if got.Account.Method != exec.Near { // two faults may leave no stretch that is long enough
			continue
		}
		shortened++
		if got.Account.Programs >= want.Account.Programs {
			t.Errorf("%s: found as %+v, exactly as %+v", what, got.Account, want.Account)
		}
		if math.Abs(off) > got.Account.Margin {
			t.Errorf("%s: %v nearly, %v exactly: %+.2f %%, margin %.1f %%", what, got.Elapsed, want.Elapsed,
				100*off, 100*got.Account.Margin)
		}
	}
	if shortened*4 < rounds*3 {
		t.Errorf("%d of %d rings were shortened", shortened, rounds)
	}
	t.Logf("worst: %.4f", worst)
}

// A ring with a slow port grows with the steps of a rank, not with the ranks.
func TestLargeRingsWithFaultsAreShortened(t *testing.T) {
	c, systems := nodes(t, "dgx-h100.n2", 256, comm.Params{})
	req := ringRequest(t, c, 1<<26)
	got, _ := simulatePlan(t, c, sim.Config{Systems: systems,
		Faults: []sim.Fault{{Rank: -1, Host: 9, Net: 2, Slow: 2}}}, req, trace.Discard)
	if a := got.Account; a.Method != exec.Near || a.Programs > 1<<10 {
		t.Errorf("%d ranks: found as %+v", c.NRanks, a)
	}
}

func ringRequest(t *testing.T, c *comm.Comm, count int64) plan.Request {
	t.Helper()
	req, _, err := c.Request(comm.Op{Func: coll.AllReduce, Count: count, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	req.Algo, req.Proto = coll.Ring, coll.Simple
	return req
}
