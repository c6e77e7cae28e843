package plan

// Connection ids of algorithms whose ranks exchange with heads (NVLS, NVLSTree,
// CollNetDirect): numbered by channel, by rank, then nHeads to the heads,
// nHeads from them, one up (a tree or the network) and one down.

// headIDs is the number of a rank's ids on a channel.
func headIDs(nHeads int) int64 { return int64(2*nHeads + 2) }

// headsID returns the first id of a rank on a channel.
func (p *Plan) headsID(ch, rank int32, nHeads int) int32 {
	return ((ch-int32(p.Split.ChannelLo))*int32(p.Comm.NRanks) + rank) * int32(headIDs(nHeads))
}

// headsAt sets c.Channel by c.ID and returns whose id it is and its place.
func (p *Plan) headsAt(c *Conn, nHeads int) (rank, place int32) {
	per, n := int32(headIDs(nHeads)), int32(p.Comm.NRanks)
	k := c.ID / per
	c.Channel = int32(p.Split.ChannelLo) + k/n
	return k % n, c.ID % per
}

// openOwn opens a head's program for its own block alone, to the network or
// from it, by the head's first id.
func (c *Cursor) openOwn(self, nHeads int32) {
	if c.pr.Role == RoleSend {
		c.net.do, c.net.src = Send, true
		c.to = append(c.to, self+2*nHeads)
		return
	}
	c.net.do, c.net.dst = Recv|Copy|PostOp, true
	c.from = append(c.from, self+2*nHeads+1)
}
