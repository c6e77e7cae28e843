package host

import (
	"fmt"
	"math"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// tcp is NCCL's socket transport: data goes through host memory, and threads
// copy it into sockets and out of them.
type tcp struct {
	n       *Network
	costs   stageCosts
	wire    units.Time // one-way latency
	perPoll units.Time // a system call that finds nothing
}

// tcpConn is the additional state of a connection over TCP.
type tcpConn struct {
	on      bool
	helpers int32 // threads of each side; 0: the proxy thread alone
}

// pollsNext is the number of polls between a message and the test of the next:
// offer a slot, take a message from the kernel.
const pollsNext = 2

func newTCP(n *Network) tcp {
	us := units.FromMicros
	p := &n.class.Net.TCP
	return tcp{n: n, wire: us(p.Wire), perPoll: us(p.Look), costs: stageCosts{
		// The first test of a message writes it, and ends it where all is written
		// (net_socket.cc:495).
		stagePost:   {3, us(p.Call)},
		stageSent:   {0, n.Cost.Poll},
		stageArrive: {2, us(p.Call)},
		stageFree:   {1, 0}, // only a note
	}}
}

func (x *tcp) join(nc *Conn, c *plan.Conn, pr *plan.Program) {
	sockets, helpers, _ := x.n.OverTCP(c)
	x.n.proxy.perEnd = x.perPoll
	nc.via, nc.msg, nc.costs = x, x, &x.costs
	nc.tcp.on, nc.tcp.helpers, nc.Flush = true, helpers, false
	nc.pairs, nc.stripe = max(1, sockets), 1
	nc.bound = min(nc.bound, wire.RateOf(x.n.class.Net.TCP.Flow))
	if pr.Proto != coll.Simple {
		nc.poller = kernelPollsHost
	}
}

// socketNet returns what is known of a node's net, and whether it is the socket
// plugin's.
func (n *Network) socketNet(node, net int32) (*topo.NetInfo, bool) {
	s := n.Table.Systems[node]
	nets := s.Of(topo.NET)
	if net < 0 || int(net) >= len(nets) {
		return nil, false
	}
	info := s.Nodes[nets[net]].Net
	return info, info.Sockets
}

// OverTCP reports whether a connection's data goes over sockets, over how many
// of them, and how many helpers of each side serve them. The receiver's side
// decides, which the sender queries (net_socket.cc:380).
func (n *Network) OverTCP(c *plan.Conn) (sockets, helpers int32, over bool) {
	if _, over = n.socketNet(n.Table.Comm.NodeOf[c.Src], c.Route.SrcNet); !over {
		return 0, 0, false
	}
	vendor := uint16(0)
	if info, _ := n.socketNet(n.Table.Comm.NodeOf[c.Dst], c.Route.DstNet); info != nil {
		vendor = info.Vendor
	}
	s, h := connect.SocketSplit(vendor, n.Sockets.Threads, n.Sockets.PerThread)
	return int32(s), int32(h), true
}

// copies adds the link that bounds a proxy thread's copying between host memory
// and sockets: all its connections share it. A byte read and a byte written
// count as often as they cost.
func (x *tcp) copies(rank int32, out bool) {
	n := x.n
	node, g := n.Table.GPU(rank)
	if node < 0 {
		return
	}
	send, recv, capacity := n.class.Net.TCP.Shares()
	id, _ := n.Table.Narrow(fmt.Sprintf("%s %s proxy thread", n.Table.NodeName(node), n.Table.Name(node, g)),
		wire.RateOf(capacity))
	if out {
		n.Table.Add(id, send)
	} else {
		n.Table.Add(id, recv)
	}
}

func (x *tcp) posted(n *Network, id int32) { n.tryPost(id) }

func (x *tcp) freed(n *Network, id int32, t units.Time) { n.push(t, id, stageFree) }

func (x *tcp) latency() units.Time { return x.wire }

// issued: the bytes go out with the thread's next test of the message.
func (x *tcp) issued(c *Conn, t units.Time) units.Time { return t + x.n.interval(c.SrcProxy) }

// offered: room is known to the sender without a message.
func (x *tcp) offered(_ *Conn, t units.Time) units.Time { return t }

// ack: a socket has taken what was written.
func (x *tcp) ack(*Conn) units.Time { return 0 }

// divide gives sockets parts of at least the least task (net_socket.cc:573).
func (x *tcp) divide(c *Conn, bytes units.Bytes) (parts int32, each units.Bytes) {
	if c.tcp.helpers == 0 || bytes == 0 {
		return 1, bytes
	}
	sent := units.Bytes(math.Ceil(float64(bytes) / c.share)) // with flags
	task := max(x.n.Sockets.LeastTask(), (sent+units.Bytes(c.pairs)-1)/units.Bytes(c.pairs))
	parts = int32((sent + task - 1) / task)
	return parts, units.Bytes(math.Ceil(float64(bytes) * float64(task) / float64(sent)))
}

func (x *tcp) part(s *split, q int32) units.Bytes {
	return units.Bytes(max(0, min(s.each, s.bytes-s.each*q)))
}

// next: a message begins when the one before it is through and the thread has
// come round to it: it serves only the oldest (net.cc:1340).
func (x *tcp) next(n *Network, id int32, c *Conn) bool {
	if c.landed < c.begun {
		return false
	}
	return n.rested(id, c)
}

func (x *tcp) through(n *Network, c *Conn) {
	c.rest.until = n.queue.Now + pollsNext*n.interval(c.SrcProxy)
}

// segment is what TCP hands over at a time: the largest segment that Linux leaves
// to the NIC, or gathers from it.
const segment = units.Bytes(1 << 16)

// lastCopy: the receiver reads while the rest is in transit, but not what is not
// there yet.
func (x *tcp) lastCopy(c *Conn, k int64) units.Time {
	if c.Part(k, 0) == 0 {
		return 0
	}
	return units.Time(x.n.work(c, min(c.Part(k, 0), segment))) /
		units.Time(wire.RateOf(x.n.class.Net.TCP.Recv))
}

func (x *tcp) attempt(p int32, bytes units.Bytes) (units.Bytes, wire.Rate, bool) {
	n := x.n
	l := &n.Pairs[p]
	if l.again.loss >= 1 { // TCP repeats until it gives up, and the next system call fails
		n.pushRepeat(n.queue.Now+GiveUp, p)
		return 0, 0, false
	}
	c := &n.Conns[l.Conn]
	return bytes, x.taskRate(c, l, c.Parts(l.Step)), true
}

// taskRate bounds a part of a message on its socket: the tasks that a helper has
// of one message share its time.
func (x *tcp) taskRate(c *Conn, l *QueuePair, parts int32) wire.Rate {
	if c.tcp.helpers == 0 {
		return l.bound
	}
	p := &x.n.class.Net.TCP
	mine := (parts-1-l.Part%c.tcp.helpers)/c.tcp.helpers + 1
	return min(l.bound, wire.RateOf(min(p.Send, p.Recv)/float64(mine)))
}

func (x *tcp) failure(l *QueuePair) error {
	c := x.n.kernels.Describe(x.n.Conns[l.Conn].ID)
	return &TimedOutError{Src: int(c.Src), Dst: int(c.Dst), Channel: int(c.Channel),
		SrcNet: int(c.Route.SrcNet), DstNet: int(c.Route.DstNet), After: GiveUp}
}

// payload is a TCP segment's where the MTU is 1,500 bytes.
const payload = 1448

// lossRate bounds a TCP stream of which a share of packets is lost, in GB/s:
// segment / round trip · sqrt(3 / 2 loss), the mean of a window that halves at
// each loss and grows by a segment a round trip (Mathis et al., CCR 27(3),
// 1997). CUBIC is held to no less where round trips are short (RFC 9438, 4.3).
func lossRate(loss float64, roundTrip units.Time) float64 {
	if loss <= 0 {
		return math.Inf(1)
	}
	return payload * 1e-3 / max(roundTrip.Micros(), 1e-3) * math.Sqrt(1.5/loss)
}

// GiveUp is how long Linux repeats a segment before a connection ends with
// ETIMEDOUT: net.ipv4.tcp_retries2 = 15, from 200 ms on, doubled up to 120 s
// (Documentation/networking/ip-sysctl.rst: 924.6 s).
const GiveUp = 924_600 * units.Millisecond
