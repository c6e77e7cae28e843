package spec

// LateSide says which nodes are a delay behind the others: the switches with hosts, where every cable
// leads from one of them to a host or to a switch without hosts. What a side sends is a delay on its way,
// so each can be simulated for two of them at once. nil: there are no such sides; or what is in
// progress when the last flow ends may depend on where windows end.
//
// delay is the least of a cable, in ps. one: all switches must be on one side.
func LateSide(n *Network, c *Config, delay int64, one bool) []bool {
	if !Steady(n, c) || c.Watchdog.After > 0 {
		return nil
	}
	late := make([]bool, n.Nodes)
	for _, x := range n.Cables {
		late[x.A], late[x.B] = late[x.A] || !n.Switch[x.B], late[x.B] || !n.Switch[x.A]
	}
	for _, x := range n.Cables {
		// A frame that resumes a neighbour has arrived before the data it made room for is acknowledged.
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

// lasts is how long so many bytes take at a rate, in ps, rounded up.
func lasts(bytes int, rate int64) int64 { return (int64(bytes)*8_000_000_000_000 + rate - 1) / rate }
