package sim_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/netpreset"
	"github.com/simccl/simccl/topo/fabric"
)

// TestForecastOfFrames: the frames that a run is refused for are within a factor of two of what
// runs send from hosts, of every kind of operation.
func TestForecastOfFrames(t *testing.T) {
	e, c := framed(t, 2)
	for _, x := range []struct {
		f     coll.Func
		algo  coll.Algorithm
		bytes int64 // of the call
	}{
		{coll.AllReduce, coll.Ring, 4 << 20}, {coll.AllReduce, coll.Tree, 4 << 20},
		{coll.AllGather, coll.Ring, 4 << 20}, {coll.Broadcast, coll.Ring, 4 << 20},
		{coll.AllToAll, 0, 2 << 20}, {coll.Gather, 0, 8 << 20}, {coll.Scatter, 0, 8 << 20},
		{coll.SendRecv, 0, 4 << 20},
	} {
		op := comm.Op{Func: x.f, Count: x.bytes / 4, Type: coll.Float32}
		switch x.f {
		case coll.AllGather, coll.AllToAll, coll.Gather, coll.Scatter:
			op.Count /= int64(c.NRanks)
		}
		req, _, err := c.Request(op)
		if err != nil {
			t.Fatal(err)
		}
		if x.algo != 0 {
			req.Algo, req.Proto = x.algo, coll.Simple
		}
		p, err := build.Plan(c.Layout, req)
		if err != nil {
			t.Fatal(err)
		}
		frames, _, took := e.Frames(p, 1)
		res, err := e.Run(context.Background(), exec.One(p), nil)
		if err != nil {
			t.Fatal(err)
		}
		sent := 0.0
		for _, l := range res.Links {
			if l.Net != nil && strings.HasPrefix(l.Name, "node") {
				sent += float64(l.Bytes) / 4096
			}
		}
		if sent == 0 || frames > 2*sent || frames < sent/2 || took <= 0 {
			t.Errorf("%v/%v: forecast %.0f frames, %.0f were sent", x.f, x.algo, frames, sent)
		}
	}
}

// framed is so many DGX H100 on one switch, frame by frame.
func framed(t *testing.T, nodes int) (*sim.Executor, *comm.Comm) {
	t.Helper()
	for _, r := range golden.Own(t) {
		if r.Name != "dgx-h100.n2" || r.Nodes != nodes {
			continue
		}
		c, systems := machine(t, &r, comm.Params{})
		l := fabric.Layout{Kind: "leaf-spine", Hosts: nodes, Nets: 8, Gbit: 400, PerLeaf: nodes, Oversub: 1,
			Latency: 0.3}
		n, err := fabric.Generate(l)
		if err != nil {
			t.Fatal(err)
		}
		cfg := sim.Config{Comm: c.Layout, Systems: systems, Launch: sim.Graph, Seed: 1}
		if cfg.Fabric, err = n.Bind(slices.Repeat([]int{8}, nodes), 1); err != nil {
			t.Fatal(err)
		}
		if cfg.Packets, err = netpreset.Of(n, netpreset.Choice{}, 1, cfg.RC); err != nil {
			t.Fatal(err)
		}
		x, err := sim.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return x, c
	}
	t.Fatal("no dgx-h100.n2")
	return nil, nil
}
