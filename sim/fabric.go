package sim

import (
	"fmt"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// maxQPs is NCCL_IB_MAX_QPS (transport/net_ib.cc:975).
const maxQPs = 128

// queuePair is one queue pair of a connection: its way through the network and the
// step that is on it.
type queuePair struct {
	conn  int32
	bound wire.Rate // of its own
	step  int64
	part  int32 // of it
	busy  bool
	route wire.RouteID
	since units.Time // when what is on the wire began
	sent  wire.Work
	again repeat
}

// configure takes what a Config says of the network.
func (n *network) configure(c *Config) {
	n.twoWrites = c.TwoWrites.Or(8192)
	n.qps, n.split, n.faults, n.slowed = c.QPs, c.SplitData && c.QPs > 1, c.Faults, map[port]wire.LinkID{}
	n.rc, n.sockets = c.RC, c.Sockets
	if n.fabric = c.Fabric; n.fabric != nil {
		n.router = n.fabric.Router()
	}
}

// port is one direction of a host's port.
type port struct {
	host, net int32
	out       bool
}

// slowPort returns the link that holds a slow port to its speed.
func (n *network) slowPort(p port, slow float64, full wire.Rate) wire.LinkID {
	id, ok := n.slowed[p]
	if !ok {
		name := fmt.Sprintf("node%d/%d slow in", p.host, p.net)
		if p.out {
			name = fmt.Sprintf("node%d/%d slow out", p.host, p.net)
		}
		id = n.w.Links.AddLink(name, wire.Rate(float64(full)/slow))
		n.slowed[p] = id
	}
	return id
}

// fabricLink returns the model's link for a wire of the fabric.
func (n *network) fabricLink(i int32) wire.LinkID {
	if n.wires == nil {
		n.wires = make([]int32, len(n.fabric.Wires))
	}
	if n.wires[i] == 0 {
		cable := &n.fabric.Wires[i]
		n.wires[i] = int32(n.w.Links.AddLink(cable.Name, n.wireRate(i))) + 1
	}
	return wire.LinkID(n.wires[i] - 1)
}

// layLanes gives a connection its queue pairs or sockets. Over a fabric, and by
// the ports of a fused net, each has its own way; without they share the nets'
// route.
func (n *network) layLanes(nc *netConn, c *plan.Conn) error {
	nc.first = int32(len(n.lanes))
	src, dst := n.ports(c)
	nc.later = n.later(c)
	own := n.fabric != nil || len(n.faults) > 0 || nc.srcPorts > 1 || nc.dstPorts > 1
	for q := range nc.lanes {
		l := queuePair{conn: int32(len(n.conns)), route: nc.route, bound: nc.bound}
		if nc.srcPorts > 1 {
			l.bound = portShare(n.netOf(c), nc.bound, q%nc.srcPorts)
		}
		if n.e.quotient == nil && own {
			n.w.Uses = n.w.Uses[:0]
			if err := n.gather(c); err != nil {
				return err
			}
			if err := n.byPorts(nc, &l, c, q); err != nil {
				return err
			}
			if err := n.cross(nc, &l, src, dst, q, flowOf(c, q)); err != nil {
				return err
			}
			l.route = n.w.Intern()
		}
		if nc.tcp && l.again.loss > 0 && l.again.loss < 1 {
			l.bound = min(l.bound, wire.RateOf(LossRate(l.again.loss, 2*n.way(nc))))
		}
		n.lanes = append(n.lanes, l)
	}
	return nil
}

// byPorts adds the physical ports of fused nets that the q-th queue pair of a
// connection uses: one after the other on each side (net_ib.cc:1453).
func (n *network) byPorts(nc *netConn, l *queuePair, c *plan.Conn, q int32) error {
	src, dst := n.ports(c)
	for _, end := range []struct {
		p           port
		rank, ports int32
	}{{src, c.Src, nc.srcPorts}, {dst, c.Dst, nc.dstPorts}} {
		if end.ports < 2 {
			continue
		}
		index := q % end.ports
		id, err := n.fusedPort(n.w.Comm.NodeOf[end.rank], end.p, index)
		if err != nil {
			return err
		}
		n.w.Add(id, 1)
		f := n.portFault(end.p, index)
		l.again.loss = either(l.again.loss, f.Loss)
		nc.later = max(nc.later, n.later(c)+f.Later)
	}
	return nil
}

// ports are those that a connection leaves from and arrives at.
func (n *network) ports(c *plan.Conn) (src, dst port) {
	return port{n.w.Comm.HostOf[c.Src], c.Route.SrcNet, true}, port{n.w.Comm.HostOf[c.Dst], c.Route.DstNet, false}
}

// later is what faults of its ports add to a connection's latency.
func (n *network) later(c *plan.Conn) units.Time {
	src, dst := n.ports(c)
	return n.fault(src).Later + n.fault(dst).Later
}

// end is the port of a net that the q-th queue pair of a connection uses.
func (*netConn) end(p port, ports, q int32) fabric.End {
	e := fabric.End{Host: int(p.host), Net: int(p.net)}
	if ports > 1 {
		e.Port = int(q%ports) + 1
	}
	return e
}

// cross adds the links between two nets that the q-th queue pair of a connection
// takes.
func (n *network) cross(nc *netConn, l *queuePair, src, dst port, q int32, flow uint64) error {
	for _, p := range []port{src, dst} {
		f := n.fault(p)
		if f.Slow > 1 {
			n.w.Add(n.slowPort(p, f.Slow, nc.bound), 1)
		}
		l.again.loss = either(l.again.loss, f.Loss)
	}
	if n.fabric == nil {
		return nil
	}
	wires, err := n.router.Route(nil, nc.end(src, nc.srcPorts, q), nc.end(dst, nc.dstPorts, q), flow)
	if err != nil {
		return err
	}
	later := nc.later
	for _, i := range wires {
		n.w.Add(n.fabricLink(i), 1)
		later += n.fabric.Wires[i].Latency
		l.again.loss = either(l.again.loss, n.fabric.Wires[i].Loss)
	}
	nc.later = max(nc.later, later)
	return nil
}

// work is what so many bytes of a connection's are on the wire, flags included.
func (n *network) work(c *netConn, bytes units.Bytes) wire.Work {
	return wire.Work(float64(bytes) * wire.NanoBytes / c.share)
}

// alone is how long the k-th step's bytes last where nothing shares the ports.
func (n *network) alone(c *netConn, k int64) units.Time {
	return units.Time(n.work(c, c.piece(k, 0))) / units.Time(max(1, n.lanes[c.lane(k, 0)].bound))
}

// begin puts the next writes of a connection on the wire. Writes of one queue
// pair keep their order and do not share the wire with each other; several
// queue pairs take steps in turn, or parts of each where NCCL splits them. Over
// TCP a message begins when the one before it is through: a proxy thread turns
// only to the oldest (net.cc:1340).
func (n *network) begin(id int32) {
	c := &n.conns[id]
	for c.begun < c.sent {
		k := c.begun % plan.FIFOSteps
		parts := c.parts(c.begun)
		if c.tcp && (c.landed < c.begun || n.rests(id)) {
			return
		}
		for q := range parts {
			if n.lanes[c.lane(c.begun, q)].busy {
				return
			}
		}
		if obs := n.obs; obs != nil {
			obs.Step(StepEvent{Point: StepBegun, Conn: id, Step: c.begun})
		}
		if c.bytes[k] > 0 {
			c.slot[k].left = int16(parts)
			for q := range parts {
				l := c.lane(c.begun, q)
				n.lanes[l].busy, n.lanes[l].step, n.lanes[l].part = true, c.begun, q
				n.transmit(l, c.piece(c.begun, q))
			}
		}
		c.begun++
		n.land(id)
	}
}

// flowDone ends a write, or its part, on a queue pair.
func (n *network) flowDone(li int32) {
	if int(li) >= len(n.lanes) {
		n.reduced(li - int32(len(n.lanes)))
		return
	}
	l := &n.lanes[li]
	n.waited(l)
	if l.again.left > 0 {
		n.e.queue.Push(n.e.queue.Now+l.again.stall, classDone, evRepeat, li, 0)
		return
	}
	l.busy = false
	if obs := n.obs; obs != nil {
		obs.Step(StepEvent{Point: PartCrossed, Conn: l.conn, Step: l.step, Lane: l})
	}
	n.conns[l.conn].slot[l.step%plan.FIFOSteps].left--
	n.land(l.conn)
	n.begin(l.conn)
}

// rests tells whether the proxy thread has not come round yet to a TCP
// connection's next message; it will begin it then.
func (n *network) rests(id int32) bool {
	c := &n.conns[id]
	if n.e.queue.Now >= c.rest {
		return false
	}
	if !c.resting {
		c.resting = true
		n.push(c.rest, id, stageNext)
	}
	return true
}

// land completes the steps that are through, in order.
func (n *network) land(id int32) {
	c := &n.conns[id]
	for c.landed < c.begun && c.slot[c.landed%plan.FIFOSteps].left == 0 {
		if obs := n.obs; obs != nil {
			obs.Step(StepEvent{Point: StepLanded, Conn: id, Step: c.landed})
		}
		c.landed++
		if c.tcp {
			c.rest = n.e.queue.Now + looksNextTCP*n.turn(c.srcProxy)
		}
		n.complete(id)
	}
}

func (n *network) complete(id int32) {
	c := &n.conns[id]
	latency := n.way(c)
	n.push(n.e.queue.Now+latency+n.lastRead(c, c.landed-1), id, stageArrive)
	n.push(n.e.queue.Now+pick(c.tcp, 0, 2*latency), id, stageSent) // a socket has taken what was written
}

// Ports lists how many nets each host of a communicator has, as
// fabric.Network.Bind asks for them.
func Ports(cl *fabric.Cluster) []int {
	out := make([]int, cl.NHosts())
	for h := range out {
		out[h] = int(cl.PortOf(h, 0))
	}
	for h := range out {
		end := cl.NPorts()
		if h+1 < len(out) {
			end = out[h+1]
		}
		out[h] = end - out[h]
	}
	return out
}
