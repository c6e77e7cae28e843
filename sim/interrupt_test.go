package sim_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
)

// breaker calls off the run after so many events of its trace.
type breaker struct {
	trace.Memory
	left int
	stop func()
}

func (b *breaker) Emit(e *trace.Event) {
	if b.left--; b.left == 0 {
		b.stop()
	}
	b.Memory.Emit(e)
}

// A run that is called off ends soon, and what its sink has received is valid.
func TestInterruptedRunEndsSoon(t *testing.T) {
	c, systems := nodes(t, "dgx-h100.n2", 2, comm.Params{})
	p, err := build.Plan(c.Layout, plan.Request{Func: coll.AllReduce, Algo: coll.Ring, Proto: coll.Simple,
		Channels: 16, Warps: 16,
		Count: 16 << 20, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	x, err := sim.New(sim.Config{Comm: c.Layout, Systems: systems, Kernels: 1,
		Trace: nccl.Options{Detail: nccl.DetailStep}})
	if err != nil {
		t.Fatal(err)
	}
	var whole trace.Memory
	if _, err := x.Run(context.Background(), exec.One(p), &whole); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	sink := &breaker{left: 1000, stop: stop}
	if _, err := x.Run(ctx, exec.One(p), sink); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if n := len(sink.Events); n < 1000 || n > len(whole.Events)/2 {
		t.Errorf("%d events of %d", n, len(whole.Events))
	}
}

// A run reports how far it is, from nothing to nearly all.
func TestProgressIsTold(t *testing.T) {
	c, systems := nodes(t, "dgx-h100.n2", 2, comm.Params{})
	req, _, err := c.Request(comm.Op{Func: coll.AllReduce, Count: 16 << 20, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	var parts []float64
	simulatePlan(t, c, sim.Config{Systems: systems, Fold: sim.Unfolded, Progress: func(part float64) {
		parts = append(parts, part)
	}}, req, trace.Discard)
	if len(parts) < 3 || !slices.IsSorted(parts) || parts[0] > 0.1 || parts[len(parts)-1] < 0.5 ||
		parts[len(parts)-1] > 1 {
		t.Errorf("told %v", parts)
	}
}

// A run that is called off while it lays out what it will simulate ends there,
// folded or not.
func TestLayoutIsCalledOff(t *testing.T) {
	for _, x := range []struct {
		f    coll.Func
		fold sim.Folding
	}{{coll.AllToAll, sim.FoldAuto}, {coll.AllReduce, sim.FoldExact}, {coll.Gather, sim.FoldAuto},
		{coll.AllReduce, sim.Unfolded}} {
		c, systems := nodes(t, "dgx-h100.n2", 8, comm.Params{})
		req, _, err := c.Request(comm.Op{Func: x.f, Count: 1 << 14, Type: coll.Float32})
		if err != nil {
			t.Fatal(err)
		}
		p, err := build.Plan(c.Layout, req)
		if err != nil {
			t.Fatal(err)
		}
		ex, err := sim.New(sim.Config{Comm: c.Layout, Systems: systems, NoJitter: true, Fold: x.fold})
		if err != nil {
			t.Fatal(err)
		}
		polls := &counted{Context: context.Background()}
		if _, err := ex.Run(polls, exec.One(p), nil); err != nil {
			t.Fatal(err)
		}
		if polls.n < 5 {
			t.Errorf("%v: the context is asked %d times", x.f, polls.n)
		}
		for at := range min(polls.n, 40) {
			stop := &counted{Context: context.Background(), from: at + 1}
			if _, err := ex.Run(stop, exec.One(p), nil); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, called off at poll %d of %d: %v", x.f, at, polls.n, err)
			}
			if stop.n > at+2 {
				t.Errorf("%v, called off at poll %d: it was asked %d times more", x.f, at, stop.n-at)
			}
		}
	}
}

// counted counts how often it is asked, and is cancelled from one of those on.
type counted struct {
	context.Context
	n, from int
}

func (c *counted) Err() error {
	if c.n++; c.from > 0 && c.n >= c.from {
		return context.Canceled
	}
	return nil
}
