package draw

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/units"
)

// Plain is a communicator of equal nodes with rings and trees in rank order.
func Plain(perNode, nodes, channels int) *connect.Layout {
	n := perNode * nodes
	c := &connect.Layout{Rules: rules.Default(),
		NRanks: n, NNodes: nodes, NChannels: channels, CollChannels: channels,
		NVLSChannels: channels, NVLSChunkSize: 131072,
		P2PChannels: channels, P2PChannelsPerPeer: channels, P2PChunkSize: 131072,
		BuffSizes: [3]units.Bytes{524288, 4915200, 4194304},
		NodeRanks: make([][]int32, nodes),
	}
	ch := connect.Channel{Order: UpTo(n)}
	v := connect.NVLSChannel{}
	for r := range int32(n) {
		node := r / int32(perNode)
		c.NodeOf = append(c.NodeOf, node)
		c.LocalRank = append(c.LocalRank, r%int32(perNode))
		c.NodeRanks[node] = append(c.NodeRanks[node], r)
		ch.Ring = append(ch.Ring, connect.RingLinks{Prev: (r + int32(n) - 1) % int32(n),
			Next: (r + 1) % int32(n)})
		down := func(m int32) int32 {
			if m < int32(n) {
				return m
			}
			return -1
		}
		t := connect.TreeLinks{Up: (r - 1) / 2, Down: [3]int32{down(2*r + 1), down(2*r + 2), -1}}
		if r == 0 {
			t.Up = -1
		}
		ch.Tree = append(ch.Tree, t)
		v.HeadIndex = append(v.HeadIndex, r%int32(perNode))
		up, kids := int32(-1), [3]int32{int32(n) + 1 + r%int32(perNode), -1, -1}
		if node > 0 {
			up = r - int32(perNode)
		}
		if node+1 < int32(nodes) {
			kids[1] = r + int32(perNode)
		}
		v.TreeUp, v.TreeDown = append(v.TreeUp, up), append(v.TreeDown, kids)
	}
	v.Heads = UpTo(perNode)
	for range channels {
		c.Channels, c.NVLS = append(c.Channels, ch), append(c.NVLS, v)
	}
	c.RouteOf = func(src, dst int32, _ int, _ connect.RouteKind) connect.Route {
		if src == plan.Network || dst == plan.Network || c.NodeOf[src] != c.NodeOf[dst] {
			return connect.Route{Transport: connect.NET}
		}
		return connect.Route{Transport: connect.P2P}
	}
	GiveCollNet(c, UpTo(perNode))
	return c
}

// Kernels lists every combination that NCCL has a kernel for.
func Kernels(nodes int) []plan.Request {
	var list []plan.Request
	add := func(f coll.Func, a coll.Algorithm, protos ...coll.Protocol) {
		for _, pr := range protos {
			list = append(list, plan.Request{Func: f, Algo: a, Proto: pr, Warps: 20})
		}
	}
	for _, f := range coll.CollFuncs() {
		add(f, coll.Ring, coll.LL, coll.LL128, coll.Simple)
	}
	add(coll.AllReduce, coll.Tree, coll.LL, coll.LL128, coll.Simple)
	add(coll.AllGather, coll.PAT, coll.Simple)
	add(coll.ReduceScatter, coll.PAT, coll.Simple)
	for _, a := range []coll.Algorithm{coll.NVLS, coll.CollNetDirect} {
		add(coll.AllReduce, a, coll.Simple)
		add(coll.AllGather, a, coll.Simple)
		add(coll.ReduceScatter, a, coll.Simple)
	}
	add(coll.AllReduce, coll.CollNetChain, coll.Simple)
	if nodes > 1 {
		add(coll.AllReduce, coll.NVLSTree, coll.Simple)
	}
	for _, f := range coll.P2PFuncs() {
		add(f, coll.Ring, coll.Simple)
	}
	return list
}

// GiveCollNet gives a communicator of equal nodes, whose ranks are numbered
// node by node, what in-network reduction needs: locals are the heads of every
// node, and chain i begins with the i-th of them.
func GiveCollNet(c *connect.Layout, locals []int32) {
	per := int32(c.NRanks / c.NNodes)
	n := &c.CollNet
	*n = connect.CollNet{Enabled: true}
	c.MinLocalRanks, c.MaxLocalRanks = int(per), int(per)
	c.NVLSHeads = make([][]int32, len(locals))
	for node := range int32(c.NNodes) {
		var heads []int32
		var orders [][]int32
		for h, local := range locals {
			heads = append(heads, node*per+local)
			c.NVLSHeads[h] = append(c.NVLSHeads[h], node*per+local)
			var order []int32
			for i := range per {
				order = append(order, node*per+(local+i)%per)
			}
			orders = append(orders, order)
		}
		n.Heads, n.Order = append(n.Heads, heads), append(n.Order, orders)
	}
	n.NetHeads = n.Heads
	for ch := range c.NChannels {
		up, down := make([]int32, c.NRanks), make([]int32, c.NRanks)
		for node := range n.Order {
			above := int32(c.NRanks)
			for _, r := range n.Order[node][ch%len(locals)] {
				up[r], down[r] = above, -1
				if int(above) < c.NRanks {
					down[above] = r
				}
				above = r
			}
		}
		n.ChainUp, n.ChainDown = append(n.ChainUp, up), append(n.ChainDown, down)
		n.ChainOf = append(n.ChainOf, int32(ch))
	}
}

// UpTo lists the numbers below n.
func UpTo(n int) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}
