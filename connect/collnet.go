package connect

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
)

// CollNet is what ranks agreed on for in-network reduction; Enabled false
// leaves the rest empty, and Off says why.
type CollNet struct {
	Enabled bool
	Off     string
	OffAt   rules.Place // where NCCL has the condition of Off
	// Heads[n] lists the ranks of node n that reach the network in
	// CollNetDirect, by head; Order[n][h] lists the node's ranks in the order in
	// which head h takes them (connect.cc:200).
	Heads [][]int32
	Order [][][]int32
	// ChainUp and ChainDown are a rank's neighbours in the chain of its node by
	// [channel of the search][rank]; -1 where none, NRanks for the network.
	ChainUp, ChainDown [][]int32
	// ChainOf is the index in ChainUp of each channel; -1 where none.
	ChainOf []int32
	// NetHeads[n] lists the ranks of node n with a connection to the network, by
	// head: the NVLS heads where there are any and the rules say so, else Heads
	// (transport/coll_net.cc:1492).
	NetHeads [][]int32
}

// noCollNet says why there is no in-network reduction, "" where there is
// (init.cc:1189, 1200).
func (c *Layout) noCollNet(p *Params) (why string, at rules.Place) {
	least := p.CollNetNodeThreshold.Or(2)
	most := p.Rules.Connect.CollNetRanks
	switch {
	case !p.CollNet:
		return "no network plugin reduces", rules.AtCollNetPlugin
	case c.Final[search.CollNetChainID].NChannels == 0:
		return "the search found no CollNet chain", rules.AtCollNetChainGraph
	case int64(c.NNodes) < least:
		return fmt.Sprintf("NCCL_COLLNET_NODE_THRESHOLD asks for %d nodes", least), rules.AtCollNetNodes
	case most > 0 && c.MaxLocalRanks > most:
		return fmt.Sprintf("NCCL %s has it for %d ranks a node and there are %d", p.Rules.Version(), most,
			c.MaxLocalRanks), rules.AtCollNetRanks
	}
	return "", rules.AtNone
}

// ChainHeadless reports whether a chain of rank 0's node begins at a rank that NCCL does
// not connect to the network (transport/coll_net.cc:1678 of v2.30.7-1).
func (c *Layout) ChainHeadless() bool {
	n := &c.CollNet
	if !n.Enabled {
		return false
	}
	for _, up := range n.ChainUp {
		for _, r := range c.NodeRanks[0] {
			if int(up[r]) == c.NRanks && !slices.Contains(n.NetHeads[0], r) {
				return true
			}
		}
	}
	return false
}

// attach sets what is known only when all channels are: the chain of each, and
// the ranks that NCCL connects to the network.
func (n *CollNet) attach(c *Layout) {
	if !n.Enabled {
		return
	}
	n.ChainOf = make([]int32, len(c.searched))
	for ch, from := range c.searched {
		n.ChainOf[ch] = none
		if int(from) < len(n.ChainUp) {
			n.ChainOf[ch] = from
		}
	}
	n.NetHeads = n.Heads
	if n.graph(c) != search.NVLSID {
		return
	}
	n.NetHeads = make([][]int32, c.NNodes)
	for node := range n.NetHeads {
		for _, heads := range c.NVLSHeads {
			n.NetHeads[node] = append(n.NetHeads[node], heads[node])
		}
	}
}

// graph is the graph that NCCL connects heads to the network with.
func (n *CollNet) graph(c *Layout) int {
	if c.NVLSSupport && c.Rules.Connect.CollNetOfNVLS {
		return search.NVLSID
	}
	return search.CollNetDirectID
}

// joinCollNet sets the heads and chains (connect.cc:62, 178).
func (j *joiner) joinCollNet() error {
	c := j.c
	n := c.Final[search.CollNetChainID].NChannels
	c.CollNet.ChainUp, c.CollNet.ChainDown = make([][]int32, n), make([][]int32, n)
	for ch := range n {
		if err := j.p.poll(); err != nil {
			return err
		}
		up, down := make([]int32, c.NRanks), make([]int32, c.NRanks)
		for node := range c.Domains {
			order, first, err := j.intra(node, search.CollNetChainID, ch)
			if err != nil {
				return err
			}
			above := int32(c.NRanks)
			for _, local := range order {
				r := first + int32(local)
				up[r], down[r] = above, none
				if int(above) != c.NRanks {
					down[above] = r
				}
				above = r
			}
		}
		c.CollNet.ChainUp[ch], c.CollNet.ChainDown[ch] = up, down
	}
	c.CollNet.Heads, c.CollNet.Order = make([][]int32, c.NNodes), make([][][]int32, c.NNodes)
	for node := range c.Domains {
		d := &c.Domains[node]
		c.CollNet.Heads[node] = headsOf(d, search.CollNetDirectID)
		for h := range c.CollNet.Heads[node] {
			locals, first, err := j.intra(node, search.CollNetDirectID, h)
			if err != nil {
				return err
			}
			order := make([]int32, len(locals))
			for i, local := range locals {
				order[i] = first + int32(local)
			}
			c.CollNet.Order[node] = append(c.CollNet.Order[node], order)
		}
	}
	return nil
}

// netRoute is the connection of a head with the network: one NIC for all
// channels, that of the head's own place in the graph, and no PXN
// (transport/coll_net.cc:166).
func (r *router) netRoute(head int32, sends bool) Route {
	out := Route{Transport: NET, SrcNet: none, DstNet: none, SrcProxy: none, DstProxy: none}
	c := r.c
	w, g, _ := r.at(head)
	net := none
	if node := c.NodeOf[head]; int(node) < len(c.CollNet.NetHeads) && len(w.owner) > 0 {
		if h := slices.Index(c.CollNet.NetHeads[node], head); h >= 0 {
			net = r.graphNet(head, h, CollNetRoute)
		}
	}
	if sends {
		out.SrcNet, out.SrcProxy = int32(net), head
	} else {
		out.DstNet, out.DstProxy = int32(net), head
	}
	if net == none {
		return out
	}
	v := w.view(g, net)
	out.SrcGDR, out.DstGDR, out.Flush = sends && v.read, !sends && v.write, !sends && v.flush
	return out
}
