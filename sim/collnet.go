package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// rail is what heads that reduce with each other share, one of each node: their
// NICs and the network's tree between them. In NCCL it is a communicator of the
// plugin (sharedConnect, transport/coll_net.cc:385). All post its collectives in
// one order, and the network does one after the other: the n-th is of batch
// n mod batches and of that batch's step n / batches.
type rail struct {
	group   int32   // of the plan: the first batch's
	sides   []int32 // that take part; where nodes are folded one stands for all alike
	batches int64
	came    []int32 // by collective, modulo: how many sides have posted it
	ready   int64   // collectives that all sides have posted
	begun   int64   // and that are or were on the wire
	ended   int64
	busy    bool
	root    string // switch at the tree's top; empty without a fabric
	bound   wire.Rate
	route   wire.RouteID
	later   units.Time  // from the last byte on the wire to the result in memory
	stuck   *StuckError // set where nothing gets through
}

// side is a node's head on a rail; its rank's proxy thread serves it.
type side struct {
	index      int32
	rail, rank int32
	node, net  int32
	thread     int32
	first      int32 // batch
	posted     int64 // collectives
	pending    bool
	up, down   wire.RouteID
}

// batch is the channels of a side whose steps go together, a NetGroup's part of
// one node.
type batch struct {
	side               int32
	to, from           []int32    // network sides of its connections
	sendFree, recvFree units.Time // when a look at its ends can have an effect again
	opened             int64      // steps for which there is room to receive
	open               [plan.FIFOSteps]units.Time
	freed              int64 // steps that the kernels have read
	retired            int64 // steps whose completion was polled
	received           int64 // and that the kernels were told of
}

// reduces tells whether a connection ends in the network.
func reduces(c *plan.Conn) bool { return c.Kind == connect.CollNetRoute }

// head is the rank at the end of such a connection, the net by which it reaches
// the network, and whether it sends there.
func head(c *plan.Conn) (rank, net int32, sends bool) {
	if c.Dst == plan.Network {
		return c.Src, c.Route.SrcNet, true
	}
	return c.Dst, c.Route.DstNet, false
}

// headRoute declares the links between a head's memory and its NIC, in the
// direction of the connection.
func (n *network) headRoute(c *plan.Conn) (wire.RouteID, error) {
	n.w.Uses = n.w.Uses[:0]
	if err := n.gatherHead(c); err != nil {
		return 0, err
	}
	return n.w.Intern(), nil
}

func (n *network) gatherHead(c *plan.Conn) error {
	rank, net, sends := head(c)
	mem := int32(-1)
	if sends && c.Route.SrcGDR || !sends && c.Route.DstGDR {
		mem = rank
	}
	return n.endLinks(mem, net, rank, sends)
}

// reach declares the network side of a head's connection over a route.
func (n *network) reach(c *plan.Conn, id int32, pr *plan.Program, route wire.RouteID) (int32, error) {
	rank, net, sends := head(c)
	node := n.w.Comm.NodeOf[rank]
	nc := netConn{conn: id, src: rank, dst: rank, srcProxy: rank, dstProxy: -1, srcLoad: 1, dstLoad: 1, channel: c.Channel, phase: pr.Phase,
		route: route, share: 1, flush: c.Route.Flush, head: true, batch: -1}
	if !sends {
		nc.srcProxy, nc.dstProxy = -1, rank
	}
	if _, err := n.portRate(node, net); err != nil {
		return 0, err
	}
	if _, tcp := n.socketNet(node, net); tcp {
		return 0, &exec.UnsupportedError{Feature: "in-network reduction", Needs: "InfiniBand ports", Found: "nets of the socket plugin"}
	}
	n.conns = append(n.conns, nc)
	return int32(len(n.conns) - 1), nil
}

// layRails joins the heads' connections to batches, sides and rails, once all
// are known.
func (n *network) layRails() error {
	type place struct{ group, rank int32 }
	ends := map[place][]int32{}
	for i := range n.conns {
		if n.conns[i].head {
			pc := n.planConn(int32(i))
			rank, _, _ := head(&pc)
			at := place{pc.NetGroup, rank}
			ends[at] = append(ends[at], int32(i))
		}
	}
	groups := n.e.plan.NetGroups()
	for first := 0; first < len(groups) && len(ends) > 0; {
		k := first + 1
		for k < len(groups) && groups[k].First > 0 {
			k++
		}
		r := rail{group: int32(first), batches: int64(k - first)}
		for node, rank := range groups[first].Ranks {
			if len(ends[place{int32(first), rank}]) == 0 {
				continue // another node stands for it
			}
			r.sides = append(r.sides, int32(len(n.sides)))
			n.sides = append(n.sides, side{index: int32(len(n.sides)), rail: int32(len(n.rails)), rank: rank, node: int32(node), first: int32(len(n.batches))})
			for g := first; g < k; g++ {
				n.batches = append(n.batches, n.layBatch(ends[place{int32(g), rank}]))
			}
		}
		if err := n.layRail(&r); err != nil {
			return err
		}
		n.rails = append(n.rails, r)
		first = k
	}
	return nil
}

// planConn is the plan's connection behind a network side.
func (n *network) planConn(id int32) plan.Conn {
	if q := n.e.quotient; q != nil {
		return q.model[n.conns[id].conn]
	}
	return n.e.plan.Conn(n.conns[id].conn)
}

// layBatch makes the next batch of the last side, of ends both ways.
func (n *network) layBatch(ends []int32) batch {
	b := batch{side: int32(len(n.sides) - 1)}
	s := &n.sides[b.side]
	for _, id := range ends {
		c := &n.conns[id]
		c.batch = int32(len(n.batches))
		if c.srcProxy >= 0 {
			b.to, s.thread, s.up = append(b.to, id), c.srcProxy, c.route
		} else {
			b.from, s.thread, s.down = append(b.from, id), c.dstProxy, c.route
		}
	}
	if n.e.gone == nil || !n.e.gone[s.rank] {
		b.opened = n.e.conns[n.conns[b.to[0]].conn].depth
	}
	byChannel := func(x, y int32) int { return cmp.Compare(n.conns[x].channel, n.conns[y].channel) }
	slices.SortFunc(b.to, byChannel)
	slices.SortFunc(b.from, byChannel)
	return b
}

// layRail gives a rail its way through the network: every side's bytes go up
// from its memory and come down into it, and over every cable of the tree in
// between once each way.
func (n *network) layRail(r *rail) error {
	net := &n.e.class.Net
	n.w.Uses = n.w.Uses[:0]
	var ends []fabric.End
	for _, si := range r.sides {
		s := &n.sides[si]
		port, err := n.railEnd(r, s)
		if err != nil {
			return err
		}
		ends = append(ends, fabric.End{Host: int(port.host), Net: int(port.net)})
	}
	levels := 1
	if n.fabric != nil {
		tree, err := n.router.Tree(ends)
		if err != nil {
			return err
		}
		switch {
		case tree.Loss > 0:
			return notReduced("lost packets")
		case n.e.plan.Req.Func != coll.AllReduce:
			return notReduced(fmt.Sprintf("%v over a fabric", n.e.plan.Req.Func))
		}
		for i := range tree.Up {
			n.w.Add(n.fabricLink(tree.Up[i]), 1)
			n.w.Add(n.fabricLink(tree.Down[i]), 1)
		}
		levels, r.root = tree.Levels, tree.Root
		r.later += tree.Later
	}
	r.bound = wire.Rate(float64(r.bound) * net.ReduceEff)
	r.later += n.cost.wire + units.FromMicros(net.ReduceHop)*units.Time(levels)
	r.came = make([]int32, plan.FIFOSteps*r.batches+1)
	r.route = n.w.Intern()
	return nil
}

// notReduced is what the model of a network that reduces lacks.
func notReduced(what string) error {
	return &exec.NotImplementedError{Feature: "in-network reduction", Missing: "a model of " + what}
}

// railEnd adds a side's links, and what its port's faults do to the rail.
func (n *network) railEnd(r *rail, s *side) (port, error) {
	b := &n.batches[s.first]
	pc := n.planConn(b.to[0])
	p := port{n.w.Comm.HostOf[s.rank], pc.Route.SrcNet, true}
	s.net = p.net
	rate, err := n.portRate(s.node, p.net)
	if err != nil {
		return p, err
	}
	if r.bound == 0 || rate < r.bound {
		r.bound = rate
	}
	for _, route := range []wire.RouteID{s.up, s.down} {
		for _, u := range n.w.Links.Uses(route) {
			n.w.Add(u.Link, u.Count)
		}
	}
	for k := range n.fused(s.node, p.net) {
		if n.portFault(p, k) != (Fault{Rank: -1, Slow: 1}) {
			return p, notReduced("faults of one port of a fused net")
		}
	}
	f := n.fault(p)
	if f.Slow > 1 { // both ways
		n.w.Add(n.slowPort(p, f.Slow, rate), 1)
		n.w.Add(n.slowPort(port{p.host, p.net, false}, f.Slow, rate), 1)
	}
	switch {
	case f.Loss >= 1:
		r.stuck = &StuckError{Host: int(p.host), Net: int(p.net)}
	case f.Loss > 0:
		return p, notReduced("lost packets")
	}
	r.later = max(r.later, 2*f.Later)
	return p, nil
}
