package sim

import (
	"fmt"

	"github.com/simccl/simccl/plan"
	simnet "github.com/simccl/simccl/sim/net"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// maxQPs is NCCL_IB_MAX_QPS (transport/net_ib.cc:975).
const maxQPs = 128

// queuePair is one queue pair of a connection: its way through the network and the
// step that is on it.
type queuePair struct {
	conn  int32
	step  int64
	busy  bool
	route simnet.RouteID
	since units.Time // when what is on the wire began
	sent  simnet.Work
	again repeat
}

// configure takes what a Config says of the network.
func (n *network) configure(c *Config) {
	n.twoWrites = c.TwoWrites.Or(8192)
	n.qps, n.split, n.faults, n.slowed = c.QPs, c.SplitData && c.QPs > 1, c.Faults, map[port]simnet.LinkID{}
	n.rc = c.RC
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
func (n *network) slowPort(p port, slow float64, full simnet.Rate) simnet.LinkID {
	id, ok := n.slowed[p]
	if !ok {
		name := fmt.Sprintf("node%d/%d slow in", p.host, p.net)
		if p.out {
			name = fmt.Sprintf("node%d/%d slow out", p.host, p.net)
		}
		id = n.w.net.AddLink(name, simnet.Rate(float64(full)/slow))
		n.slowed[p] = id
	}
	return id
}

// fabricLink returns the model's link for a wire of the fabric.
func (n *network) fabricLink(i int32) simnet.LinkID {
	if n.wires == nil {
		n.wires = make([]int32, len(n.fabric.Wires))
	}
	if n.wires[i] == 0 {
		wire := &n.fabric.Wires[i]
		n.wires[i] = int32(n.w.net.AddLink(wire.Name, simnet.RateOf(float64(wire.BW)*n.e.class.Net.Eff))) + 1
	}
	return simnet.LinkID(n.wires[i] - 1)
}

// layLanes gives a connection its queue pairs. Over a fabric each has its own
// way; without one they share the ports' route.
func (n *network) layLanes(nc *netConn, c *plan.Conn) error {
	nc.first, nc.lanes = int32(len(n.lanes)), int32(max(1, n.qps))
	src, dst := n.ports(c)
	nc.later = n.later(c)
	for q := range nc.lanes {
		l := queuePair{conn: int32(len(n.conns)), route: nc.route}
		if n.e.quotient == nil && (n.fabric != nil || len(n.faults) > 0) {
			n.w.uses = n.w.uses[:0]
			if err := n.gather(c); err != nil {
				return err
			}
			if err := n.cross(nc, &l, src, dst, uint64(uint32(c.ID))<<16|uint64(q)); err != nil {
				return err
			}
			l.route = n.w.intern()
		}
		n.lanes = append(n.lanes, l)
	}
	return nil
}

// ports are those that a connection leaves from and arrives at.
func (n *network) ports(c *plan.Conn) (src, dst port) {
	return port{n.w.comm.HostOf[c.Src], c.Route.SrcNet, true}, port{n.w.comm.HostOf[c.Dst], c.Route.DstNet, false}
}

// later is what faults of its ports add to a connection's latency.
func (n *network) later(c *plan.Conn) units.Time {
	src, dst := n.ports(c)
	return n.fault(src).Later + n.fault(dst).Later
}

// cross adds the links between two ports that a queue pair takes.
func (n *network) cross(nc *netConn, l *queuePair, src, dst port, flow uint64) error {
	for _, p := range []port{src, dst} {
		f := n.fault(p)
		if f.Slow > 1 {
			n.w.add(n.slowPort(p, f.Slow, nc.bound), 1)
		}
		l.again.loss = either(l.again.loss, f.Loss)
	}
	if n.fabric == nil {
		return nil
	}
	wires, err := n.router.Route(nil, int(src.host), int(src.net), int(dst.host), int(dst.net), flow)
	if err != nil {
		return err
	}
	later := nc.later
	for _, i := range wires {
		n.w.add(n.fabricLink(i), 1)
		later += n.fabric.Wires[i].Latency
		l.again.loss = either(l.again.loss, n.fabric.Wires[i].Loss)
	}
	nc.later = max(nc.later, later)
	return nil
}

// shares is over how many queue pairs a step goes.
func (n *network) shares(c *netConn) int32 {
	if n.split {
		return c.lanes
	}
	return 1
}

// lane is the queue pair of the k-th step's part q.
func (n *network) lane(c *netConn, k int64, q int32) int32 {
	if n.split {
		return c.first + q
	}
	return c.first + int32(k%int64(c.lanes))
}

// work is what a queue pair carries of a step of a connection.
func (n *network) work(c *netConn, bytes units.Bytes) simnet.Work {
	return simnet.Work(float64(bytes) * simnet.NanoBytes / c.share / float64(n.shares(c)))
}

// alone is how long the k-th step's bytes last at the port's speed.
func (n *network) alone(c *netConn, k int64) units.Time {
	return units.Time(n.work(c, c.bytes[k%plan.FIFOSteps])) / units.Time(max(1, c.bound))
}

// begin puts the next writes of a connection on the wire. Writes of one queue
// pair keep their order and do not share the wire with each other; several
// queue pairs take steps in turn, or parts of each where NCCL splits them.
func (n *network) begin(id int32) {
	e, c := n.e, &n.conns[id]
	for c.begun < c.sent {
		k := c.begun % plan.FIFOSteps
		parts := n.shares(c)
		for q := range parts {
			if n.lanes[n.lane(c, c.begun, q)].busy {
				return
			}
		}
		e.tr.leaves(e, id, c.begun)
		if b := c.bytes[k]; b > 0 {
			c.parts[k] = int16(parts)
			for q := range parts {
				l := n.lane(c, c.begun, q)
				n.lanes[l].busy, n.lanes[l].step = true, c.begun
				n.transmit(l, b)
			}
		}
		c.begun++
		n.land(id)
	}
}

// flowDone ends a write, or its part, on a queue pair.
func (n *network) flowDone(li int32) {
	l := &n.lanes[li]
	n.waited(l)
	if l.again.left > 0 {
		n.e.queue.Push(n.e.now+l.again.stall, classDone, evRepeat, li, 0)
		return
	}
	l.busy = false
	n.e.tr.crosses(n.e, l)
	n.conns[l.conn].parts[l.step%plan.FIFOSteps]--
	n.land(l.conn)
	n.begin(l.conn)
}

// land completes the steps that are through, in order.
func (n *network) land(id int32) {
	c := &n.conns[id]
	for c.landed < c.begun && c.parts[c.landed%plan.FIFOSteps] == 0 {
		n.e.tr.lands(n.e, id, c.landed)
		c.landed++
		n.complete(id)
	}
}

func (n *network) complete(id int32) {
	wire := n.cost.wire + n.conns[id].later
	n.push(n.e.now+wire, id, stageArrive)
	n.push(n.e.now+2*wire, id, stageSent)
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
