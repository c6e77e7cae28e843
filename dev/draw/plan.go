package draw

import (
	"math/bits"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/units"
)

// Shape is what a random communicator is made from.
type Shape struct {
	PerNode, Nodes, Channels int
}

// Layout builds a communicator whose rings and trees are arbitrary: plans
// must be right on any that connect could hand them.
func Layout(t *rapid.T, s Shape) *connect.Layout {
	n := s.PerNode * s.Nodes
	pow2 := 1 << bits.Len(uint(s.Channels-1))
	c := &connect.Layout{Rules: rules.Default(),
		NRanks: n, NNodes: s.Nodes, NChannels: s.Channels, CollChannels: s.Channels,
		NVLSChannels: s.Channels, NVLSChunkSize: 131072,
		P2PChannels: pow2, P2PChannelsPerPeer: 1 << rapid.IntRange(0, bits.Len(uint(pow2))-1).Draw(t,
			"perPeerLog"),
		P2PChunkSize: units.Bytes(128 << 10 << rapid.IntRange(0, 2).Draw(t, "p2pChunkLog")),
		BuffSizes:    [3]units.Bytes{524288, 4915200, 4194304},
	}
	if rapid.IntRange(0, 3).Draw(t, "smallBuffers") == 0 {
		c.BuffSizes = [3]units.Bytes{65536, 614400, 65536}
	}
	c.NodeRanks = make([][]int32, s.Nodes)
	for r := range n {
		c.NodeOf = append(c.NodeOf, int32(r/s.PerNode))
		c.LocalRank = append(c.LocalRank, int32(r%s.PerNode))
		c.NodeRanks[r/s.PerNode] = append(c.NodeRanks[r/s.PerNode], int32(r))
	}
	c.RouteOf = func(src, dst int32, _ int, _ connect.RouteKind) connect.Route {
		if src == plan.Network || dst == plan.Network || c.NodeOf[src] != c.NodeOf[dst] {
			return connect.Route{Transport: connect.NET}
		}
		return connect.Route{Transport: connect.P2P}
	}
	for range s.Channels {
		c.Channels = append(c.Channels, randomChannel(t, n))
		c.NVLS = append(c.NVLS, randomNVLS(t, c, s))
	}
	randomCollNet(t, c)
	return c
}

func randomChannel(t *rapid.T, n int) connect.Channel {
	order := rapid.Permutation(UpTo(n)).Draw(t, "ring")
	zero := 0
	for i, r := range order {
		if r == 0 {
			zero = i
		}
	}
	ch := connect.Channel{Ring: make([]connect.RingLinks, n), Tree: make([]connect.TreeLinks, n)}
	for i := range n {
		ch.Order = append(ch.Order, order[(zero+i)%n])
	}
	for i, r := range ch.Order {
		ch.Ring[r] = connect.RingLinks{Prev: ch.Order[(i+n-1)%n], Next: ch.Order[(i+1)%n]}
	}
	joined := rapid.Permutation(UpTo(n)).Draw(t, "tree")
	kids := make([]int, n)
	for i, r := range joined {
		ch.Tree[r] = connect.TreeLinks{Up: -1, Down: [3]int32{-1, -1, -1}}
		if i == 0 {
			continue
		}
		up := joined[rapid.IntRange(0, i-1).Draw(t, "parent")]
		for full(up, joined[0], kids[up]) {
			up = joined[(position(joined, up)+1)%i]
		}
		ch.Tree[r].Up = up
		ch.Tree[up].Down[kids[up]] = r
		kids[up]++
	}
	return ch
}

func full(r, root int32, kids int) bool {
	return kids == 3 || (r == root && kids == 2)
}

func position(list []int32, x int32) int {
	for i, v := range list {
		if v == x {
			return i
		}
	}
	return -1
}

// randomNVLS makes some or all ranks of a node heads, and a tree of nodes.
func randomNVLS(t *rapid.T, c *connect.Layout, s Shape) connect.NVLSChannel {
	n, heads := c.NRanks, s.PerNode
	if s.Nodes > 1 {
		heads = 1 + (c.NChannels+s.PerNode)%s.PerNode // equal on all channels
	}
	v := connect.NVLSChannel{TreeUp: make([]int32, n), TreeDown: make([][3]int32, n),
		HeadIndex: make([]int32, n)}
	for r := range n {
		local := r % s.PerNode
		v.HeadIndex[r] = -1
		v.TreeUp[r], v.TreeDown[r] = -1, [3]int32{-1, -1, -1}
		if local >= heads {
			continue
		}
		v.HeadIndex[r] = int32(local)
		v.TreeDown[r][0] = int32(n + 1 + local)
		if r < s.PerNode {
			v.Heads = append(v.Heads, int32(r))
		}
	}
	kids := make([]int, s.Nodes)
	for node := 1; node < s.Nodes; node++ {
		up := rapid.IntRange(0, node-1).Draw(t, "nodeParent")
		for kids[up] == 2 {
			up = (up + 1) % node
		}
		kids[up]++
		for h := range heads {
			me, parent := node*s.PerNode+h, up*s.PerNode+h
			v.TreeUp[me] = int32(parent)
			v.TreeDown[parent][kids[up]] = int32(me)
		}
	}
	return v
}

// Request draws any operation that NCCL has a kernel for.
func Request(t *rapid.T, c *connect.Layout) plan.Request {
	r := plan.Request{
		Func:     coll.Func(rapid.IntRange(0, int(coll.NumFuncs)-1).Draw(t, "func")),
		Type:     coll.DataType(rapid.IntRange(0, int(coll.NumDataTypes)-1).Draw(t, "type")),
		Op:       coll.RedOp(rapid.IntRange(0, int(coll.NumRedOps)-1).Draw(t, "op")),
		Root:     int32(rapid.IntRange(0, c.NRanks-1).Draw(t, "root")),
		InPlace:  rapid.Bool().Draw(t, "inPlace"),
		Channels: rapid.IntRange(1, c.NChannels).Draw(t, "nMaxChannels"),
		Warps:    rapid.IntRange(4, 20).Draw(t, "warps"),
	}
	if c.NRanks == 1 && r.Op == coll.Avg && (r.Type == coll.Float8e4m3 || r.Type == coll.Float8e5m2) {
		r.Op = coll.Sum // of one rank NCCL has no kernel for that average (device/onerank.cu:66)
	}
	mag := rapid.IntRange(0, 20).Draw(t, "magnitude")
	r.Count = int64(rapid.IntRange(0, 1<<mag).Draw(t, "count"))
	if r.Func == coll.AllToAll && rapid.Bool().Draw(t, "unequal") {
		r.Pairs = Pairs(t, c.NRanks, 1<<mag)
		r.Count = r.Pairs.Count()
	}
	algos := map[coll.Func][]coll.Algorithm{
		coll.AllReduce: {coll.Ring, coll.Tree, coll.NVLS, coll.NVLSTree, coll.CollNetDirect,
			coll.CollNetChain},
		coll.AllGather:     {coll.Ring, coll.PAT, coll.NVLS, coll.CollNetDirect},
		coll.ReduceScatter: {coll.Ring, coll.PAT, coll.NVLS, coll.CollNetDirect},
	}[r.Func]
	if algos == nil {
		algos = []coll.Algorithm{coll.Ring}
	}
	r.Algo = rapid.SampledFrom(algos).Draw(t, "algo")
	if !meetsHeads(c, &r) {
		r.Algo = coll.Ring
	}
	if r.Algo == coll.CollNetDirect {
		r.Warps = max(r.Warps, 12)
	}
	r.Proto = coll.Simple
	if r.Algo == coll.Ring || r.Algo == coll.Tree {
		r.Proto = coll.Protocol(rapid.IntRange(0, 2).Draw(t, "proto"))
	} else if r.Op == coll.Avg && r.Algo != coll.CollNetDirect && r.Algo != coll.CollNetChain {
		r.Op = coll.Sum
	}
	return r
}

// Pairs draws the counts of an alltoall, up to most: some ranks send nothing, some
// receive nothing, some pairs have nothing.
func Pairs(t *rapid.T, ranks, most int) *coll.Pairs {
	sends := rapid.SliceOfN(rapid.IntRange(0, 3), ranks, ranks).Draw(t, "sends")
	takes := rapid.SliceOfN(rapid.IntRange(0, 3), ranks, ranks).Draw(t, "takes")
	counts := rapid.SliceOfN(rapid.Int64Range(0, int64(most)), ranks*ranks, ranks*ranks).Draw(t, "counts")
	for i := range counts {
		if sends[i/ranks] == 0 || takes[i%ranks] == 0 {
			counts[i] = 0
		}
	}
	p, err := coll.NewPairs(ranks, counts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// meetsHeads reports whether the heads of a communicator serve a request: those
// of NVLS must be the network's, and in all-gather and reduce-scatter every
// rank must be one.
func meetsHeads(c *connect.Layout, r *plan.Request) bool {
	if !r.Algo.IsCollNet() && (r.Algo != coll.NVLS || c.NNodes == 1) {
		return true
	}
	per := c.NRanks / c.NNodes
	if r.Func != coll.AllReduce && len(c.CollNet.NetHeads[0]) < per {
		return false
	}
	if r.Algo != coll.NVLS {
		return true
	}
	if r.Func != coll.AllReduce && len(c.NVLSHeads) < per {
		return false
	}
	for h := range c.NVLSHeads {
		if h >= len(c.CollNet.NetHeads[0]) || c.NVLSHeads[h][0] != c.CollNet.NetHeads[0][h] {
			return false
		}
	}
	return true
}

// randomCollNet draws the heads: those of NVLS in their order, or any.
func randomCollNet(t *rapid.T, c *connect.Layout) {
	per := c.NRanks / c.NNodes
	if rapid.Bool().Draw(t, "headsOfNVLS") {
		GiveCollNet(c, UpTo(len(c.NVLS[0].Heads)))
		return
	}
	GiveCollNet(c, rapid.Permutation(UpTo(per)).Draw(t,
		"heads")[:rapid.IntRange(1, per).Draw(t, "nHeads")])
	// NVLS keeps the heads that its channels have.
	h := len(c.NVLS[0].Heads)
	c.NVLSHeads = nil
	for i := range h {
		var heads []int32
		for node := range c.NNodes {
			heads = append(heads, int32(node*per+i))
		}
		c.NVLSHeads = append(c.NVLSHeads, heads)
	}
}
