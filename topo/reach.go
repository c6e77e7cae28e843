package topo

// Transport names how src reaches dst's memory inside the System: "P2P",
// "SHM", or "" where only the network does.
func (s *System) Transport(src, dst NodeID, a *Access) string { return s.connects(src, dst, a) }

// LocalCPU returns the CPU node that is fewest hops from a GPU, None where it
// reaches none.
func (s *System) LocalCPU(gpu NodeID) NodeID {
	c, err := s.localCPU(gpu)
	if err != nil {
		return None
	}
	return c
}
