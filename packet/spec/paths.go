package spec

func (f *Flow) checkPaths(n *Network, i int, c *Config) error {
	if len(f.Path)+len(f.Back) == 0 {
		return nil
	}
	reroutes := c.Routing.Balance != Hashed || c.Paths > 1
	for _, x := range c.Faults {
		reroutes = reroutes || x.Reroute
	}
	if reroutes {
		return Wrong("flow %d has a path of its own where frames choose theirs: leave one out", i)
	}
	if _, err := Along(n, f.Src, f.Dst, f.Path); err != nil {
		return Wrong("flow %d: %v", i, err)
	}
	if _, err := Along(n, f.Dst, f.Src, f.Back); err != nil {
		return Wrong("acknowledgements of flow %d: %v", i, err)
	}
	return nil
}

// Longest returns the number of links of the longest route: of the given paths and most, the longest of
// ECMP's.
func Longest(flows []Flow, most int) int {
	for i := range flows {
		most = max(most, len(flows[i].Path), len(flows[i].Back))
	}
	return most
}
