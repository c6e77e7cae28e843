package plan

import (
	"pgregory.net/rapid"

	"github.com/simccl/simccl/connect"
)

// giveCollNet gives a communicator of equal nodes, whose ranks are numbered
// node by node, what in-network reduction needs: locals are the heads of every
// node, and chain i begins with the i-th of them.
func giveCollNet(c *connect.Comm, locals []int32) {
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

// randomCollNet draws the heads: those of NVLS in their order, or any.
func randomCollNet(t *rapid.T, c *connect.Comm) {
	per := c.NRanks / c.NNodes
	if rapid.Bool().Draw(t, "headsOfNVLS") {
		giveCollNet(c, upTo(len(c.NVLS[0].Heads)))
		return
	}
	giveCollNet(c, rapid.Permutation(upTo(per)).Draw(t, "heads")[:rapid.IntRange(1, per).Draw(t, "nHeads")])
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
