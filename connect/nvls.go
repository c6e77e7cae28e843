package connect

import (
	"slices"

	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/units"
)

// headsOf lists the distinct first ranks of a graph's channels, in order
// (connect.cc:72).
func headsOf(d *Domain, id int) []int32 {
	g := d.Graphs[id]
	if g == nil {
		return nil
	}
	var heads []int32
	for c := range g.NChannels {
		if h := d.First + int32(g.Intra[c][0]); !slices.Contains(heads, h) {
			heads = append(heads, h)
		}
	}
	return heads
}

// joinNVLS sets NVLS channels, heads and the trees between heads of different
// nodes (connect.cc:238).
func (c *Layout) joinNVLS(in *Input, p *Params) {
	if !c.NVLSSupport {
		return
	}
	c.nvlsByRank(in, p)
	perNode := make([][]int32, c.NNodes)
	n := 1 << 30
	for i := range c.Domains {
		perNode[i] = headsOf(&c.Domains[i], search.NVLSID)
		n = min(n, len(perNode[i]))
	}
	c.NVLSHeads = make([][]int32, n)
	for h := range c.NVLSHeads {
		c.NVLSHeads[h] = make([]int32, c.NNodes)
		for i := range perNode {
			c.NVLSHeads[h][i] = perNode[i][h]
		}
	}
	index := make([]int32, c.NRanks)
	for r := range index {
		index[r] = int32(c.headIndex(int32(r)))
	}
	both := [2]NVLSChannel{c.nvlsTree(0, index), c.nvlsTree(1, index)}
	c.NVLS = make([]NVLSChannel, slices.Max(c.NVLSCount))
	for i := range c.NVLS {
		c.NVLS[i] = both[i%2]
	}
}

// nvlsTree joins the heads of the nodes in the first or second tree.
func (c *Layout) nvlsTree(second int, index []int32) NVLSChannel {
	t := NVLSChannel{HeadIndex: index, TreeUp: make([]int32, c.NRanks), TreeDown: make([][3]int32, c.NRanks)}
	for _, heads := range c.NVLSHeads {
		t.Heads = append(t.Heads, heads[0])
	}
	for r := range t.TreeUp {
		t.TreeUp[r], t.TreeDown[r] = none, [3]int32{none, none, none}
		if c.NNodes > 1 {
			t.TreeDown[r][0] = int32(c.NRanks) + 1 + index[r]
		}
	}
	if c.NNodes == 1 {
		return t
	}
	for node := range c.NNodes {
		place, other := doubleTree(c.NNodes, node)
		if second == 1 {
			place = other
		}
		for _, heads := range c.NVLSHeads {
			r, down := heads[node], 1
			if place.up != none {
				t.TreeUp[r] = heads[place.up]
			}
			for _, d := range place.down {
				if d != none {
					t.TreeDown[r][down] = heads[d]
					down++
				}
			}
		}
	}
	return t
}

// headIndex finds the head that a rank is.
func (c *Layout) headIndex(rank int32) int {
	node := c.NodeOf[rank]
	for h, heads := range c.NVLSHeads {
		if heads[node] == rank {
			return h
		}
	}
	return none
}

// NVLSTreeLimit is the largest chunk of NVLSTree in bytes: set, which is
// NCCL_NVLSTREE_MAX_CHUNKSIZE, else that of the rules for the machine
// (enqueue.cc:2063).
func (c *Layout) NVLSTreeLimit(set units.Opt[int64]) int64 {
	limit := int64(c.NVLSChunkSize)
	if c.NNodes >= c.Rules.Plan.NVLSTreeNodes {
		limit = c.Rules.Plan.NVLSTreeChunk
	}
	if c.NVLSTreeChunk > 0 {
		limit = int64(c.NVLSTreeChunk)
	}
	return int64(int32(set.Or(limit)))
}
