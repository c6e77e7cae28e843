package build

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
)

// heads is the numbering of connections in algorithms where ranks exchange with the n heads of their node
// (NVLS, NVLSTree, CollNetDirect): a rank has 2·n+2 connections on a channel: n to the heads, n from them,
// then one up to the tree or the network and one down. With 2 heads, place 1 leads to head 1, place 2 comes
// from head 0, place 4 goes up and place 5 down.
type heads struct{ n int32 }

func (h heads) ids() int32            { return 2*h.n + 2 }
func (h heads) to(head int32) int32   { return head }
func (h heads) from(head int32) int32 { return h.n + head }
func (h heads) up() int32             { return 2 * h.n }
func (h heads) down() int32           { return 2*h.n + 1 }

// nvlsHeads says which rank is which head: with multimem instructions a head reduces and broadcasts its share
// for all ranks of its node.
type nvlsHeads struct {
	heads
	rank [][]int32 // channel of the split → node·n + head → rank
}

// headsOf returns the number of NVLS heads of a node.
func headsOf(c *connect.Layout) int { return len(c.NVLS[0].Heads) }

// newNVLSHeads finds the heads of every node and channel.
func newNVLSHeads(b *base) (nvlsHeads, error) {
	c := b.comm
	n := headsOf(c)
	h := nvlsHeads{heads: heads{int32(n)}}
	if len(c.NVLS) <= b.split.ChannelHi || len(c.NodeRanks) != c.NNodes {
		return h, badRequest("Comm", "%d NVLS channels and ranks of %d nodes, need %d and %d", len(c.NVLS),
			len(c.NodeRanks), b.split.ChannelHi+1, c.NNodes)
	}
	for ch := b.split.ChannelLo; ch <= b.split.ChannelHi; ch++ {
		v := &c.NVLS[ch]
		if len(v.HeadIndex) != c.NRanks || len(v.Heads) != n {
			return h,
				badChannel(ch, "head indices of every rank, and equal heads on all channels, are needed")
		}
		ranks := make([]int32, c.NNodes*n)
		for i := range ranks {
			ranks[i] = -1
		}
		for r, i := range v.HeadIndex {
			if i >= 0 && int(i) < n {
				ranks[int(c.NodeOf[r])*n+int(i)] = int32(r)
			}
		}
		for i, r := range ranks {
			if r < 0 {
				return h, badChannel(ch, "node %d has no head %d", i/n, i%n)
			}
		}
		h.rank = append(h.rank, ranks)
	}
	return h, nil
}

func badChannel(ch int, format string, args ...any) error {
	return badRequest("Comm", "NVLS channel %d: "+format, append([]any{ch}, args...)...)
}

// conn sets the ends of a connection between a rank and a head of its node; it returns false if place belongs
// to another kind of connection.
func (h *nvlsHeads) conn(c *plan.Conn, index, node, rank, place int32) bool {
	if place >= h.up() {
		return false
	}
	c.Kind = connect.NVLSRoute
	head := h.rank[index][node*h.n+place%h.n]
	if c.Src, c.Dst = rank, head; place >= h.n {
		c.Src, c.Dst = head, rank
	}
	return true
}

// nvlsSupported returns an error for reductions that the switch cannot do, and for communicators without
// heads.
func nvlsSupported(c *connect.Layout, r *plan.Request) error {
	if averages(r) {
		return noKernel(r, "the switch reduces sum, min and max only (device.h, ncclNvlsSupported)")
	}
	if len(c.NVLS) == 0 || len(c.NVLS[0].Heads) == 0 {
		return noKernel(r, "the communicator has no NVLS channels")
	}
	return nil
}

// rooted reports whether a collective has a root; NVLS and CollNetDirect have no kernel for these.
func rooted(f coll.Func) bool { return f == coll.Broadcast || f == coll.Reduce }
