package host

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/internal/event"
	"github.com/simccl/simccl/sim/internal/route"
	"github.com/simccl/simccl/sim/param"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// Kernels is what the network needs of the GPUs' side of a run.
type Kernels interface {
	// Deliver makes the next step of a connection readable at a time.
	Deliver(conn int32, at units.Time)
	// Credit gives a connection's sender room for one more step from a time on.
	Credit(conn int32, at units.Time)
	// Describe returns the plan's connection behind one of the engine's.
	Describe(conn int32) plan.Conn
	// Fail ends the run with an error.
	Fail(error)
}

// Settings are what a user sets of the network.
type Settings struct {
	Fabric    *fabric.Fabric // nil: ports share max-min, switches do not block
	QPs       int            // queue pairs a connection, 0 for 1
	Split     bool           // each carries a part of every step
	TwoWrites units.Bytes    // messages of more bytes are a write and a notice; below 0 none
	Faults    []param.Fault
	RC        param.Reliability
	Sockets   param.Sockets
}

// Options are what a Network is made of.
type Options struct {
	Class    *gpu.Class
	Table    *route.Table
	Model    wire.Model // nil where routes are only compared
	Queue    *event.Queue
	Kernels  Kernels
	Plan     *plan.Plan
	Seed     uint64
	Down     []bool // by rank: its process has ended; nil: none has
	Settings Settings
	// Folded: connections represent several, which share the nets' routes.
	Folded bool
}

// Network is the network part of a run.
type Network struct {
	Settings
	Table    *route.Table
	Cost     Costs
	Conns    []Conn
	Pairs    []QueuePair
	Rails    []Rail
	Sides    []Side
	Batches  []Batch
	Folded   bool
	Observer Observer // nil: none

	class   *gpu.Class
	model   wire.Model
	frames  wire.Messages // the model, where it carries messages frame by frame; else nil
	queue   *event.Queue
	kernels Kernels
	plan    *plan.Plan
	down    []bool
	seed    uint64
	proxy   proxies
	ports   portMap
	waits   []integral        // by route: messages' work times how long they waited
	weights map[weighed]int32 // of a folded run, where it is not 1
	rdma    rdma
	tcp     tcp
	sharp   sharp
	// Of a part of a run (apart.go): what it has for others, and how many messages it took.
	apart         bool
	CrossMessages []CrossMessage
	taken         int64
}

// Costs are the class's times of NICs and proxy threads.
type Costs struct {
	Post, Poll, Wire, Flush, Flag units.Time
}

// New makes a Network without connections.
func New(o *Options) *Network {
	us := units.FromMicros
	p := &o.Class.Net
	n := &Network{Settings: o.Settings, Table: o.Table, Folded: o.Folded, class: o.Class, model: o.Model,
		queue: o.Queue, kernels: o.Kernels,
		plan: o.Plan, down: o.Down, seed: o.Seed, ports: newPortMap(o.Settings.Fabric),
		Cost:  Costs{us(p.Post), us(p.Poll), us(p.Wire), us(p.Flush), us(p.Flag)},
		proxy: proxies{threads: make([]thread, o.Plan.Comm.NRanks), loop: us(p.Turn), perEnd: us(p.Look)}}
	for i := range n.proxy.threads {
		n.proxy.threads[i].together = !Staggers(o.Plan)
	}
	n.Split = n.Split && n.Settings.QPs > 1
	if n.frames, _ = o.Model.(wire.Messages); n.frames != nil && n.frames.Whole() {
		for i := range n.Fabric.Wires {
			if !n.Fabric.Wires[i].Down() {
				n.cable(int32(i))
			}
		}
	}
	n.rdma, n.tcp, n.sharp = newRDMA(n), newTCP(n), sharp{}
	return n
}

// Connect declares the network side of a connection of the engine and returns
// its place in Conns; -1 where it has none.
func (n *Network) Connect(c *plan.Conn, id int32, pr *plan.Program) (int32, error) {
	if c.Route.Transport != connect.NET {
		return -1, nil
	}
	n.Table.Uses = n.Table.Uses[:0]
	if Reduces(c) {
		if err := n.GatherHead(c); err != nil {
			return 0, err
		}
		return n.JoinHead(c, id, pr, n.Table.Intern())
	}
	key := n.key(c)
	r, ok := n.ports.routes[key]
	if !ok {
		if err := n.Gather(c); err != nil {
			return 0, err
		}
		r = n.Table.Intern()
		n.ports.routes[key] = r
	}
	return n.Join(c, id, pr, r)
}

// Expect makes room for about n connections, before they join.
func (n *Network) Expect(conns int) {
	n.Conns = slices.Grow(n.Conns, conns)
	n.Pairs = slices.Grow(n.Pairs, conns*max(1, n.QPs))
}

// Join adds the network side of a connection whose route is known.
func (n *Network) Join(c *plan.Conn, id int32, pr *plan.Program, r wire.RouteID) (int32, error) {
	cr := &c.Route
	nc := Conn{ID: id, Src: c.Src, Dst: c.Dst, Channel: c.Channel, phase: pr.Phase, SrcProxy: cr.SrcProxy,
		DstProxy: cr.DstProxy, SrcLoad: 1, DstLoad: 1,
		share: n.class.LinkShare[pr.Proto], Flush: cr.Flush && pr.Proto == coll.Simple, Route: r, batch: -1}
	var err error
	nc.bound, err = n.PortRate(n.Table.Comm.NodeOf[c.Src], cr.SrcNet)
	if err != nil {
		return 0, err
	}
	if n.down == nil || !n.down[cr.DstProxy] {
		nc.allowed = depth(pr)
	}
	if _, over := n.socketNet(n.Table.Comm.NodeOf[c.Src], cr.SrcNet); over {
		if n.frames != nil {
			return 0, &exec.UnsupportedError{Feature: "a network frame by frame", Needs: "ports of RDMA",
				Found: "nets of the socket plugin, whose streams are TCP's"}
		}
		n.tcp.join(&nc, c, pr)
	} else {
		n.rdma.join(&nc, c, pr)
	}
	if err := n.layQueuePairs(&nc, c); err != nil {
		return 0, err
	}
	n.Conns = append(n.Conns, nc)
	return int32(len(n.Conns) - 1), nil
}

// depth is how many steps of a program fit a connection's FIFO.
func depth(pr *plan.Program) int64 { return plan.FIFOSteps / int64(max(1, pr.SliceSteps)) }

// routeKey keys the routes that connections share.
type routeKey struct {
	src, dst       int32 // ranks whose memory is read and written; below 0: host memory, see memoryOf
	srcNode        int32
	dstNode        int32
	srcNet, dstNet int32
	// Ranks whose proxy threads copy the data, -1: none does.
	writer, reader int32
}

func (n *Network) key(c *plan.Conn) routeKey {
	r := &c.Route
	key := routeKey{n.memoryOf(c.Src), n.memoryOf(c.Dst), n.Table.Comm.NodeOf[c.Src],
		n.Table.Comm.NodeOf[c.Dst], r.SrcNet, r.DstNet, -1, -1}
	if _, helpers, over := n.OverTCP(c); over && helpers == 0 {
		key.writer, key.reader = r.SrcProxy, r.DstProxy
	}
	if r.SrcGDR {
		key.src = r.SrcProxy
	}
	if r.DstGDR {
		key.dst = c.Dst
	}
	return key
}

// memoryOf names the host memory of a rank's connections in a key: that of the
// CPU nearest to its GPU, which is not that of every GPU of the node.
func (n *Network) memoryOf(rank int32) int32 {
	node, g := n.Table.GPU(rank)
	if node < 0 {
		return -1 // links that are not simulated
	}
	return -2 - int32(n.Table.CPUOf(node, g))
}

// PortRate is the payload rate of a node's net.
func (n *Network) PortRate(node, net int32) (wire.Rate, error) {
	s := n.Table.Systems[node]
	nets := s.Of(topo.NET)
	if int(net) >= len(nets) || net < 0 {
		return 0, &route.Error{Node: int(node), From: "NIC", To: fmt.Sprintf("net %d of %d", net, len(nets))}
	}
	return n.Table.NetRate(s.Nodes[nets[net]].Net), nil
}

// Gather adds the links from memory through both NICs to memory.
func (n *Network) Gather(c *plan.Conn) error {
	k := n.key(c)
	if k.writer >= 0 {
		n.tcp.copies(k.writer, true)
		n.tcp.copies(k.reader, false)
	}
	if err := n.endLinks(k.src, k.srcNet, c.Src, true); err != nil {
		return err
	}
	return n.endLinks(k.dst, k.dstNet, c.Dst, false)
}

// endLinks adds the links between a rank's net and the memory that it reads
// (out) or writes: a GPU's, or the host's where gpuRank is below 0.
func (n *Network) endLinks(gpuRank, net, rank int32, out bool) error {
	w := n.Table
	node, g := w.GPU(rank)
	if node < 0 {
		return nil // links that are not simulated
	}
	nets := w.Systems[node].Of(topo.NET)
	if net < 0 || int(net) >= len(nets) {
		return &route.Error{Node: int(node), From: "NIC", To: fmt.Sprintf("net %d of %d", net, len(nets))}
	}
	mem := g
	if gpuRank >= 0 {
		_, mem = w.GPU(gpuRank)
		w.ThroughRoot(node, mem, nets[net], out)
	} else {
		mem = w.CPUOf(node, g)
	}
	if mem == topo.None {
		return &route.Error{Node: int(node), From: "host memory", To: "NIC"}
	}
	if out {
		return w.Walk(node, mem, nets[net])
	}
	return w.Walk(node, nets[net], mem)
}
