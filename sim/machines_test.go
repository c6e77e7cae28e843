package sim_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/refsys"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// machine joins the hosts of a reference; nil where the reference is not of
// equal hosts that are one part each.
func machine(t testing.TB, r *golden.Reference, p comm.Params) (*comm.Comm, []*topo.System) {
	t.Helper()
	p.Rules = rules.Default()
	r.Load(t)
	defer func() { r.Doc = nil }()
	if _, split := r.Doc["domains"]; split {
		return nil, nil
	}
	s := refsys.System(t, r)
	n := len(s.Of(topo.GPU))
	if n == 0 || s.NHosts > 1 {
		return nil, nil
	}
	var parts []comm.Part
	var systems []*topo.System
	for h := range r.Nodes {
		parts = append(parts, comm.Part{System: s, First: int32(h * n), Host: int32(h)})
		systems = append(systems, s)
	}
	p.Multicast = comm.MulticastOff
	if r.Multicast {
		p.Multicast = comm.MulticastOn
	}
	c, err := comm.FromSystems(parts, p)
	if err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	if len(systems) != c.NNodes {
		return nil, nil
	}
	return c, systems
}

func simulate(t testing.TB, c *comm.Comm, cfg sim.Config, op comm.Op, sink trace.Sink) (exec.Result,
	*plan.Plan) {
	t.Helper()
	req, _, err := c.Request(op)
	if err != nil {
		t.Fatalf("%v %d: %v", op.Func, op.Count, err)
	}
	return simulatePlan(t, c, cfg, req, sink)
}

func simulatePlan(t testing.TB, c *comm.Comm, cfg sim.Config, req plan.Request, sink trace.Sink) (exec.Result,
	*plan.Plan) {
	t.Helper()
	p, err := build.Plan(c.Layout, req)
	if err != nil {
		t.Fatalf("%v %v/%v %d: %v", req.Func, req.Algo, req.Proto, req.Count, err)
	}
	cfg.Comm = c.Layout
	x, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := x.Run(context.Background(), exec.One(p), sink)
	if err != nil {
		t.Fatalf("%v %v/%v %d: %v", req.Func, req.Algo, req.Proto, req.Count, err)
	}
	return r, p
}

// plausible checks what must hold of every run: it ends, and no link carries
// more than it can.
func plausible(r *exec.Result) error {
	if r.Elapsed <= 0 {
		return fmt.Errorf("elapsed %v", r.Elapsed)
	}
	for i, f := range r.Finish {
		if f <= 0 {
			return fmt.Errorf("rank %d finishes at %v", i, f)
		}
	}
	for _, l := range r.Links {
		if least := l.Bytes.Over(l.Capacity); least > l.Busy+l.Busy/1000+units.Nanosecond {
			return fmt.Errorf("link %s of %v GB/s moves %d B in %v", l.Name, l.Capacity, l.Bytes, l.Busy)
		}
	}
	return nil
}

// Every machine of the project, on one, two and more nodes, runs every
// operation to its end.
func TestEveryMachineRunsEveryOperation(t *testing.T) {
	oneGoroutine(t)
	runs := 0
	for _, r := range golden.Own(t) {
		if r.Nodes > 4 || (testing.Short() && r.Nodes > 1) || len(r.Env) > 0 {
			continue
		}
		c, systems := machine(t, &r, comm.Params{})
		if c == nil {
			t.Logf("%s: not of whole equal hosts", r.Name)
			continue
		}
		for f := range coll.NumFuncs {
			for _, bytes := range []int64{1 << 10, 4 << 20} {
				op := comm.Op{Func: f, Count: bytes / 4, Type: coll.Float32}
				if f.PerRank() {
					op.Count = max(1, op.Count/int64(c.NRanks))
				}
				res, _ := simulate(t, c, sim.Config{Systems: systems, Kernels: 1}, op, trace.Discard)
				if c.NRanks > 1 {
					if err := plausible(&res); err != nil {
						t.Errorf("%s %v %d: %v", r.Name, f, bytes, err)
					}
				}
				runs++
			}
		}
	}
	t.Logf("%d runs", runs)
}
