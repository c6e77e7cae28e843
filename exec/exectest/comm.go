package exectest

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/units"
)

// Comm makes a communicator of equal nodes with rings in rank order, trees as
// binary heaps, every rank a head, and a chain of nodes: simple, but with all
// that a plan can request. channels is a power of two.
func Comm(perNode, nodes, channels int) *connect.Layout {
	n := int32(perNode * nodes)
	c := &connect.Layout{Rules: rules.Default(),
		NRanks: int(n), NNodes: nodes, NChannels: channels, CollChannels: channels,
		NVLSChannels: channels, NVLSChunkSize: 128 << 10,
		P2PChannels: channels, P2PChannelsPerPeer: channels, P2PChunkSize: 512 << 10,
		BuffSizes:   [3]units.Bytes{512 << 10, 4800 << 10, 4 << 20},
		IsAllNVLink: true, NodeRanks: make([][]int32, nodes),
	}
	ch := connect.Channel{}
	v := connect.NVLSChannel{}
	for r := range n {
		node, local := r/int32(perNode), r%int32(perNode)
		c.NodeOf, c.HostOf = append(c.NodeOf, node), append(c.HostOf, node)
		c.LocalRank = append(c.LocalRank, local)
		c.NodeRanks[node] = append(c.NodeRanks[node], r)
		ch.Order, ch.Pos = append(ch.Order, r), append(ch.Pos, r)
		ch.Ring = append(ch.Ring, connect.RingLinks{Prev: (r + n - 1) % n, Next: (r + 1) % n})
		ch.Tree = append(ch.Tree, heapTree(r, n))
		if node == 0 {
			v.Heads = append(v.Heads, r)
		}
		v.HeadIndex = append(v.HeadIndex, local)
		up, down := int32(-1), [3]int32{n + 1 + local, -1, -1}
		if node > 0 {
			up = r - int32(perNode)
		}
		if node+1 < int32(nodes) {
			down[1] = r + int32(perNode)
		}
		v.TreeUp, v.TreeDown = append(v.TreeUp, up), append(v.TreeDown, down)
	}
	for range channels {
		c.Channels, c.NVLS = append(c.Channels, ch), append(c.NVLS, v)
	}
	c.RouteOf = func(src, dst int32, _ int, _ connect.RouteKind) connect.Route {
		if c.NodeOf[src] == c.NodeOf[dst] {
			return connect.Route{Transport: connect.P2P, SrcNet: -1, DstNet: -1, SrcProxy: src, DstProxy: dst}
		}
		return connect.Route{Transport: connect.NET, SrcProxy: src, DstProxy: dst, SrcGDR: true, DstGDR: true}
	}
	return c
}

// heapTree links rank r of n as in a binary heap.
func heapTree(r, n int32) connect.TreeLinks {
	t := connect.TreeLinks{Up: (r - 1) / 2, Down: [3]int32{-1, -1, -1}}
	if r == 0 {
		t.Up = -1
	}
	for i := range int32(2) {
		if d := 2*r + 1 + i; d < n {
			t.Down[i] = d
		}
	}
	return t
}

// Requests lists every kernel that NCCL has, on nodes nodes.
func Requests(nodes int) []plan.Request {
	var list []plan.Request
	add := func(f coll.Func, a coll.Algorithm, warps int, protos ...coll.Protocol) {
		for _, pr := range protos {
			list = append(list, plan.Request{Func: f, Type: coll.Float32, Algo: a, Proto: pr,
				Channels: 1 << 20, Warps: warps})
		}
	}
	for _, f := range coll.CollFuncs() {
		add(f, coll.Ring, 16, coll.LL, coll.LL128, coll.Simple)
	}
	add(coll.AllReduce, coll.Tree, 20, coll.LL, coll.LL128, coll.Simple)
	add(coll.AllGather, coll.PAT, 16, coll.Simple)
	add(coll.ReduceScatter, coll.PAT, 16, coll.Simple)
	nvls, funcs := coll.NVLSTree, []coll.Func{coll.AllReduce}
	if nodes == 1 {
		nvls, funcs = coll.NVLS, []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter}
	}
	for _, f := range funcs {
		add(f, nvls, 20, coll.Simple)
	}
	for _, f := range coll.P2PFuncs() {
		add(f, coll.Ring, 20, coll.Simple)
	}
	return list
}
