package topo

// Transport returns the transport between src and dst inside the System: "P2P", "SHM", or "" if only the
// network connects them.
func (s *System) Transport(src, dst NodeID, a *Access) string { return s.connects(src, dst, a) }

// linked returns the kind of nodes to which the links of GPUs are attached.
func (s *System) linked() NodeKind {
	if s.Rules.Topo.DevNodes {
		return DEV
	}
	return GPU
}

// Device returns the node with a GPU's links: the GPU itself, or its device node if NCCL distinguishes them.
// Other nodes are returned unchanged.
func (s *System) Device(n NodeID) NodeID {
	if s.Nodes[n].Kind == GPU && s.Rules.Topo.DevNodes {
		return s.Links[s.Nodes[n].Links[0]].To
	}
	return n
}

// OnDevice reports whether a link joins a GPU with its own device: bytes cross it
// within the chip.
func (s *System) OnDevice(l LinkID) bool {
	link := &s.Links[l]
	a, b := s.Nodes[link.From].Kind, s.Nodes[link.To].Kind
	return a == GPU && b == DEV || a == DEV && b == GPU
}

// GPUAt returns the GPU of a node: the node itself, or the GPU on a device node; None for other nodes.
func (s *System) GPUAt(n NodeID) NodeID {
	switch s.Nodes[n].Kind {
	case GPU:
		return n
	case DEV:
		for _, l := range s.Nodes[n].Links {
			if to := s.Links[l].To; s.Nodes[to].Kind == GPU {
				return to
			}
		}
	}
	return None
}

// LocalCPU returns the CPU node that is fewest hops from a GPU, None where it
// reaches none.
func (s *System) LocalCPU(gpu NodeID) NodeID {
	c, err := s.localCPU(gpu)
	if err != nil {
		return None
	}
	return c
}
