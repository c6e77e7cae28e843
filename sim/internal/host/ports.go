package host

import (
	"fmt"
	"math"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/param"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// portMap finds the links between ports: cables of a fabric, physical ports of
// fused nets, slow ports.
type portMap struct {
	router *fabric.Router
	routes map[routeKey]wire.RouteID
	cables []int32 // cable of the fabric → link of the model + 1
	slowed map[Port]wire.LinkID
}

func newPortMap(f *fabric.Fabric) portMap {
	m := portMap{routes: map[routeKey]wire.RouteID{}, slowed: map[Port]wire.LinkID{}}
	if f != nil {
		m.router = f.Router()
		m.cables = make([]int32, len(f.Wires))
	}
	return m
}

// Port is one direction of a host's port.
type Port struct {
	Host, Net int32
	Out       bool
}

// Whole is the end of a fabric's route that a port is, all physical ports of a
// fused net together.
func (p Port) Whole() fabric.End { return fabric.End{Host: int(p.Host), Net: int(p.Net)} }

// of is the physical port that the q-th queue pair of a connection uses, of so
// many of a fused net.
func (p Port) of(ports, q int32) fabric.End {
	e := p.Whole()
	if ports > 1 {
		e.Port = int(q%ports) + 1
	}
	return e
}

// Ports are those that a connection leaves from and arrives at.
func (n *Network) Ports(c *plan.Conn) (src, dst Port) {
	return Port{n.Table.Comm.HostOf[c.Src], c.Route.SrcNet, true}, Port{n.Table.Comm.HostOf[c.Dst],
		c.Route.DstNet, false}
}

// Fault sums up the faults of a net.
func (n *Network) Fault(p Port) param.Fault { return n.faultOf(p, 0) }

// portFault sums up the faults of one of a fused net's ports, numbered from 0.
func (n *Network) portFault(p Port, index int32) param.Fault { return n.faultOf(p, int(index)+1) }

func (n *Network) faultOf(p Port, number int) param.Fault {
	sum := param.Fault{Rank: -1, Slow: 1}
	for _, t := range n.Faults {
		if t.Rank < 0 && t.Host == int(p.Host) && t.Net == int(p.Net) && t.Port == number {
			sum.Slow *= t.Slow
			sum.Later += t.Later
			sum.Loss = param.Either(sum.Loss, t.Loss)
			if t.Down {
				sum.Loss = 1
			}
		}
	}
	return sum
}

// Later is what faults of its ports add to a connection's latency.
func (n *Network) Later(c *plan.Conn) units.Time {
	src, dst := n.Ports(c)
	return n.Fault(src).Later + n.Fault(dst).Later
}

// slowPort returns the link that holds a slow port to its speed.
func (n *Network) slowPort(p Port, slow float64, full wire.Rate) wire.LinkID {
	id, ok := n.ports.slowed[p]
	if !ok {
		name := fmt.Sprintf("node%d/%d slow in", p.Host, p.Net)
		if p.Out {
			name = fmt.Sprintf("node%d/%d slow out", p.Host, p.Net)
		}
		id = n.Table.Links.AddLink(name, wire.Rate(float64(full)/slow))
		n.ports.slowed[p] = id
	}
	return id
}

// CableRate is what a cable of the fabric carries.
func (n *Network) CableRate(i int32) wire.Rate {
	return wire.RateOf(float64(n.Fabric.Wires[i].BW) * n.class.Net.Eff)
}

// cable returns the model's link for a cable of the fabric.
func (n *Network) cable(i int32) wire.LinkID {
	if n.ports.cables[i] == 0 {
		id := n.Table.Links.AddLink(n.Fabric.Wires[i].Name, n.CableRate(i))
		n.ports.cables[i] = int32(id) + 1
		if n.frames != nil {
			n.frames.Cable(id, n.cableOf(i))
		}
	}
	return wire.LinkID(n.ports.cables[i] - 1)
}

// cableOf describes a cable to a model of frames. A slow or lossy port is one whose
// cable is.
func (n *Network) cableOf(i int32) wire.Cable {
	w := &n.Fabric.Wires[i]
	c := wire.Cable{Number: i, From: n.vertex(w.From), To: n.vertex(w.To), Bits: int64(float64(w.BW) * 8e9),
		Delay: n.delay(i), Loss: w.Loss}
	for _, v := range []wire.Vertex{c.From, c.To} {
		end, ok := n.Fabric.EndOf(v.ID)
		if !ok {
			continue
		}
		f := n.faultOf(Port{Host: int32(end.Host), Net: int32(end.Net)}, 0)
		if end.Port > 0 {
			one := n.faultOf(Port{Host: int32(end.Host), Net: int32(end.Net)}, end.Port)
			f.Slow, f.Loss = f.Slow*one.Slow, param.Either(f.Loss, one.Loss)
		}
		c.Bits = int64(float64(c.Bits) / f.Slow)
		if f.Loss < 1 {
			c.Loss = param.Either(c.Loss, f.Loss)
		}
	}
	return c
}

func (n *Network) vertex(v int32) wire.Vertex {
	_, host := n.Fabric.EndOf(v)
	return wire.Vertex{ID: v, Host: host, Name: n.Fabric.NameOf(v)}
}

// delay is how long a bit takes over a cable and what is behind it, frame by frame:
// a port's cable is part of the NIC's latency, one between switches has its own.
func (n *Network) delay(i int32) units.Time {
	w := &n.Fabric.Wires[i]
	_, from := n.Fabric.EndOf(w.From)
	_, to := n.Fabric.EndOf(w.To)
	if from || to {
		return n.frames.Hop() + w.Latency
	}
	if w.Latency == 0 {
		return n.frames.Hop()
	}
	return w.Latency
}

// Route appends the cables between two ports for a queue pair's flow.
func (n *Network) Route(dst []int32, from, to fabric.End, flow uint64) ([]int32, error) {
	return n.ports.router.Route(dst, from, to, flow)
}

// Flows calls each with the ends of every queue pair of a connection in Conns, and what
// makes its 5-tuple its own. What the network reduces has none.
func (n *Network) Flows(at int32, each func(from, to fabric.End, flow uint64)) {
	c := &n.Conns[at]
	if c.batch >= 0 {
		return
	}
	pc := n.kernels.Describe(c.ID)
	src, dst := n.Ports(&pc)
	for q := range c.pairs {
		each(src.of(c.srcPorts, q), dst.of(c.dstPorts, q), FlowOf(&pc, q))
	}
}

// EndRates are the payload rates of the nets at the ends of a connection.
func (n *Network) EndRates(pc *plan.Conn) (out, in wire.Rate, err error) {
	if out, err = n.PortRate(n.Table.Comm.NodeOf[pc.Src], pc.Route.SrcNet); err != nil {
		return 0, 0, err
	}
	in, err = n.PortRate(n.Table.Comm.NodeOf[pc.Dst], pc.Route.DstNet)
	return out, in, err
}

// Ends calls each with the physical ports that queue pairs of a connection may have, of so
// many of a net.
func (n *Network) Ends(pc *plan.Conn, each func(from, to fabric.End, of wire.Rate)) {
	src, dst := n.Ports(pc)
	a, b := n.Fused(n.Table.Comm.NodeOf[pc.Src], pc.Route.SrcNet), n.Fused(n.Table.Comm.NodeOf[pc.Dst],
		pc.Route.DstNet)
	for q := range max(a, b) {
		each(src.of(a, q), dst.of(b, q), wire.Rate(max(a, b)))
	}
}

// FlowOf is what makes a queue pair's 5-tuple its own.
func FlowOf(pc *plan.Conn, q int32) uint64 { return uint64(uint32(pc.ID))<<16 | uint64(q) }

// layQueuePairs gives a connection its queue pairs or sockets. Over a fabric, and
// by the ports of a fused net, each has a route of its own; otherwise they share
// the nets' route.
func (n *Network) layQueuePairs(nc *Conn, c *plan.Conn) error {
	nc.first = int32(len(n.Pairs))
	nc.Later = n.Later(c)
	own := n.Fabric != nil || len(n.Faults) > 0 || nc.srcPorts > 1 || nc.dstPorts > 1
	for q := range nc.pairs {
		l := QueuePair{Conn: int32(len(n.Conns)), Route: nc.Route, bound: nc.bound, queue: -1}
		if nc.srcPorts > 1 {
			l.bound = portShare(n.netOf(c), nc.bound, q%nc.srcPorts)
		}
		if !n.Folded && own {
			if err := n.ownRoute(nc, &l, c, q); err != nil {
				return err
			}
			if n.frames != nil && l.again.loss < 1 && l.crosses {
				l.queue = n.frames.Queue(l.Route, wire.QueueKey{Conn: c.ID, Pair: q})
			}
		}
		if nc.tcp.on && l.again.loss > 0 && l.again.loss < 1 {
			l.bound = min(l.bound, wire.RateOf(lossRate(l.again.loss, 2*n.Latency(nc))))
		}
		n.Pairs = append(n.Pairs, l)
	}
	return nil
}

// ownRoute declares the route of a connection's q-th queue pair.
func (n *Network) ownRoute(nc *Conn, l *QueuePair, c *plan.Conn, q int32) error {
	n.Table.Uses = n.Table.Uses[:0]
	if err := n.Gather(c); err != nil {
		return err
	}
	if err := n.byPorts(nc, l, c, q); err != nil {
		return err
	}
	src, dst := n.Ports(c)
	if err := n.cross(nc, l, src.of(nc.srcPorts, q), dst.of(nc.dstPorts, q), c, FlowOf(c, q)); err != nil {
		return err
	}
	l.Route = n.Table.Intern()
	return nil
}

// byPorts adds the physical ports of fused nets that the q-th queue pair of a
// connection uses: one after the other on each side (net_ib.cc:1453).
func (n *Network) byPorts(nc *Conn, l *QueuePair, c *plan.Conn, q int32) error {
	src, dst := n.Ports(c)
	for _, end := range []struct {
		p           Port
		rank, ports int32
	}{{src, c.Src, nc.srcPorts}, {dst, c.Dst, nc.dstPorts}} {
		if end.ports < 2 {
			continue
		}
		index := q % end.ports
		id, err := n.fusedPort(n.Table.Comm.NodeOf[end.rank], end.p, index)
		if err != nil {
			return err
		}
		n.Table.Add(id, 1)
		f := n.portFault(end.p, index)
		l.again.loss = param.Either(l.again.loss, f.Loss)
		nc.Later = max(nc.Later, n.Later(c)+f.Later)
	}
	return nil
}

// Cross adds the links between the nets of a connection that its first queue pair
// takes. Ports are as fast as bound.
func (n *Network) Cross(c *plan.Conn, bound wire.Rate) error {
	src, dst := n.Ports(c)
	return n.cross(&Conn{bound: bound}, new(QueuePair), src.Whole(), dst.Whole(), c, 0)
}

// cross adds the links between two ends that a queue pair takes, and what it
// loses there.
func (n *Network) cross(nc *Conn, l *QueuePair, from, to fabric.End, c *plan.Conn, flow uint64) error {
	src, dst := n.Ports(c)
	for _, p := range []Port{src, dst} {
		f := n.Fault(p)
		if f.Slow > 1 {
			n.Table.Add(n.slowPort(p, f.Slow, nc.bound), 1)
		}
		l.again.loss = param.Either(l.again.loss, f.Loss)
	}
	if n.Fabric == nil {
		return nil
	}
	if n.frames != nil {
		return n.crossFrames(nc, l, from, to, flow)
	}
	cables, err := n.Route(nil, from, to, flow)
	if err != nil {
		return err
	}
	later := nc.Later
	for _, i := range cables {
		n.Table.Add(n.cable(i), 1)
		later += n.Fabric.Wires[i].Latency
		l.again.loss = param.Either(l.again.loss, n.Fabric.Wires[i].Loss)
	}
	nc.Later = max(nc.Later, later)
	return nil
}

// crossFrames adds the cables between two ends for a model of frames, which has
// their delays and losses itself.
func (n *Network) crossFrames(nc *Conn, l *QueuePair, from, to fabric.End, flow uint64) error {
	cables, err := n.Route(nil, from, to, flow)
	if err != nil {
		return err
	}
	if l.again.loss < 1 {
		l.again.loss = 0
	}
	var trip units.Time
	for _, i := range cables {
		n.Table.Add(n.cable(i), 1)
		trip += n.delay(i)
	}
	if l.crosses = len(cables) > 0; l.crosses && trip > nc.trip {
		nc.Later += trip - max(nc.trip, 2*n.frames.Hop())
		nc.trip = trip
	}
	return nil
}

// Fused is the number of physical ports behind a node's net.
func (n *Network) Fused(node, net int32) int32 {
	s := n.Table.Systems[node]
	nets := s.Of(topo.NET)
	if net < 0 || int(net) >= len(nets) {
		return 1
	}
	return int32(max(1, len(s.Nodes[nets[net]].Net.Fused)))
}

// EqualPorts reports whether a net's ports are of one speed, as far as is known.
func EqualPorts(info *topo.NetInfo) bool {
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
	if EqualPorts(info) {
		return (full + k - 1) / k
	}
	return max(1, wire.Rate(math.Ceil(float64(full)*float64(info.PortBW[index])/float64(info.BW))))
}

// netOf is the net that a connection leaves by.
func (n *Network) netOf(c *plan.Conn) *topo.NetInfo {
	s := n.Table.Systems[n.Table.Comm.NodeOf[c.Src]]
	return s.Nodes[s.Of(topo.NET)[c.Route.SrcNet]].Net
}

// fusedPort returns the link of one physical port of a fused net in one
// direction.
func (n *Network) fusedPort(node int32, p Port, index int32) (wire.LinkID, error) {
	full, err := n.PortRate(node, p.Net)
	if err != nil {
		return 0, err
	}
	s := n.Table.Systems[node]
	info := s.Nodes[s.Of(topo.NET)[p.Net]].Net
	direction := "in"
	if p.Out {
		direction = "out"
	}
	id, made := n.Table.Narrow(fmt.Sprintf("%s %s %s", n.Table.NodeName(node), info.Fused[index], direction),
		portShare(info, full, index))
	if slow := n.portFault(p, index).Slow; made && slow > 1 {
		n.Table.Links.Limit(id, wire.Rate(float64(n.Table.Links.Capacity(id))/slow))
	}
	return id, nil
}
