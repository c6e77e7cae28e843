package sim_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// wireUs is one way between the two nodes of pair.
const wireUs = 20

// pair is an exchange over one port: two nodes of one GPU, kernels and proxy
// threads that cost nothing, so that a slow port is all there is.
func pair(t *testing.T, bytes int64, cfg sim.Config) (exec.Result, error) {
	t.Helper()
	c, systems := nodes(t, "gh200.n2", 2, comm.Params{})
	class := sim.ClassOf(systems[0])
	class.Net.Eff, class.Net.Wire = 0.1, wireUs
	class.Net.Turn, class.Net.Look, class.Net.Post, class.Net.Poll = 0, 0, 0, 0
	class.Simple.PerByte /= 1000
	class.Simple.Slice, class.Simple.PerThreads, class.Simple.SliceLocal = 0, 0, 0
	cfg.Comm, cfg.Systems, cfg.Class, cfg.NoJitter, cfg.Kernels, cfg.Fold = c.Layout, systems, &class, true,
		1, sim.Unfolded
	p, _, err := c.Plan(comm.Op{Func: coll.SendRecv, Count: bytes / 4, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	x, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return x.Run(context.Background(), exec.One(p), trace.Discard)
}

func lossy(share float64) []sim.Fault {
	return []sim.Fault{{Rank: -1, Host: 0, Net: 0, Slow: 1, Loss: share}}
}

// Go-back-N sends for each packet lost as many again as leave until the sender
// knows: (1-p)/(1-p+pw) of the port's rate is left, w packets being a round
// trip's worth and the lost one (Bertsekas and Gallager, Data Networks, 2.4).
func TestLossIsGoBackN(t *testing.T) {
	const bytes = 256 << 20
	short := sim.Reliability{Timeout: units.Some(1)} // 8 us, for what is lost at the end
	well, err := pair(t, bytes, sim.Config{RC: short})
	if err != nil {
		t.Fatal(err)
	}
	last := well.Elapsed
	for _, p := range []float64{1e-4, 1e-3, 1e-2} {
		got, err := pair(t, bytes, sim.Config{RC: short, Faults: lossy(p)})
		if err != nil {
			t.Fatal(err)
		}
		packet := 4096 / (float64(bytes) / well.Elapsed.Micros())
		w := 1 + 2*wireUs/packet
		want := (1 - p + p*w) / (1 - p)
		if f := float64(got.Elapsed) / float64(well.Elapsed); math.Abs(f/want-1) > 0.08 {
			t.Errorf("loss of %g: %.3f times as long, go-back-N says %.3f", p, f, want)
		}
		if got.Elapsed < last {
			t.Errorf("loss of %g: %v, less than %v with less loss", p, got.Elapsed, last)
		}
		last = got.Elapsed
		again, _ := pair(t, bytes, sim.Config{RC: short, Faults: lossy(p)})
		other, _ := pair(t, bytes, sim.Config{RC: short, Faults: lossy(p), Seed: 7})
		if again.Elapsed != got.Elapsed || p > 1e-4 && other.Elapsed == got.Elapsed {
			t.Errorf("loss of %g: %v, again %v, with another seed %v", p, got.Elapsed, again.Elapsed,
				other.Elapsed)
		}
	}
}

// A port that is down ends the communicator once the retries are used up.
func TestDeadPort(t *testing.T) {
	_, err := pair(t, 1<<20,
		sim.Config{Faults: []sim.Fault{{Rank: -1, Host: 1, Net: 0, Slow: 1, Down: true}}})
	var gave *sim.RetryError
	if !errors.As(err, &gave) {
		t.Fatalf("a dead port: %v", err)
	}
	// Each try lasts a little longer than the wait for its acknowledgement.
	after := func(tries int32, exponent uint) bool {
		want := units.Time(tries) * units.FromMicros(4.096) << exponent
		return gave.Tries == int(tries) && gave.After >= want && gave.After < want+units.FromMicros(1000)
	}
	if !after(8, 20) {
		t.Errorf("gave up after %d tries and %v", gave.Tries, gave.After)
	}
	// So does one that passes next to nothing on: a refusal needs a packet that comes through.
	if _, err = pair(t, 1<<20, sim.Config{Faults: lossy(1 - 1e-9)}); !errors.As(err, &gave) || !after(8, 20) {
		t.Errorf("a port that loses all but a billionth: %v", err)
	}
	_, err = pair(t, 1<<20, sim.Config{RC: sim.Reliability{Timeout: units.Some(14), Retries: units.Some(2)},
		Faults: []sim.Fault{{Rank: -1, Host: 1, Net: 0, Slow: 1, Down: true}}})
	if !errors.As(err, &gave) || !after(3, 14) {
		t.Errorf("NCCL_IB_TIMEOUT=14, NCCL_IB_RETRY_CNT=2: %v", err)
	}
}

// A fault that could only overflow the clock is refused.
func TestFaultsHaveBounds(t *testing.T) {
	c, systems := reference(t, "dgx-h100.n2")
	for _, f := range []sim.Fault{
		{Rank: 1, Slow: math.Inf(1)}, {Rank: 1, Slow: math.NaN()}, {Rank: 1, Slow: 0.5}, {Rank: 16, Slow: 1},
		{Rank: -1, Net: 8, Slow: 1},
		{Rank: -1, Slow: 1, Later: math.MaxInt64}, {Rank: -1, Slow: 1, Later: -1},
		{Rank: -1, Slow: 1, Loss: math.NaN()},
	} {
		var bad *sim.ConfigError
		if _, err := sim.New(sim.Config{Comm: c.Layout, Systems: systems,
			Faults: []sim.Fault{f}}); !errors.As(err, &bad) {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// Every rank waits for a rank that is down, and nothing but that is said.
func TestDeadRank(t *testing.T) {
	c, systems := reference(t, "dgx-h100.n2")
	for _, f := range []coll.Func{coll.AllReduce, coll.AllToAll} {
		p, _, err := c.Plan(comm.Op{Func: f, Count: 1 << 16, Type: coll.Float32})
		if err != nil {
			t.Fatal(err)
		}
		x, err := sim.New(sim.Config{Comm: c.Layout, Systems: systems,
			Faults: []sim.Fault{{Rank: 3, Slow: 1, Down: true}}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = x.Run(context.Background(), exec.One(p), trace.Discard)
		var hangs *sim.HangError
		if !errors.As(err, &hangs) || hangs.Waiting != 15 || hangs.First != 0 || len(hangs.Failed) != 1 ||
			hangs.Failed[0] != 3 {
			t.Errorf("%v with rank 3 gone: %v", f, err)
		}
	}
}

// What waits before a link is nothing without sharing, and grows with
// those who do.
func TestQueues(t *testing.T) {
	oneGoroutine(t)
	queue := func(r exec.Result) (most units.Bytes) {
		for _, l := range r.Links {
			most = max(most, l.Queue)
		}
		return most
	}
	last := queue(over(t, rails(1, 1), sim.Config{}))
	for _, oversub := range []float64{2, 4, 8} {
		r := over(t, rails(oversub, 1), sim.Config{})
		if q := queue(r); q <= last {
			t.Errorf("%g:1: %d bytes wait, no more than %d with more uplinks", oversub, q, last)
		} else {
			last = q
		}
	}
}
