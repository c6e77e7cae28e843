package plan

// PortEnds numbers the ends of a plan's connections port by port, so that
// whoever runs the plan, or a part of it, names an end of a connection alike.
// Numbers are by connection id and count from 1 on at each port: a node's NET
// node, or the node itself for ends that have none. 0: nothing uses the id.
type PortEnds struct{ Src, Dst []int32 }

// PortEnds lists the ends of all connections.
func (p *Plan) PortEnds() PortEnds {
	n := p.NumConns()
	out := PortEnds{make([]int32, n), make([]int32, n)}
	type port struct{ node, net int32 }
	used := make(map[port]int32)
	for id := range n {
		c := p.Conn(id)
		if c.Src < 0 || c.Dst < 0 {
			continue
		}
		src, dst := port{p.Comm.NodeOf[c.Src], c.Route.SrcNet}, port{p.Comm.NodeOf[c.Dst], c.Route.DstNet}
		used[src]++
		out.Src[id] = used[src]
		used[dst]++
		out.Dst[id] = used[dst]
	}
	return out
}
