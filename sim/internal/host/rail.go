package host

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/param"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// Rail is what heads that reduce with each other share, one of each node: their
// NICs and the network's tree between them. In NCCL it is a communicator of the
// plugin (sharedConnect, transport/coll_net.cc:385). All post its collectives in
// one order, and the network does one after the other. Example: with two batches
// collective 0 is step 0 of batch 0, 1 is step 0 of batch 1, 2 is step 1 of
// batch 0.
type Rail struct {
	Group   int32   // of the plan: the first batch's
	Sides   []int32 // that take part; where nodes are folded one represents all equivalent ones
	Batches int64
	came    []int32 // by collective, modulo: how many sides have posted it
	ready   int64   // collectives that all sides have posted
	Begun   int64   // and that are or were on the wire
	Ended   int64
	busy    bool
	Root    string // switch at the tree's top; empty without a fabric
	bound   wire.Rate
	Route   wire.RouteID
	Later   units.Time  // from the last byte on the wire to the result in memory
	stuck   *StuckError // set where a port forwards nothing
}

// Window is how many collectives of a rail may be in progress.
func (r *Rail) Window() int { return len(r.came) }

// Alone is how long bytes last on a rail that shares its links with nothing.
func (r *Rail) Alone(n units.Bytes) units.Time {
	return units.Time(int64(n) * 1e9 / max(1, int64(r.bound)))
}

// Side is a node's head on a rail; its rank's proxy thread serves it.
type Side struct {
	Index      int32
	Rail, Rank int32
	Node, Net  int32
	thread     int32
	First      int32 // batch
	Posted     int64 // collectives
	pending    bool
	up, down   wire.RouteID
}

// Batch is the channels of a side whose steps go together, a NetGroup's part of
// one node.
type Batch struct {
	Side               int32
	To, From           []int32    // network sides of its connections
	sendFree, recvFree units.Time // when its ends can be polled again
	opened             int64      // steps for which there is room to receive
	open               [plan.FIFOSteps]units.Time
	freed              int64 // steps that the kernels have read
	retired            int64 // steps whose completion was polled
	received           int64 // steps whose tails went up
}

// Opened is when there was room for the k-th result.
func (b *Batch) Opened(k int64) units.Time { return b.open[slot(k)] }

// Reduces reports whether a connection ends in the network.
func Reduces(c *plan.Conn) bool { return c.Kind == connect.CollNetRoute }

// Head is the rank at the end of such a connection, the net by which it reaches
// the network, and whether it sends there.
func Head(c *plan.Conn) (rank, net int32, sends bool) {
	if c.Dst == plan.Network {
		return c.Src, c.Route.SrcNet, true
	}
	return c.Dst, c.Route.DstNet, false
}

// GatherHead adds the links between a head's memory and its NIC, in the
// direction of the connection.
func (n *Network) GatherHead(c *plan.Conn) error {
	rank, net, sends := Head(c)
	mem := int32(-1)
	if sends && c.Route.SrcGDR || !sends && c.Route.DstGDR {
		mem = rank
	}
	return n.endLinks(mem, net, rank, sends)
}

// JoinHead adds the network side of a head's connection over a route.
func (n *Network) JoinHead(c *plan.Conn, id int32, pr *plan.Program, r wire.RouteID) (int32, error) {
	rank, net, sends := Head(c)
	node := n.Table.Comm.NodeOf[rank]
	nc := Conn{ID: id, Src: rank, Dst: rank, SrcProxy: rank, DstProxy: -1, SrcLoad: 1, DstLoad: 1,
		Channel: c.Channel, phase: pr.Phase,
		Route: r, share: 1, Flush: c.Route.Flush, via: &n.sharp, batch: 0, allowed: depth(pr)}
	if !sends {
		nc.SrcProxy, nc.DstProxy = -1, rank
	}
	if _, err := n.PortRate(node, net); err != nil {
		return 0, err
	}
	if _, over := n.socketNet(node, net); over {
		return 0, &exec.UnsupportedError{Feature: "in-network reduction", Needs: "InfiniBand ports",
			Found: "nets of the socket plugin"}
	}
	n.Conns = append(n.Conns, nc)
	return int32(len(n.Conns) - 1), nil
}

// place is where a head's connections belong: a group of the plan and a rank.
type place struct{ group, rank int32 }

// JoinRails joins the heads' connections to batches, sides and rails, once all
// connections are declared.
func (n *Network) JoinRails() error {
	ends := map[place][]int32{}
	for i := range n.Conns {
		if n.Conns[i].batch >= 0 {
			pc := n.kernels.Describe(n.Conns[i].ID)
			rank, _, _ := Head(&pc)
			at := place{pc.NetGroup, rank}
			ends[at] = append(ends[at], int32(i))
		}
	}
	groups := n.plan.NetGroups()
	for first := 0; first < len(groups) && len(ends) > 0; {
		k := first + 1
		for k < len(groups) && groups[k].First > 0 {
			k++
		}
		if err := n.joinRail(ends, int32(first), int32(k), groups[first].Ranks); err != nil {
			return err
		}
		first = k
	}
	return nil
}

// joinRail makes a rail of the groups first to k-1 of the plan, which have the
// same ranks, one a node.
func (n *Network) joinRail(ends map[place][]int32, first, k int32, ranks []int32) error {
	r := Rail{Group: first, Batches: int64(k - first)}
	for node, rank := range ranks {
		if len(ends[place{first, rank}]) == 0 {
			continue // another node represents it
		}
		r.Sides = append(r.Sides, int32(len(n.Sides)))
		n.Sides = append(n.Sides, Side{Index: int32(len(n.Sides)), Rail: int32(len(n.Rails)), Rank: rank,
			Node: int32(node), First: int32(len(n.Batches))})
		for g := first; g < k; g++ {
			n.Batches = append(n.Batches, n.newBatch(ends[place{g, rank}]))
		}
	}
	if err := n.layRail(&r); err != nil {
		return err
	}
	n.Rails = append(n.Rails, r)
	return nil
}

// newBatch makes the next batch of the last side, of both directions' ends.
func (n *Network) newBatch(ends []int32) Batch {
	b := Batch{Side: int32(len(n.Sides) - 1)}
	s := &n.Sides[b.Side]
	for _, id := range ends {
		c := &n.Conns[id]
		c.batch = int32(len(n.Batches))
		if c.SrcProxy >= 0 {
			b.To, s.thread, s.up = append(b.To, id), c.SrcProxy, c.Route
		} else {
			b.From, s.thread, s.down = append(b.From, id), c.DstProxy, c.Route
		}
	}
	if n.down == nil || !n.down[s.Rank] {
		b.opened = n.Conns[b.To[0]].allowed
	}
	byChannel := func(x, y int32) int { return cmp.Compare(n.Conns[x].Channel, n.Conns[y].Channel) }
	slices.SortFunc(b.To, byChannel)
	slices.SortFunc(b.From, byChannel)
	return b
}

// layRail gives a rail its route through the network: every side's bytes go up
// from its memory and come down into it, and over every cable of the tree in
// between once each direction.
func (n *Network) layRail(r *Rail) error {
	net := &n.class.Net
	n.Table.Uses = n.Table.Uses[:0]
	var ends []fabric.End
	for _, si := range r.Sides {
		port, err := n.railEnd(r, &n.Sides[si])
		if err != nil {
			return err
		}
		ends = append(ends, port.Whole())
	}
	levels := 1
	if n.frames != nil {
		return notReduced("frames; write --network flow, or leave NCCL_COLLNET_ENABLE out")
	}
	if n.Fabric != nil {
		tree, err := n.ports.router.Tree(ends)
		if err != nil {
			return err
		}
		switch {
		case tree.Loss > 0:
			return notReduced("lost packets")
		case n.plan.Req.Func != coll.AllReduce:
			return notReduced(fmt.Sprintf("%v over a fabric", n.plan.Req.Func))
		}
		for i := range tree.Up {
			n.Table.Add(n.cable(tree.Up[i]), 1)
			n.Table.Add(n.cable(tree.Down[i]), 1)
		}
		levels, r.Root = tree.Levels, tree.Root
		r.Later += tree.Later
	}
	r.bound = wire.Rate(float64(r.bound) * net.ReduceEff)
	r.Later += n.Cost.Wire + units.FromMicros(net.ReduceHop)*units.Time(levels)
	r.came = make([]int32, plan.FIFOSteps*r.Batches+1)
	r.Route = n.Table.Intern()
	return nil
}

// notReduced is what the model of a network that reduces lacks.
func notReduced(what string) error {
	return &exec.NotImplementedError{Feature: "in-network reduction", Missing: "a model of " + what}
}

// railEnd adds a side's links, and what its port's faults do to the rail.
func (n *Network) railEnd(r *Rail, s *Side) (Port, error) {
	b := &n.Batches[s.First]
	pc := n.kernels.Describe(n.Conns[b.To[0]].ID)
	p := Port{n.Table.Comm.HostOf[s.Rank], pc.Route.SrcNet, true}
	s.Net = p.Net
	rate, err := n.PortRate(s.Node, p.Net)
	if err != nil {
		return p, err
	}
	if r.bound == 0 || rate < r.bound {
		r.bound = rate
	}
	for _, half := range []wire.RouteID{s.up, s.down} {
		for _, u := range n.Table.Links.Uses(half) {
			n.Table.Add(u.Link, u.Count)
		}
	}
	for k := range n.Fused(s.Node, p.Net) {
		if n.portFault(p, k) != (param.Fault{Rank: -1, Slow: 1}) {
			return p, notReduced("faults of one port of a fused net")
		}
	}
	f := n.Fault(p)
	if f.Slow > 1 { // both directions
		n.Table.Add(n.slowPort(p, f.Slow, rate), 1)
		n.Table.Add(n.slowPort(Port{p.Host, p.Net, false}, f.Slow, rate), 1)
	}
	switch {
	case f.Loss >= 1:
		r.stuck = &StuckError{Host: int(p.Host), Net: int(p.Net)}
	case f.Loss > 0:
		return p, notReduced("lost packets")
	}
	r.Later = max(r.Later, 2*f.Later)
	return p, nil
}

// Stuck is why a rail never gets on, nil where all do.
func (n *Network) Stuck() error {
	for i := range n.Rails {
		if stuck := n.Rails[i].stuck; stuck != nil {
			return stuck
		}
	}
	return nil
}
