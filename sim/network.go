package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/route"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// network is the part of a run that goes through proxy threads and NICs. A
// step walks: kernel posts → sender's proxy sees it, holds a clear-to-send,
// posts the write → bytes on the wire → receiver's proxy polls the completion,
// flushes if it must, raises the tail → kernel reads. Back: the kernel frees a
// slot → receiver's proxy posts the receive and sends the clear-to-send; and
// the sender's proxy polls its own completion and returns the credit.
type network struct {
	e       *engine
	w       *route.Table
	local   wire.RouteID
	cost    netCosts
	threads []Thread // by rank
	conns   []netConn
	watched []int32 // connection ends that each thread looks at
	routes  map[routeKey]wire.RouteID
	lanes   []queuePair
	fabric  *fabric.Fabric // nil: ports share max-min, switches do not block
	router  *fabric.Router
	wires   []int32 // wire of the fabric → link of the model + 1
	qps     int
	split   bool
	// twoWrites: messages of more bytes are a write and a notice, for the trace.
	twoWrites units.Bytes
	faults    []Fault
	waits     []float64 // by route: bytes of messages times how long they waited, us
	rc        Reliability
	slowed    map[port]wire.LinkID
	sockets   Sockets
	tcp       bool // connections are of TCP
	rails     []rail
	obs       NetObserver // nil: nobody listens
	sides     []side
	batches   []batch
}

type netCosts struct {
	post, poll, wire, flush, flag, turn, look units.Time
	call, idle, way                           units.Time // TCP: a system call, one that finds nothing, one way
}

// routeKey keys the routes that connections share.
type routeKey struct {
	src, dst       int32 // ranks whose memory is read and written; below 0: host memory, see memoryOf
	srcNode        int32
	dstNode        int32
	srcNet, dstNet int32
	// Ranks whose proxy threads copy the data, -1: none does.
	writer, reader int32
}

// netConn is the network side of a connection. Steps pass every stage in
// order, so a count a stage says where each of them is.
type netConn struct {
	conn     int32
	srcProxy int32
	dstProxy int32
	src, dst int32 // ranks
	channel  int32
	phase    int32 // batch of the kernel
	// When a look at its ends can have an effect again.
	srcFree, dstFree units.Time
	route            wire.RouteID
	bound            wire.Rate
	flush            bool
	polled           bool    // the receiving kernel polls the data itself (LL, LL128)
	share            float64 // data's share of the bytes sent
	posted           int64   // by the kernel
	sent             int64   // written by the proxy
	begun            int64   // on the wire: a queue pair sends one after the other
	landed           int64   // through
	slot             [plan.FIFOSteps]cutting
	turn             int32 // queue pair of the next part
	first            int32 // of its lanes
	lanes            int32 // queue pairs, or sockets with data
	data             int32 // of them, a message goes over so many
	srcPorts         int32 // physical ports of its nets
	dstPorts         int32
	tcp              bool
	resting          bool       // TCP: the next message's begin is on its way
	rest             units.Time // and not before this
	direct           bool       // the receiving kernel polls what a thread puts into host memory (LL, LL128 over TCP)
	helpers          int32      // threads of each side of a TCP connection; 0: the proxy thread alone
	later            units.Time // latency beyond the NIC's own
	allowed          int64      // clear-to-sends that came
	ready            [plan.FIFOSteps]units.Time
	allow            [plan.FIFOSteps]units.Time
	bytes            [plan.FIFOSteps]units.Bytes
	part             units.Bytes // put into a step that is not posted yet
	pending          bool
	// Of a head's connection with the network that reduces: its batch.
	head  bool
	batch int32
	// Messages that the proxy threads have where the connection stands for several.
	srcLoad, dstLoad int32
}

// Stages of a step, the Arg of an evProxy; seen is added once a proxy thread
// has come to look.
const (
	stagePost   int32 = iota // sender's proxy may post
	stageWire                // the write begins
	stageArrive              // the receiver's NIC has it
	stageSent                // the sender's completion is there
	stageFree                // the kernel freed a slot: receive and clear-to-send
	stageNext                // TCP: the proxy thread turns to the next message

	seen int32 = 8
)

// Looks that a step costs at a connection's end. A look goes no further than
// one of these (transport/net.cc:1237 and 1418: a change of state ends it).
const (
	looksPost   = 2 // offer the slot to the kernel; post the write
	looksSent   = 1 // retire the completion
	looksArrive = 2 // take the completion, begin the flush; raise the tail
	looksFree   = 1 // post the receive: what the kernel has read is seen on the way

	// Over TCP the first test of a message writes it, and ends it where all is
	// written (net_socket.cc:495).
	looksPostTCP = 3
	looksSentTCP = 0
	// Looks between a message and the test of the next: offer a slot, take a
	// message from the kernel.
	looksNextTCP = 2
)

func newNetwork(e *engine, w *route.Table) *network {
	us := units.FromMicros
	p, t := &e.class.Net, &e.class.Net.TCP
	return &network{e: e, w: w, local: w.Local, routes: make(map[routeKey]wire.RouteID),
		threads: make([]Thread, e.plan.Comm.NRanks),
		cost: netCosts{us(p.Post), us(p.Poll), us(p.Wire), us(p.Flush), us(p.Flag), us(p.Turn), us(p.Look),
			us(t.Call), us(t.Look), us(t.Wire)}}
}

// connect declares the network side of a connection; -1 where it has none.
func (n *network) connect(c *plan.Conn, id int32, pr *plan.Program) (int32, error) {
	if c.Route.Transport != connect.NET {
		return -1, nil
	}
	if reduces(c) {
		route, err := n.headRoute(c)
		if err != nil {
			return 0, err
		}
		return n.reach(c, id, pr, route)
	}
	key := n.key(c)
	route, ok := n.routes[key]
	if !ok {
		n.w.Uses = n.w.Uses[:0]
		if err := n.gather(c); err != nil {
			return 0, err
		}
		route = n.w.Intern()
		n.routes[key] = route
	}
	return n.join(c, id, pr, route)
}

// join adds the network side of a connection whose route is known.
func (n *network) join(c *plan.Conn, id int32, pr *plan.Program, route wire.RouteID) (int32, error) {
	r := &c.Route
	nc := netConn{conn: id, src: c.Src, dst: c.Dst, channel: c.Channel, phase: pr.Phase, srcProxy: r.SrcProxy, dstProxy: r.DstProxy, srcLoad: 1, dstLoad: 1,
		share: n.e.class.LinkShare[pr.Proto], flush: r.Flush && pr.Proto == coll.Simple, polled: r.DstGDR && pr.Proto != coll.Simple, route: route}
	var err error
	nc.bound, err = n.portRate(n.w.Comm.NodeOf[c.Src], r.SrcNet)
	if err != nil {
		return 0, err
	}
	if n.e.gone == nil || !n.e.gone[r.DstProxy] {
		nc.allowed = plan.FIFOSteps / int64(max(1, pr.SliceSteps))
	}
	if sockets, helpers, tcp := n.overTCP(c); tcp {
		n.overSockets(&nc, sockets, helpers)
		nc.direct = pr.Proto != coll.Simple
	} else {
		n.spread(&nc, n.fused(n.w.Comm.NodeOf[c.Src], r.SrcNet), n.fused(n.w.Comm.NodeOf[c.Dst], r.DstNet))
	}
	if err := n.layLanes(&nc, c); err != nil {
		return 0, err
	}
	n.conns = append(n.conns, nc)
	return int32(len(n.conns) - 1), nil
}

func (n *network) key(c *plan.Conn) routeKey {
	r := &c.Route
	key := routeKey{n.memoryOf(c.Src), n.memoryOf(c.Dst), n.w.Comm.NodeOf[c.Src], n.w.Comm.NodeOf[c.Dst], r.SrcNet, r.DstNet, -1, -1}
	if _, helpers, tcp := n.overTCP(c); tcp && helpers == 0 {
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
func (n *network) memoryOf(rank int32) int32 {
	node, g := n.w.GPU(rank)
	if node < 0 {
		return -1 // links that are left out
	}
	return -2 - int32(n.w.CPUOf(node, g))
}

func (n *network) portRate(node, net int32) (wire.Rate, error) {
	s := n.w.Systems[node]
	nets := s.Of(topo.NET)
	if int(net) >= len(nets) || net < 0 {
		return 0, &route.Error{Node: int(node), From: "NIC", To: fmt.Sprintf("net %d of %d", net, len(nets))}
	}
	return n.w.NetRate(s.Nodes[nets[net]].Net), nil
}

// gather adds the links from memory through both NICs to memory.
func (n *network) gather(c *plan.Conn) error {
	k := n.key(c)
	if k.writer >= 0 {
		n.copies(k.writer, true)
		n.copies(k.reader, false)
	}
	if err := n.endLinks(k.src, k.srcNet, c.Src, true); err != nil {
		return err
	}
	return n.endLinks(k.dst, k.dstNet, c.Dst, false)
}

// endLinks adds the links between a rank's net and the memory that it reads
// (out) or writes: a GPU's, or the host's where gpuRank is -1.
func (n *network) endLinks(gpuRank, net, rank int32, out bool) error {
	w := n.w
	node, g := w.GPU(rank)
	if node < 0 {
		return nil // links that are left out
	}
	nets := w.Systems[node].Of(topo.NET)
	if net < 0 || int(net) >= len(nets) {
		return &route.Error{Node: int(node), From: "NIC", To: fmt.Sprintf("net %d of %d", net, len(nets))}
	}
	walk, mem := w.Walk, g
	if gpuRank >= 0 {
		_, mem = w.GPU(gpuRank)
		w.ThroughRoot(node, mem, nets[net], out)
	} else {
		walk, mem = w.WalkHost, w.CPUOf(node, g)
	}
	if mem == topo.None {
		return &route.Error{Node: int(node), From: "host memory", To: "NIC"}
	}
	if out {
		return walk(node, mem, nets[net])
	}
	return walk(node, nets[net], mem)
}

func (n *network) push(at units.Time, id, stage int32) {
	n.e.queue.Push(max(at, n.e.queue.Now), classDone, evProxy, id, stage)
}

// post takes a step from the kernel; the proxy can see it at time t.
func (n *network) post(id int32, t units.Time, bytes units.Bytes) {
	c := &n.conns[id]
	k := c.posted % plan.FIFOSteps
	c.ready[k], c.bytes[k] = t+n.cost.flag, bytes+c.part
	c.part = 0
	c.posted++
	if c.head {
		n.tryCollect(n.batches[c.batch].side)
		return
	}
	n.tryPost(id)
}

// tryPost lets the sender's proxy look at the next step when both the step and
// its clear-to-send are there.
func (n *network) tryPost(id int32) {
	c := &n.conns[id]
	if c.pending || c.sent >= c.posted || c.sent >= c.allowed || n.e.gone != nil && n.e.gone[c.srcProxy] {
		return
	}
	c.pending = true
	k := c.sent % plan.FIFOSteps
	n.push(max(c.ready[k], c.allow[k]), id, stagePost)
}

// serve gives a proxy thread a job; done takes it up when it is over.
func (n *network) serve(thread, id, stage int32, cost units.Time) {
	if n.threads[thread].Add(Job{Conn: id, Stage: stage}, cost) {
		n.e.queue.Push(n.e.queue.Now, classRound, evRound, thread, 0)
	}
}

// round ends an instant of a thread.
func (n *network) round(thread int32) {
	jobs, at := n.threads[thread].Round(n.e.queue.Now)
	if obs := n.obs; obs != nil {
		obs.Thread(thread, at)
	}
	for _, j := range jobs {
		n.done(j.Conn, j.Stage, at)
	}
}

// event begins a stage of the oldest step that is there.
func (n *network) event(id, stage int32) {
	c := &n.conns[id]
	switch stage {
	case stageWire:
		n.cut(c, c.sent)
		if obs := n.obs; obs != nil {
			obs.Step(StepEvent{Point: StepPosted, Conn: id, Step: c.sent})
		}
		c.sent++
		c.pending = false
		n.begin(id)
		n.tryPost(id)
	case stageNext:
		c.resting = false
		n.begin(id)
	case stagePost:
		n.look(id, stage, &c.srcFree, c.srcProxy, pick[int32](c.tcp, looksPostTCP, looksPost))
	case stageSent:
		n.look(id, stage, &c.srcFree, c.srcProxy, pick[int32](c.tcp, looksSentTCP, looksSent))
	case stageArrive:
		if c.polled {
			n.done(id, stage, n.e.queue.Now)
			return
		}
		n.look(id, stage, &c.dstFree, c.dstProxy, looksArrive)
	case stageFree:
		n.look(id, stage, &c.dstFree, c.dstProxy, looksFree)
	case stagePost + seen:
		n.serve(c.srcProxy, id, stagePost, pick(c.tcp, n.cost.call, n.cost.post)*units.Time(c.srcLoad))
	case stageSent + seen:
		n.serve(c.srcProxy, id, stageSent, n.cost.poll*units.Time(c.srcLoad))
	case stageArrive + seen:
		n.serve(c.dstProxy, id, stageArrive, pick(c.tcp, n.cost.call, n.cost.poll)*units.Time(c.dstLoad))
	case stageFree + seen:
		n.serve(c.dstProxy, id, stageFree, pick(c.tcp, 0, n.cost.post)*units.Time(c.dstLoad)) // over TCP only a note
	}
}

// pick is what holds over TCP, or else over RDMA.
func pick[T any](tcp bool, over, rdma T) T {
	if tcp {
		return over
	}
	return rdma
}

// way is how long a small message is on its way.
func (n *network) way(c *netConn) units.Time { return pick(c.tcp, n.cost.way, n.cost.wire) + c.later }

// turn is how long a thread takes to come round to a connection's end again.
func (n *network) turn(thread int32) units.Time {
	if n.watched == nil {
		n.watch()
	}
	look := n.cost.look
	if n.tcp {
		look = n.cost.idle
	}
	return n.cost.turn + look*units.Time(n.watched[thread])
}

// watch counts the ends that each thread looks at in a turn. Those of one
// channel and rank that belong to different batches of a kernel are queued
// behind each other (proxy.cc:344), and the longest batch counts.
func (n *network) watch() {
	type queue struct{ thread, rank, channel, dir, phase, ends int32 }
	all := make([]queue, 0, 2*len(n.conns))
	for i := range n.conns {
		c := &n.conns[i]
		for _, q := range [2]queue{{c.srcProxy, c.src, c.channel, 0, c.phase, c.srcLoad}, {c.dstProxy, c.dst, c.channel, 1, c.phase, c.dstLoad}} {
			if q.thread >= 0 { // the network has none
				all = append(all, q)
			}
		}
	}
	slices.SortFunc(all, func(a, b queue) int {
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.rank, b.rank), cmp.Compare(a.channel, b.channel),
			cmp.Compare(a.dir, b.dir), cmp.Compare(a.phase, b.phase))
	})
	n.watched = make([]int32, len(n.threads))
	most, ends := int32(0), int32(0)
	for i, q := range all {
		ends += q.ends
		last := i+1 == len(all)
		queued := !last && all[i+1].thread == q.thread && all[i+1].rank == q.rank && all[i+1].channel == q.channel && all[i+1].dir == q.dir
		if queued && all[i+1].phase == q.phase {
			continue
		}
		most, ends = max(most, ends), 0
		if !queued {
			n.watched[q.thread] += most
			most = 0
		}
	}
}

// look lets a proxy thread come to what is there for a connection's end: half a
// turn later in the mean, and not before the looks that it takes for what was
// there before.
func (n *network) look(id, stage int32, free *units.Time, thread, looks int32) {
	turn := n.turn(thread)
	at := max(n.e.queue.Now+turn/2, *free)
	*free = at + turn*units.Time(looks)
	n.push(at, id, stage+seen)
}

// done ends what a proxy thread did for a step at time t.
func (n *network) done(id, stage int32, t units.Time) {
	if stage >= collectPost {
		n.collected(id, stage, t)
		return
	}
	e, c := n.e, &n.conns[id]
	switch stage {
	case stagePost:
		if c.tcp {
			t += n.turn(c.srcProxy) // until its test
		}
		n.push(t, id, stageWire)
	case stageArrive:
		raised := t
		if !c.polled && !c.direct {
			raised += n.turn(c.dstProxy)
		}
		if n.flushes(c, e.conns[c.conn].posted) {
			raised = max(raised, t+n.cost.flush)
		}
		if obs := n.obs; obs != nil {
			obs.Step(StepEvent{Point: StepArrived, Conn: id, Step: e.conns[c.conn].posted, At: t, Raised: raised})
		}
		if !c.polled {
			raised += n.cost.flag
		}
		e.deliver(c.conn, raised)
	case stageSent:
		if obs := n.obs; obs != nil {
			obs.Step(StepEvent{Point: StepAcked, Conn: id, Step: e.conns[c.conn].credited, At: t})
		}
		e.giveCredit(c.conn, t+n.cost.flag)
	case stageFree:
		if obs := n.obs; obs != nil {
			obs.Step(StepEvent{Point: StepOffered, Conn: id, Step: c.allowed, At: t})
		}
		c.allow[c.allowed%plan.FIFOSteps] = t
		if !c.tcp { // a message of its own
			c.allow[c.allowed%plan.FIFOSteps] += n.way(c)
		}
		c.allowed++
		n.tryPost(id)
	}
}

// flushes tells whether the k-th step's data is read back: an empty one's is
// not (net.cc:1529). Its size is that of the message: the kernel may have filled
// the sender's slot again.
func (n *network) flushes(c *netConn, k int64) bool {
	return c.flush && (c.head || c.slot[k%plan.FIFOSteps].bytes > 0)
}

// release tells the receiver's proxy that the kernel has read a step.
func (n *network) release(id int32, t units.Time) {
	if n.conns[id].head {
		n.drained(id, t+n.cost.flag)
		return
	}
	n.push(t+n.cost.flag, id, stageFree)
}
