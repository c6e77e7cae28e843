package sim_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/exec/exectest"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// What would take minutes only because the operation is large is refused before
// it begins, with the reason; --fold exact insists. That needs runs without windows.
func TestCostIsRefused(t *testing.T) {
	c, systems := dgx(t, 2)
	for _, tc := range []struct {
		bytes   units.Bytes
		refused bool
	}{{1 << 40, true}, {1 << 39, false}, {1 << 30, false}} {
		p, err := build.Plan(c, plan.Request{Func: coll.AllReduce, Count: int64(tc.bytes), Type: coll.Int8,
			Algo: coll.Ring, Proto: coll.LL, Channels: 2, Warps: 16})
		if err != nil {
			t.Fatal(err)
		}
		for _, fold := range []sim.Folding{sim.FoldAuto, sim.FoldNear, sim.FoldExact} {
			ctx, cancel := context.WithCancel(context.Background())
			begun := func(float64) { cancel() } // what is not refused ends soon
			x, err := sim.New(sim.Config{Comm: c, Systems: systems, Fold: fold, Progress: begun,
				NoSkip: true})
			if err != nil {
				t.Fatal(err)
			}
			_, err = x.Run(ctx, exec.One(p), nil)
			cancel()
			if refused := errors.Is(err, exec.ErrNotImplemented); refused != (tc.refused &&
				fold != sim.FoldExact) {
				t.Errorf("%d bytes, folding %d: %v", tc.bytes, fold, err)
			}
		}
	}
}

// dgx is a synthetic communicator of two ranks or more of a DGX H100.
func dgx(t *testing.T, ranks int) (*connect.Layout, []*topo.System) {
	t.Helper()
	for _, r := range golden.Own(t) {
		if r.Name == "dgx-h100.n1" {
			_, systems := machine(t, &r, comm.Params{})
			return exectest.Comm(ranks, 1, 16), systems
		}
	}
	t.Fatal("no dgx-h100.n1")
	return nil, nil
}

// A self copy of an alltoall is one piece of any size: beyond 9.2 GB a
// channel its work once passed 63 bits, and it took no time.
func TestLargePiecesTakeTheTimeOfTheirBytes(t *testing.T) {
	c, systems := dgx(t, 2)
	c.P2PChannels, c.P2PChannelsPerPeer = 1, 1
	share := 0.0 // that the copy takes longer than the transfer beside it
	for bytes := units.Bytes(1 << 30); bytes <= 1<<36; bytes *= 4 {
		var took [2]units.Time
		for i := range took {
			p, err := build.Plan(c, plan.Request{Func: coll.Gather, Count: int64(bytes), Type: coll.Int8,
				InPlace: i == 1})
			if err != nil {
				t.Fatal(err)
			}
			x, err := sim.New(sim.Config{Comm: c, Systems: systems, Launch: sim.Graph, NoJitter: true,
				Fold: sim.FoldExact})
			if err != nil {
				t.Fatal(err)
			}
			res, err := x.Run(context.Background(), exec.One(p), nil)
			if err != nil {
				t.Fatal(err)
			}
			took[i] = res.Elapsed
		}
		part := float64(took[0])/float64(took[1]) - 1
		if share > 0 && (part < 0.9*share || part > 1.1*share) || part <= 0.01 {
			t.Errorf("%d bytes: %v, and %v without the copy: %.3f of it, of a quarter %.3f", bytes, took[0],
				took[1], part, share)
		}
		share = part
	}
}

// oneGoroutine leaves a test out under the race detector, which makes it ten times as
// slow: the engine it is about runs on one goroutine. Others of the package run there.
func oneGoroutine(t *testing.T) {
	t.Helper()
	if golden.UnderRace {
		t.Skip("the engine runs on one goroutine; without the race detector")
	}
}

// Time grows with size, and no link carries more than it can, from 8 bytes to
// 128 GiB or the largest size that is not refused, for every operation on 1, 2, 8 and 16
// ranks (one rank: TestOneRankTakesTheTimeOfItsBytes). Below 64 KiB latency is
// all, and parts that are not aligned to 16 bytes may take longer than larger
// ones that are.
func TestTimeGrowsWithSize(t *testing.T) {
	oneGoroutine(t)
	for _, r := range golden.Own(t) {
		if r.Name != "h200x4-2.n1" && r.Name != "dgx-h100.n1" && r.Name != "dgx-h100.n2" {
			continue
		}
		c, systems := machine(t, &r, comm.Params{})
		most := units.Bytes(1) << 37
		if testing.Short() {
			most = 1 << 34
		}
		for f := range coll.NumFuncs {
			last, largest := units.Time(0), units.Bytes(0)
			for bytes := units.Bytes(8); bytes <= most; bytes *= 8 {
				op := comm.Op{Func: f, Type: coll.Int8, Count: coll.ExactSizes(f, bytes, coll.Int8,
					c.NRanks).Count}
				p, _, err := c.Plan(op)
				if err != nil {
					t.Fatal(err)
				}
				x, err := sim.New(sim.Config{Comm: c.Layout, Systems: systems, Launch: sim.Graph,
					NoJitter: true, Kernels: 1})
				if err != nil {
					t.Fatal(err)
				}
				res, err := x.Run(context.Background(), exec.One(p), nil)
				if errors.Is(err, exec.ErrNotImplemented) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if least := last; bytes < 64<<10 && res.Elapsed < least*95/100 || bytes >= 64<<10 &&
					res.Elapsed < least {
					t.Errorf("%s %v: %d bytes in %v, an eighth of them in %v", r.Name, f, bytes, res.Elapsed,
						last)
				}
				if err := plausible(&res); err != nil && op.Count > 0 {
					t.Errorf("%s %v: %d bytes: %v", r.Name, f, bytes, err)
				}
				last, largest = res.Elapsed, bytes
			}
			if largest < 1<<33 {
				t.Errorf("%s %v: %d bytes are the most that runs", r.Name, f, largest)
			}
		}
	}
}

// Gather and scatter from and to too many ranks, and an alltoall among them, are
// refused with a forecast.
func TestTransfersOfManyRanksAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a plan of half a million ranks")
	}
	_, systems := dgx(t, 2)
	const nodes = 1 << 16
	c := draw.Plain(8, nodes, 16)
	all := make([]*topo.System, nodes)
	for i := range all {
		all[i] = systems[0]
	}
	for _, f := range []coll.Func{coll.AllToAll, coll.Gather, coll.Scatter} {
		p, err := build.Plan(c, plan.Request{Func: f, Count: 32, Type: coll.Float32, Warps: 16})
		if err != nil {
			t.Fatal(err)
		}
		x, err := sim.New(sim.Config{Comm: c, Systems: all})
		if err != nil {
			t.Fatal(err)
		}
		_, err = x.Run(context.Background(), exec.One(p), nil)
		if !errors.Is(err, exec.ErrNotImplemented) || !strings.Contains(err.Error(),
			"524288 transfers would take some 8 GB and 8 s") {
			t.Errorf("%v: %v", f, err)
		}
	}
}
