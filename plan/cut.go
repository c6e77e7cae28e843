package plan

// Cut is which elements of an operation which channels do: the first does Lo, the
// last (where there are two or more) Hi, those between Mid each. Elements are those
// of Request.Elements: bytes for all-gather and broadcast, and of one rank's block
// for all-gather and reduce-scatter.
type Cut struct {
	ChannelLo, NChannels int
	Lo, Mid, Hi          int64
}

// ChannelHi is the last channel.
func (c *Cut) ChannelHi() int { return c.ChannelLo + c.NChannels - 1 }

// Count is the elements of all channels.
func (c *Cut) Count() int64 { return c.Lo + c.Hi + int64(max(c.NChannels-2, 0))*c.Mid }
