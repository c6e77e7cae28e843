package sim

import (
	"fmt"
	"math"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// Sockets are the settings of connections over TCP, which nets of NCCL's socket
// plugin have (topo.NetInfo.Sockets). The zero value is NCCL's defaults.
type Sockets struct {
	Threads   units.Opt[int] // NCCL_SOCKET_NTHREADS: helpers of each side; unset: by the NIC's vendor
	PerThread units.Opt[int] // NCCL_NSOCKS_PERTHREAD
	MinTask   units.Opt[int] // NCCL_SOCKET_MIN_TASKSIZE, bytes: 65536
	Inline    units.Opt[int] // NCCL_SOCKET_INLINE, bytes: 128. Only traces show it
}

// minTask is the least part of a message that a socket of its own gets.
func (s *Sockets) minTask() units.Bytes { return units.Bytes(max(1, s.MinTask.Or(1<<16))) }

// header is a message's size on the control socket (net_socket.cc:405).
const header = 4

// onControl is what goes over the control socket with a message's size: all of
// a small one (net_socket.cc:528).
func (s *Sockets) onControl(n units.Bytes) units.Bytes {
	if n <= units.Bytes(s.Inline.Or(128)) {
		return header + n
	}
	return header
}

// socketNet returns what is known of a node's net, and whether it is the socket
// plugin's.
func (n *network) socketNet(node, net int32) (*topo.NetInfo, bool) {
	s := n.w.Systems[node]
	nets := s.Of(topo.NET)
	if net < 0 || int(net) >= len(nets) {
		return nil, false
	}
	info := s.Nodes[nets[net]].Net
	return info, info.Sockets
}

// overTCP tells how a connection's data goes over sockets: over so many of them,
// served by so many helpers of each side. The receiver's side decides, which the
// sender asks (net_socket.cc:380).
func (n *network) overTCP(c *plan.Conn) (sockets, helpers int32, tcp bool) {
	if _, tcp = n.socketNet(n.w.Comm.NodeOf[c.Src], c.Route.SrcNet); !tcp {
		return 0, 0, false
	}
	vendor := uint16(0)
	if info, _ := n.socketNet(n.w.Comm.NodeOf[c.Dst], c.Route.DstNet); info != nil {
		vendor = info.Vendor
	}
	s, h := connect.SocketSplit(vendor, n.sockets.Threads, n.sockets.PerThread)
	return int32(s), int32(h), true
}

// copies adds the link that stands for a proxy thread's copying between host
// memory and sockets: all its connections share it. A byte read and a byte
// written count as often as they cost.
func (n *network) copies(rank int32, out bool) {
	node, g := n.w.GPU(rank)
	if node < 0 {
		return
	}
	send, recv, capacity := n.e.class.Net.TCP.Shares()
	id, _ := n.w.Narrow(fmt.Sprintf("node%d %s proxy thread", node, n.w.Name(node, g)), wire.RateOf(capacity))
	if out {
		n.w.Add(id, send)
	} else {
		n.w.Add(id, recv)
	}
}

// overSockets makes a connection one of TCP.
func (n *network) overSockets(nc *netConn, sockets, helpers int32) {
	tcp := &n.e.class.Net.TCP
	n.tcp = true
	nc.tcp, nc.flush = true, false
	nc.lanes, nc.data, nc.helpers = max(1, sockets), 1, helpers
	nc.bound = min(nc.bound, wire.RateOf(tcp.Flow))
}

// tasks is over how many sockets a message of a step goes, and how much of it
// over each but the last (net_socket.cc:573): parts of at least minTask.
func (n *network) tasks(c *netConn, bytes units.Bytes) (parts int32, each units.Bytes) {
	if c.helpers == 0 || bytes == 0 {
		return 1, bytes
	}
	sent := units.Bytes(math.Ceil(float64(bytes) / c.share)) // with flags
	task := max(n.sockets.minTask(), (sent+units.Bytes(c.lanes)-1)/units.Bytes(c.lanes))
	parts = int32((sent + task - 1) / task)
	return parts, units.Bytes(math.Ceil(float64(bytes) * float64(task) / float64(sent)))
}

// taskRate bounds the q-th part of a message on its socket: the tasks that a
// helper has of one message share its time.
func (n *network) taskRate(c *netConn, l *queuePair, q, parts int32) wire.Rate {
	if c.helpers == 0 {
		return l.bound
	}
	tcp := &n.e.class.Net.TCP
	mine := (parts-1-q%c.helpers)/c.helpers + 1
	return min(l.bound, wire.RateOf(min(tcp.Send, tcp.Recv)/float64(mine)))
}

// buffer is what TCP hands over at a time: the largest segment that Linux leaves
// to the NIC, or gathers from it.
const buffer = units.Bytes(1 << 16)

// lastRead is how long the receiver copies when all of the k-th step has come: it
// reads while the rest is on its way, but not what is not there yet.
func (n *network) lastRead(c *netConn, k int64) units.Time {
	if !c.tcp || c.piece(k, 0) == 0 {
		return 0
	}
	return units.Time(n.work(c, min(c.piece(k, 0), buffer))) / units.Time(wire.RateOf(n.e.class.Net.TCP.Recv))
}

// cutOff ends a connection over which nothing gets through: TCP repeats for so
// long, and the sender's next system call fails.
func (n *network) cutOff(li int32) {
	n.e.queue.Push(n.e.queue.Now+GiveUp, classDone, evRepeat, li, 0)
}

// ways is how many queue pairs, or sockets, a connection shows on a timeline;
// the last of TCP's is the control socket.
func (c *netConn) ways() int32 {
	switch {
	case !c.tcp:
		return c.lanes
	case c.helpers == 0:
		return 1
	}
	return c.lanes + 1
}
