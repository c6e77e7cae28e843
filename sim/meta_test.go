package sim_test

import (
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
	"pgregory.net/rapid"
)

// drawRequest draws an operation for a communicator with links of one host.
func drawRequest(t *rapid.T, c *comm.Comm) plan.Request {
	f := rapid.SampledFrom([]coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.Broadcast,
		coll.Reduce, coll.AllToAll, coll.SendRecv}).Draw(t, "op")
	req, _, err := c.Request(comm.Op{Func: f, Count: rapid.Int64Range(1, 1<<18).Draw(t, "count"),
		Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	if !f.IsP2P() {
		req.Algo = coll.Ring
		req.Proto = rapid.SampledFrom([]coll.Protocol{coll.LL, coll.LL128, coll.Simple}).Draw(t, "proto")
	}
	return req
}

// Equal input gives equal output, to the picosecond; another seed moves times
// only a little.
func TestRunsRepeat(t *testing.T) {
	c, systems := reference(t, "h200x4-4.n1")
	rapid.Check(t, func(rt *rapid.T) {
		req := drawRequest(rt, c)
		a, _ := simulatePlan(t, c, sim.Config{Systems: systems, Seed: 1}, req, trace.Discard)
		b, _ := simulatePlan(t, c, sim.Config{Systems: systems, Seed: 1}, req, trace.Discard)
		if a.Elapsed != b.Elapsed || a.Events != b.Events {
			rt.Fatalf("%v and %v with one seed", a.Elapsed, b.Elapsed)
		}
		o, _ := simulatePlan(t, c, sim.Config{Systems: systems, Seed: 2}, req, trace.Discard)
		if r := float64(o.Elapsed) / float64(a.Elapsed); r < 0.8 || r > 1.25 {
			rt.Fatalf("%v with another seed, %v before", o.Elapsed, a.Elapsed)
		}
	})
}

// A ring all-reduce puts 2(n-1)/n of the data on every GPU's link in each
// direction, jitter or not, and no run ends before its busiest link could have
// carried that.
func TestBytesOnLinksAreTheClosedForm(t *testing.T) {
	c, systems := reference(t, "h200x4-4.n1")
	for _, size := range []units.Bytes{1 << 20, 48 << 20} {
		req, _, err := c.Request(comm.Op{Func: coll.AllReduce, Count: int64(size) / 4, Type: coll.Float32})
		if err != nil {
			t.Fatal(err)
		}
		req.Algo, req.Proto = coll.Ring, coll.Simple
		steady, _ := simulatePlan(t, c, sim.Config{Systems: systems, NoJitter: true, Kernels: 1}, req,
			trace.Discard)
		r, _ := simulatePlan(t, c, sim.Config{Systems: systems, Kernels: 1, Seed: 3}, req, trace.Discard)
		if r.Elapsed == steady.Elapsed {
			t.Errorf("%d bytes: %v with jitter and without", size, r.Elapsed)
		}
		for i := range steady.Links {
			if steady.Links[i].Bytes != r.Links[i].Bytes {
				t.Errorf("%d bytes: link %s carried %d with jitter, %d without", size, r.Links[i].Name,
					r.Links[i].Bytes, steady.Links[i].Bytes)
			}
		}
		want := size * 2 * units.Bytes(c.NRanks-1) / units.Bytes(c.NRanks)
		links := 0
		for _, l := range r.Links {
			if l.Bytes == 0 {
				continue
			}
			links++
			if l.Bytes != want {
				t.Errorf("%d bytes: link %s carried %d, want %d", size, l.Name, l.Bytes, want)
			}
			if least := l.Bytes.Over(l.Capacity); r.Elapsed < least {
				t.Errorf("%d bytes in %v, link %s alone takes %v", size, r.Elapsed, l.Name, least)
			}
		}
		if links != 2*len(systems[0].Of(topo.GPU)) {
			t.Errorf("%d links in use, want two a GPU", links)
		}
	}
}
