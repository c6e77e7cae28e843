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
func (c *Comm) joinNVLS(in *Input, p *Params) {
	if !c.NVLSSupport {
		return
	}
	c.NVLSChannels = nvlsChannels(in, c, p)
	perNode := make([][]int32, c.NNodes)
	n := 1 << 30
	for i := range c.Domains {
		perNode[i] = headsOf(&c.Domains[i], search.NVLSID)
		n = min(n, len(perNode[i]))
	}
	if n == 0 {
		c.NVLSChannels = 0
		return
	}
	c.NVLSChunkSize = units.Bytes(int32(p.NVLSChunkSize.Or(nvlsChunkSize)))
	c.NVLSHeads = make([][]int32, n)
	for h := range c.NVLSHeads {
		c.NVLSHeads[h] = make([]int32, c.NNodes)
		for i := range perNode {
			c.NVLSHeads[h][i] = perNode[i][h]
		}
	}
	both := [2]NVLSChannel{c.nvlsTree(0), c.nvlsTree(1)}
	c.NVLS = make([]NVLSChannel, c.NVLSChannels)
	for i := range c.NVLS {
		c.NVLS[i] = both[i%2]
	}
}

// nvlsTree joins the heads of the nodes in the first or second tree.
func (c *Comm) nvlsTree(second int) NVLSChannel {
	t := NVLSChannel{TreeUp: make([]int32, c.NRanks), TreeDown: make([][2]int32, c.NRanks)}
	for r := range t.TreeUp {
		t.TreeUp[r], t.TreeDown[r] = none, [2]int32{none, none}
	}
	at := func(heads []int32, node int) int32 {
		if node == none {
			return none
		}
		return heads[node]
	}
	for node := range c.NNodes {
		place, other := doubleTree(c.NNodes, node)
		if second == 1 {
			place = other
		}
		for _, heads := range c.NVLSHeads {
			r := heads[node]
			t.TreeUp[r] = at(heads, place.up)
			t.TreeDown[r] = [2]int32{at(heads, place.down[0]), at(heads, place.down[1])}
		}
	}
	return t
}

// HeadOf returns the index of the NVLS head that a rank is, -1 where it is
// none. Where NCCL names a rank twice the last counts.
func (c *Comm) HeadOf(rank int32) int {
	node := c.NodeOf[rank]
	for h := len(c.NVLSHeads) - 1; h >= 0; h-- {
		if c.NVLSHeads[h][node] == rank {
			return h
		}
	}
	return none
}

// CollNet is what ranks agreed on for in-network reduction; Enabled false
// leaves the rest empty.
type CollNet struct {
	Enabled bool
	// Heads[n] lists the ranks of node n that reach the network, by head.
	Heads [][]int32
	// ChainUp and ChainDown are a rank's neighbours in the chain of its node by
	// [channel of the search][rank]; -1 where none, NRanks for the network.
	ChainUp, ChainDown [][]int32
}

// joinCollNet sets the heads and chains (connect.cc:62, 178).
func (c *Comm) joinCollNet() {
	n := c.Final[search.CollNetChainID].NChannels
	c.CollNet.ChainUp, c.CollNet.ChainDown = make([][]int32, n), make([][]int32, n)
	for ch := range n {
		up, down := make([]int32, c.NRanks), make([]int32, c.NRanks)
		for i := range c.Domains {
			d := &c.Domains[i]
			above := int32(c.NRanks)
			for _, local := range d.Graphs[search.CollNetChainID].Intra[ch] {
				r := d.First + int32(local)
				up[r], down[r] = above, none
				if int(above) != c.NRanks {
					down[above] = r
				}
				above = r
			}
		}
		c.CollNet.ChainUp[ch], c.CollNet.ChainDown[ch] = up, down
	}
	c.CollNet.Heads = make([][]int32, c.NNodes)
	for i := range c.Domains {
		c.CollNet.Heads[i] = headsOf(&c.Domains[i], search.CollNetDirectID)
	}
}
