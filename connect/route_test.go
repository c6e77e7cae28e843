package connect_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/parity"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
)

func build(t testing.TB, name string, nodes int, env ...string) *comm.Comm {
	t.Helper()
	c, _, err := parity.Build(filepath.Join(golden.Root(t), "testdata", "topos", name+".xml"), nodes, false,
		env)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRoutes reports by which NIC and proxy ranks communicate, as transport/net.cc and
// search.cc:1277 decide.
func TestRoutes(t *testing.T) {
	const gdr = true
	net := func(sn, dn, proxy, dst int32) connect.Route {
		return connect.Route{Transport: connect.NET, SrcNet: sn, DstNet: dn, SrcProxy: proxy, DstProxy: dst,
			SrcGDR: gdr, DstGDR: gdr}
	}
	local := func(tr connect.Transport, src, dst int32) connect.Route {
		return connect.Route{Transport: tr, SrcNet: -1, DstNet: -1, SrcProxy: src, DstProxy: dst}
	}
	noGDR := func(r connect.Route) connect.Route { r.SrcGDR, r.DstGDR = false, false; return r }
	flush := func(r connect.Route) connect.Route { r.Flush = true; return r }
	collNet := []string{"NCCL_COLLNET_ENABLE=1", "SIMCCL_COLLNET=1"}
	toNetwork := func(r int32) connect.Route {
		return connect.Route{Transport: connect.NET, SrcNet: r, DstNet: -1, SrcProxy: r, DstProxy: -1,
			SrcGDR: true}
	}
	fromNetwork := func(r int32) connect.Route {
		return connect.Route{Transport: connect.NET, SrcNet: -1, DstNet: r, SrcProxy: -1, DstProxy: r,
			DstGDR: true}
	}
	for _, tt := range []struct {
		name, topo string
		env        []string
		src, dst   int32
		channel    int
		kind       connect.RouteKind
		want       connect.Route
	}{
		{"NVLink inside a host", "dgx-h100", nil, 0, 7, 0, connect.RingRoute, local(connect.P2P, 0, 7)},
		{"shared memory between sockets", "pcie-a100-4", nil, 0, 3, 0, connect.P2PRoute,
			local(connect.SHM, 0, 3)},
		{"P2P switched off", "dgx-h100", []string{"NCCL_P2P_DISABLE=1", "NCCL_NET_DISABLE_INTRA=1"}, 0, 7, 0,
			connect.RingRoute, local(connect.SHM, 0, 7)},
		// Ring 0 leaves node 0 by GPU 1 and net 1, and enters node 1, whose
		// channels are swapped, by the same rail.
		{"a ring stays on its rail", "dgx-h100", nil, 1, 9, 0, connect.RingRoute, net(1, 1, 1, 9)},
		{"send/recv to the same rail", "dgx-h100", nil, 3, 11, 0, connect.P2PRoute, net(3, 3, 3, 11)},
		{"PXN: the rail's GPU sends", "dgx-h100", nil, 3, 13, 0, connect.P2PRoute, net(5, 5, 5, 13)},
		{"no PXN: the own NIC crosses rails", "dgx-h100", []string{"NCCL_PXN_DISABLE=1"}, 3, 13, 0,
			connect.P2PRoute, net(3, 5, 3, 13)},
		{"PXN only where needed: the path says so", "dgx-h100", []string{"NCCL_P2P_PXN_LEVEL=1"}, 3, 13, 0,
			connect.P2PRoute, net(5, 5, 5, 13)},
		{"no GDR: through the host", "dgx-h100", []string{"NCCL_NET_GDR_LEVEL=LOC"}, 3, 11, 0,
			connect.P2PRoute, noGDR(net(3, 3, 3, 11))},
		{"Ampere flushes what it receives", "dgx-a100", nil, 2, 10, 0, connect.P2PRoute,
			flush(net(2, 2, 2, 10))},
		{"to the network that reduces: the head's own NIC, on every channel", "dgx-h100", collNet, 3,
			connect.Network, 5, connect.CollNetRoute, toNetwork(3)},
		{"and from it", "dgx-a100", collNet, connect.Network, 3, 0, connect.CollNetRoute,
			flush(fromNetwork(3))},
		{"forced flush", "dgx-h100", []string{"NCCL_NET_FORCE_FLUSH=1"}, 3, 11, 0, connect.P2PRoute,
			flush(net(3, 3, 3, 11))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := build(t, tt.topo, 2, tt.env...).RouteOf(tt.src, tt.dst, tt.channel, tt.kind); got !=
				tt.want {
				t.Errorf("%d to %d: %+v, want %+v", tt.src, tt.dst, got, tt.want)
			}
		})
	}
}

// TestSeveralNodesNeedNets: one node does without any; of several each needs one.
func TestSeveralNodesNeedNets(t *testing.T) {
	bare := topo.Assemble(rules.Default(), []topo.Node{{Kind: topo.GPU, GPU: &topo.GPUInfo{}}}, nil,
		func(from, base topo.NodeID) topo.Path { return topo.Path{} })
	own := build(t, "dgx-h100", 1).Domains[0].System
	for _, x := range []struct {
		systems []*topo.System
		want    int // the node without, -1 for none
	}{{[]*topo.System{bare}, -1}, {[]*topo.System{own, own}, -1}, {[]*topo.System{own, bare}, 1}} {
		l := &connect.Layout{NNodes: len(x.systems)}
		for _, s := range x.systems {
			l.Domains = append(l.Domains, connect.Domain{System: s})
		}
		var none *connect.NoNetError
		err := l.CheckNets()
		if errors.As(err, &none) != (x.want >= 0) || none != nil && none.Node != x.want {
			t.Errorf("%d nodes: %v, want node %d", len(x.systems), err, x.want)
		}
	}
}
