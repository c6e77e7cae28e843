package host

import (
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// Conn is the network side of a connection. Steps pass every stage in order, so
// a count a stage says where each of them is.
type Conn struct {
	ID                 int32 // connection of the engine
	SrcProxy, DstProxy int32 // ranks whose threads serve its ends, -1: the network itself
	Src, Dst           int32 // ranks
	Channel            int32
	phase              int32 // batch of the kernel
	// Messages that the proxy threads have where the connection represents several.
	SrcLoad, DstLoad int32
	Route            wire.RouteID
	Flush            bool       // what arrives is read back
	Later            units.Time // latency beyond the NIC's own
	trip             units.Time // of it and the NIC's, what a model of frames counts itself
	bound            wire.Rate
	share            float64 // data's share of the bytes sent

	via      transport
	msg      messenger // via, where it carries messages from host to host
	costs    *stageCosts
	poller   poller
	tcp      tcpConn
	rest     rest
	batch    int32 // of a head's connection, else -1
	srcFree  units.Time
	dstFree  units.Time
	pending  bool // a step waits for the sender's proxy
	posted   int64
	sent     int64 // written by the proxy
	wired    int64 // of them, those that the queue pairs know of: all but in a part of a run
	begun    int64 // on the wire: a queue pair sends one after the other
	landed   int64 // through
	arrived  int64 // delivered to the kernel
	acked    int64
	allowed  int64       // clear-to-sends that came
	part     units.Bytes // put into a step that is not posted yet
	first    int32       // of its queue pairs, in Network.Pairs
	pairs    int32       // queue pairs, or sockets with data
	stripe   int32       // of them, a message goes over so many
	next     int32       // queue pair of the next part
	srcPorts int32       // physical ports of its nets
	dstPorts int32       //
	split    [plan.FIFOSteps]split
	ready    [plan.FIFOSteps]units.Time
	allow    [plan.FIFOSteps]units.Time
	bytes    [plan.FIFOSteps]units.Bytes
}

// rest is the time between two messages of a connection.
type rest struct {
	until   units.Time // no message begins before this
	waiting bool       // the next message's begin is in the queue
}

// rested reports whether a connection's rest is over; where not yet, the next message
// begins then.
func (n *Network) rested(id int32, c *Conn) bool {
	if n.queue.Now >= c.rest.until {
		return true
	}
	if !c.rest.waiting {
		c.rest.waiting = true
		n.pushNamed(c.rest.until, id, stageNext)
	}
	return false
}

// Represent gives a head's connection the thread that serves it in place of its
// rank's own.
func (c *Conn) Represent(thread int32) {
	if c.SrcProxy >= 0 {
		c.SrcProxy = thread
	}
	if c.DstProxy >= 0 {
		c.DstProxy = thread
	}
}

// poller says who polls for what arrives.
type poller uint8

const (
	// proxyPolls: the receiver's thread polls the completion and raises the tail.
	proxyPolls poller = iota
	// kernelPolls: the receiving kernel polls the data itself (LL, LL128 into GPU
	// memory).
	kernelPolls
	// kernelPollsHost: the thread copies the data into host memory, where the
	// kernel polls it (LL, LL128 over TCP).
	kernelPollsHost
)

// split is how a step is divided over queue pairs. Steps are parts of a
// connection's buffers, which end far below 2 GiB (NCCL_BUFFSIZE, an int in
// NCCL).
type split struct {
	first       int32 // its first queue pair among the connection's
	parts, left int16 // how many; how many are in progress
	bytes, each int32
}

// slot is where what is known of the k-th step is kept.
func slot(k int64) int64 { return k % plan.FIFOSteps }

// divide decides which queue pairs carry the next step of a connection, and how
// much each. They take steps in rotation (net_ib.cc:2184).
func (c *Conn) divide(k int64) {
	i := slot(k)
	parts, each := c.msg.divide(c, c.bytes[i])
	c.split[i] = split{first: c.next, parts: int16(parts), bytes: int32(c.bytes[i]), each: int32(each)}
	c.next = (c.next + parts) % c.pairs
}

// Parts is over how many queue pairs the k-th step goes.
func (c *Conn) Parts(k int64) int32 { return int32(c.split[slot(k)].parts) }

// Part is how many bytes the q-th queue pair of the k-th step carries.
func (c *Conn) Part(k int64, q int32) units.Bytes { return c.msg.part(&c.split[slot(k)], q) }

// Pair is the queue pair of the k-th step's part q, in Network.Pairs.
func (c *Conn) Pair(k int64, q int32) int32 {
	return c.first + (c.split[slot(k)].first+q)%c.pairs
}

// PairOf is the place of the k-th step's part q among the connection's own.
func (c *Conn) PairOf(k int64, q int32) int32 { return c.Pair(k, q) - c.first }

// StepBytes is the size of the k-th step's message.
func (c *Conn) StepBytes(k int64) units.Bytes { return units.Bytes(c.split[slot(k)].bytes) }

// Ready is when the k-th step was there for the sender's proxy.
func (c *Conn) Ready(k int64) units.Time { return c.ready[slot(k)] }

// Allowed is when the k-th step's clear-to-send was there.
func (c *Conn) Allowed(k int64) units.Time { return c.allow[slot(k)] }

// Posted is the number of steps that the kernel has posted.
func (c *Conn) Posted() int64 { return c.posted }

// Share is data's share of the bytes that a connection sends.
func (c *Conn) Share() float64 { return c.share }

// RouteOf is the route of a connection's first queue pair, or of the rail that a
// head's connection leads to.
func (n *Network) RouteOf(id int32) wire.RouteID {
	c := &n.Conns[id]
	if c.batch >= 0 {
		return n.Rails[n.Sides[n.Batches[c.batch].Side].Rail].Route
	}
	return n.Pairs[c.first].Route
}

// TCP reports whether the connection is one of sockets.
func (c *Conn) TCP() bool { return c.tcp.on }

// Shown is how many queue pairs, or sockets, a connection shows on a timeline;
// the last of TCP's is the control socket.
func (c *Conn) Shown() int32 {
	switch {
	case !c.tcp.on:
		return c.pairs
	case c.tcp.helpers == 0:
		return 1
	}
	return c.pairs + 1
}

// DstPorts is the number of physical ports of the receiving net.
func (c *Conn) DstPorts() int32 { return c.dstPorts }

// QueuePair is one queue pair of a connection, or one of its sockets: its route
// through the network and the step that is on it.
type QueuePair struct {
	Conn  int32
	Route wire.RouteID
	Step  int64
	Part  int32      // of it
	Since units.Time // when the message on the wire began
	Sent  wire.Work
	bound wire.Rate // of its own
	rate  wire.Rate // of the message on the wire; 0: bound
	busy  bool
	again repeat
	// Frame by frame: where its messages are given, -1: nowhere; those in flight,
	// which follow each other without a pause; and since when the first could go.
	queue   wire.QueueID
	flight  []inFlight
	crosses bool       // cables
	last    units.Time // when the message before had left
}

// Queue is where its messages are given frame by frame, ok false where they are flows.
func (l *QueuePair) Queue() (q wire.QueueID, ok bool) { return l.queue, l.queue >= 0 }

// inFlight is a message of a queue pair that is posted and has not arrived.
type inFlight struct {
	step  int64
	part  int32
	since units.Time
	sent  wire.Work
}

// Count reports what a message of a connection carries over the routes of its
// queue pairs, in nano-bytes. What the network reduces is not counted.
func (n *Network) Count(id int32, bytes units.Bytes, add func(r wire.RouteID, work float64)) {
	c := &n.Conns[id]
	if c.batch >= 0 || c.pairs < 1 {
		return
	}
	work := float64(bytes) * wire.NanoBytes / c.share / float64(c.pairs)
	for i := range c.pairs {
		add(n.Pairs[c.first+i].Route, work)
	}
}
