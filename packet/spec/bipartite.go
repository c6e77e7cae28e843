package spec

// LateSide divides a bipartite network into two sides for windows of two delays (see engine.takeTurns): true
// for the switches with hosts. It returns nil if some cable joins two nodes of one side, or where frames in
// flight when the last flow ends may be counted differently.
//
// delay is the least delay of a cable in ps. one: all switches must be on one side.
func LateSide(n *Network, c *Config, delay int64, one bool) []bool {
	if !Steady(n, c) || c.Watchdog.After > 0 {
		return nil
	}
	late := make([]bool, n.Nodes)
	for _, x := range n.Cables {
		late[x.A], late[x.B] = late[x.A] || !n.Switch[x.B], late[x.B] || !n.Switch[x.A]
	}
	for _, x := range n.Cables {
		// A RESUME must arrive before the data that it made room for is acknowledged.
		if late[x.A] == late[x.B] || lasts(c.Frames.Most()+c.Frames.Pause, x.Rate) > 2*delay {
			return nil
		}
	}
	for i, is := range n.Switch {
		if one && is && !late[i] {
			return nil
		}
	}
	return late
}

// lasts returns the transmission time of bytes at a rate in ps, rounded up.
func lasts(bytes int, rate int64) int64 { return (int64(bytes)*8_000_000_000_000 + rate - 1) / rate }
