package sim_test

import (
	"context"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/exec/exectest"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/sim/wire/ideal"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
)

func idealWire() wire.Model { return ideal.New() }

// both runs each plan on shared links and on ideal ones, and compares.
type both struct {
	t             *testing.T
	shared, ideal exec.Executor
	slower, equal int
	faster        int
}

func (p *both) Run(ctx context.Context, job exec.Job, sink trace.Sink) (exec.Result, error) {
	want, err := p.shared.Run(ctx, job, trace.Discard)
	if err != nil {
		return want, err
	}
	got, err := p.ideal.Run(ctx, job, sink)
	if err != nil {
		return got, err
	}
	p.compare(&job.Plans[0].Req, &want, &got)
	return got, nil
}

func (p *both) compare(req *plan.Request, shared, alone *exec.Result) {
	p.t.Helper()
	switch {
	case alone.Elapsed > shared.Elapsed:
		p.slower++
		p.t.Errorf("%v %v/%v %d: %v on ideal links, %v on shared ones", req.Func, req.Algo, req.Proto,
			req.Count, alone.Elapsed, shared.Elapsed)
	case alone.Elapsed == shared.Elapsed:
		p.equal++
	default:
		p.faster++
	}
	for i, l := range shared.Links {
		if alone.Links[i].Bytes != l.Bytes || alone.Links[i].Name != l.Name {
			p.t.Errorf("%v %v/%v %d: link %s carries %d B on ideal links, %d B on shared ones", req.Func,
				req.Algo, req.Proto, req.Count, l.Name, alone.Links[i].Bytes, l.Bytes)
		}
	}
}

// TestConformsOnIdealLinks runs the suite of all executors with another model of
// links: the engine asks of it nothing that the seam does not promise, and what
// waits for no other is never slower.
func TestConformsOnIdealLinks(t *testing.T) {
	oneGoroutine(t)
	p := &both{t: t}
	exectest.Conform(t, []int{1, 2}, func(t *testing.T, nodes int) exectest.Subject {
		for _, r := range golden.Own(t) {
			if r.Nodes != nodes || len(r.Env) > 0 || r.Multicast || r.Name == "" {
				continue
			}
			c, systems := machine(t, &r, comm.Params{})
			if c == nil || c.NRanks < 2 || c.NRanks > 16 || c.NNodes != nodes {
				continue
			}
			cfg := sim.Config{Comm: c.Layout, Systems: systems, Kernels: 1, Launch: sim.Graph, NoJitter: true,
				Fold: sim.Unfolded, Trace: nccl.Options{Detail: nccl.DetailStep}}
			// A proxy thread serves one message after the other: what comes earlier may meet a
			// worse order there. The rule is of links, so proxies take no time.
			class := sim.ClassOf(systems[0])
			class.Net.Post, class.Net.Poll, class.Net.Turn, class.Net.Look = 0, 0, 0, 0
			cfg.Class = &class
			x := &both{t: p.t, shared: newExecutor(t, cfg)}
			cfg.Wire = idealWire
			x.ideal = newExecutor(t, cfg)
			t.Cleanup(func() { p.equal, p.faster = p.equal+x.equal, p.faster+x.faster })
			return exectest.Subject{Comm: c.Layout, Executor: x, Exact: true, Ideal: true, Arrows: true,
				Skip: func(q plan.Request) string {
					if q.Algo == coll.NVLS || q.Algo == coll.NVLSTree {
						return "the machine is taken without multicast"
					}
					return ""
				}}
		}
		t.Fatal("no machine")
		return exectest.Subject{}
	})
	t.Logf("%d runs are equally fast, %d faster on ideal links", p.equal, p.faster)
	if p.equal == 0 || p.faster == 0 {
		t.Error("the runs do not tell shared links from ideal ones")
	}
}

func newExecutor(t *testing.T, cfg sim.Config) *sim.Executor {
	t.Helper()
	x, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Machines of several kinds: no operation is slower on ideal links (but for
// the rounds of proxy threads), and folding
// changes nothing on them either.
func TestMachinesOnIdealLinks(t *testing.T) {
	p := &both{t: t}
	machines := 0
	for _, r := range golden.Own(t) {
		if r.Nodes > 2 || machines >= 8 || len(r.Env) > 0 {
			continue
		}
		c, systems := machine(t, &r, comm.Params{})
		if c == nil || c.NRanks < 2 {
			continue
		}
		machines++
		for _, f := range []coll.Func{coll.AllReduce, coll.AllGather, coll.Broadcast, coll.AllToAll} {
			op := comm.Op{Func: f, Count: 1 << 18, Type: coll.Float32}
			cfg := sim.Config{Systems: systems, Kernels: 1, NoJitter: true}
			shared, _ := simulate(t, c, cfg, op, trace.Discard)
			cfg.Wire = idealWire
			alone, pl := simulate(t, c, cfg, op, trace.Discard)
			cfg.Fold = sim.Unfolded
			each, _ := simulate(t, c, cfg, op, trace.Discard)
			// Flows are never slower, but a plan may be by a fraction of a round of a
			// proxy thread: what comes earlier may just miss the round before.
			if alone.Elapsed > shared.Elapsed+shared.Elapsed/200 {
				t.Errorf("%s %v: %v on ideal links, %v on shared ones", r.Name, f, alone.Elapsed,
					shared.Elapsed)
			}
			if alone.Elapsed < shared.Elapsed {
				p.faster++
			}
			if alone.Account.Method != exec.Near && each.Elapsed != alone.Elapsed {
				t.Errorf("%s %v %v: folded %v, each rank %v", r.Name, f, pl.Req.Algo, alone.Elapsed,
					each.Elapsed)
			}
		}
	}
	if machines < 4 || p.faster == 0 {
		t.Errorf("%d machines, %d runs faster on ideal links", machines, p.faster)
	}
}
