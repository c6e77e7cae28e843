package plan

// PortEnds numbers the ends of a plan's connections port by port, so that all executors of the plan, or of a
// part of it, give an end the same number. Slices are indexed by connection id; numbers count from 1 at each
// port: a node's NIC (NET node), or the node itself for ends without a NIC. 0: no op uses the id, or the end
// is in the network.
type PortEnds struct{ Src, Dst []int32 }

// PortEnds numbers the ends of all connections.
func (p *Plan) PortEnds() PortEnds {
	n := p.NumConns()
	out := PortEnds{make([]int32, n), make([]int32, n)}
	type port struct{ node, net int32 }
	used := make(map[port]int32)
	for id := range n {
		c := p.Conn(id)
		if c.Src == -1 || c.Dst == -1 {
			continue
		}
		if c.Src != Network {
			at := port{p.Comm.NodeOf[c.Src], c.Route.SrcNet}
			used[at]++
			out.Src[id] = used[at]
		}
		if c.Dst != Network {
			at := port{p.Comm.NodeOf[c.Dst], c.Route.DstNet}
			used[at]++
			out.Dst[id] = used[at]
		}
	}
	return out
}
