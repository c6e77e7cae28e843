package plan

// Cut says which elements of an operation each channel processes: the first channel Lo elements, the last (if
// there are two or more) Hi, those between Mid each. Elements are those of Request.Elements: bytes for
// all-gather and broadcast. For all-gather and reduce-scatter they are elements of one rank's block.
type Cut struct {
	ChannelLo, NChannels int
	Lo, Mid, Hi          int64
}

// ChannelHi returns the last channel.
func (c *Cut) ChannelHi() int { return c.ChannelLo + c.NChannels - 1 }

// Count returns the number of elements of all channels.
func (c *Cut) Count() int64 { return c.Lo + c.Hi + int64(max(c.NChannels-2, 0))*c.Mid }
