package sim

import (
	"fmt"
	"math"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// fused is the number of physical ports behind a node's net.
func (n *network) fused(node, net int32) int32 {
	s := n.w.Systems[node]
	nets := s.Of(topo.NET)
	if net < 0 || int(net) >= len(nets) {
		return 1
	}
	return int32(max(1, len(s.Nodes[nets[net]].Net.Fused)))
}

// equalPorts tells whether a net's ports are of one speed, as far as is known.
func equalPorts(info *topo.NetInfo) bool {
	if len(info.PortBW) != len(info.Fused) {
		return true
	}
	for _, bw := range info.PortBW {
		if bw != info.PortBW[0] {
			return false
		}
	}
	return true
}

// portShare is the rate of one physical port of a fused net: its part of the
// net's, an equal one where only the sum is known. It is rounded up, so that
// equal ports hold up nothing that the sum lets through.
func portShare(info *topo.NetInfo, full wire.Rate, index int32) wire.Rate {
	k := wire.Rate(max(1, len(info.Fused)))
	if equalPorts(info) {
		return (full + k - 1) / k
	}
	return max(1, wire.Rate(math.Ceil(float64(full)*float64(info.PortBW[index])/float64(info.BW))))
}

// netOf is the net that a connection leaves by.
func (n *network) netOf(c *plan.Conn) *topo.NetInfo {
	s := n.w.Systems[n.w.Comm.NodeOf[c.Src]]
	return s.Nodes[s.Of(topo.NET)[c.Route.SrcNet]].Net
}

// fusedPort returns the link of one physical port of a fused net in one
// direction.
func (n *network) fusedPort(node int32, p port, index int32) (wire.LinkID, error) {
	full, err := n.portRate(node, p.net)
	if err != nil {
		return 0, err
	}
	s := n.w.Systems[node]
	info := s.Nodes[s.Of(topo.NET)[p.net]].Net
	way := "in"
	if p.out {
		way = "out"
	}
	id, made := n.w.Narrow(fmt.Sprintf("node%d %s %s", node, info.Fused[index], way), portShare(info, full, index))
	if slow := n.portFault(p, index).Slow; made && slow > 1 {
		n.w.Links.Limit(id, wire.Rate(float64(n.w.Links.Capacity(id))/slow))
	}
	return id, nil
}

// spread sets over how many queue pairs a connection goes, and a message of it:
// one for each of the ports of the side that has more of them, times
// NCCL_IB_QPS_PER_CONNECTION (net_ib.cc:1421, 1595).
func (n *network) spread(nc *netConn, src, dst int32) {
	nc.srcPorts, nc.dstPorts = src, dst
	nc.data = max(src, dst)
	nc.lanes = nc.data * int32(max(1, n.qps))
	if n.split {
		nc.data = nc.lanes
	}
}

// cut decides which queue pairs carry the next step of a connection, and how
// much each. They take turns (net_ib.cc:2184). Parts are equal, though NCCL's are
// multiples of 128 bytes: what uses all ports alike then stays alike.
func (n *network) cut(c *netConn, k int64) {
	i := k % int64(len(c.slot))
	s := &c.slot[i]
	bytes := c.bytes[i]
	parts, each := c.data, (bytes+units.Bytes(c.data)-1)/units.Bytes(c.data)
	if c.tcp {
		parts, each = n.tasks(c, bytes)
	}
	*s = cutting{first: c.turn, parts: int16(parts), bytes: int32(bytes), each: int32(each)}
	c.turn = (c.turn + parts) % c.lanes
}

// piece is what the q-th queue pair of a step's carries of it.
func (c *netConn) piece(k int64, q int32) units.Bytes {
	s := &c.slot[k%int64(len(c.slot))]
	if !c.tcp {
		return units.Bytes(s.each)
	}
	return units.Bytes(max(0, min(s.each, s.bytes-s.each*q)))
}

// parts is over how many queue pairs the k-th step goes.
func (c *netConn) parts(k int64) int32 { return int32(c.slot[k%int64(len(c.slot))].parts) }

// lane is the queue pair of the k-th step's part q.
func (c *netConn) lane(k int64, q int32) int32 {
	return c.first + (c.slot[k%int64(len(c.slot))].first+q)%c.lanes
}

// cutting is how a step is cut into parts. Steps are parts of a connection's
// buffers, which end far below 2 GiB (NCCL_BUFFSIZE, an int in NCCL).
type cutting struct {
	first       int32 // its first queue pair among the connection's
	parts, left int16 // how many; how many are under way
	bytes, each int32
}
