package uec

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/sim/wire/packet/cc"
	"github.com/simccl/simccl/sim/wire/packet/internal/parted"
)

// Flags of a frame.
const (
	flagAck     uint8 = 1 << iota // an acknowledgement
	flagNack                      // psn was trimmed on its way
	flagCE                        // congestion experienced, or its echo
	flagTrimmed                   // a header without payload
	flagLast                      // trimmed on the link to the host
	flagResent                    // a retransmission, or its echo
	flagAsk                       // an acknowledgement is asked for
)

// frame is a frame that waits or travels.
type frame struct {
	at    int64 // ps: its last bit at the end of the link, with the latency of the switch there
	flow  int32
	psn   uint32
	to    int32 // host
	path  uint16
	size  uint16
	slot  uint16 // of the acknowledgement's content
	flags uint8
}

// extend makes room for one more frame, which is written next: append would copy it twice.
func extend(a []frame) []frame {
	n := len(a)
	if n == cap(a) {
		a = slices.Grow(a, max(16, n))
	}
	return a[:n+1]
}

// fifo is a ring of frames that grows; frames can be taken from both ends.
type fifo struct {
	buf        []frame
	head, tail uint32
}

func (q *fifo) empty() bool   { return q.head == q.tail }
func (q *fifo) front() *frame { return &q.buf[q.head&uint32(len(q.buf)-1)] }

func (q *fifo) full() bool { return q.tail-q.head == uint32(len(q.buf)) }

// next is the place after the last of a ring that is not full, to be written.
func (q *fifo) next() *frame {
	q.tail++
	return &q.buf[(q.tail-1)&uint32(len(q.buf)-1)]
}

// push appends a copy of f with another time.
func (q *fifo) push(f *frame, at int64) {
	if q.full() {
		q.grow()
	}
	q.next().set(f, at)
}

func (q *fifo) grow() {
	n := make([]frame, max(8, 2*len(q.buf)))
	for i := q.head; i != q.tail; i++ {
		n[i&uint32(len(n)-1)] = q.buf[i&uint32(len(q.buf)-1)]
	}
	q.buf = n
}

// pop takes the first out; it stays where it is until the next is pushed. An empty ring goes
// on at the begin of its memory, which is in the cache.
func (q *fifo) pop() *frame {
	v := q.front()
	if q.head++; q.head == q.tail {
		q.head, q.tail = 0, 0
	}
	return v
}

// set copies a frame but for its time. It copies field by field: fields of f were written
// just now, and wider loads would wait until those stores are done.
func (g *frame) set(f *frame, at int64) {
	g.at, g.flow, g.psn, g.to = at, f.flow, f.psn, f.to
	g.path, g.size, g.slot, g.flags = f.path, f.size, f.slot, f.flags
}

// ring is a queue of numbers that grows.
type ring[T int32 | uint16] struct {
	buf        []T
	head, tail uint32
}

func (q *ring[T]) empty() bool { return q.head == q.tail }

func (q *ring[T]) push(v T) {
	if q.tail-q.head == uint32(len(q.buf)) {
		n := make([]T, max(8, 2*len(q.buf)))
		for i := q.head; i != q.tail; i++ {
			n[i&uint32(len(n)-1)] = q.buf[i&uint32(len(q.buf)-1)]
		}
		q.buf = n
	}
	q.buf[q.tail&uint32(len(q.buf)-1)] = v
	q.tail++
}

// pop takes the first out.
func (q *ring[T]) pop() T {
	q.head++
	return q.buf[(q.head-1)&uint32(len(q.buf)-1)]
}

// first is when the first frame arrives; never without one.
func (q *fifo) first() int64 {
	if q.empty() {
		return never
	}
	return q.front().at
}

// link is an egress port with its two queues and the cable behind it. A frame
// in transmission stays in its queue until it ends.
//
// What most frames touch is in the first two lines of a cache.
type link struct {
	free       int64 // when the frame in transmission ends; valid if busy
	busy, high bool  // something is transmitted; from the high queue
	toHost     bool
	id         int32
	wire       fifo
	delay      int64
	small      int64 // ps of a control frame

	low      fifo
	lowBytes int64
	hiBytes  int64
	full     int64 // ps of the frame size seen last
	bytes    uint16
	peak     int32

	hi       fifo
	rate     int64
	draws    uint64
	from, to int32 // nodes
	_        [8]byte
}

// ends is between whom a flow is, and what switches hash of it.
type ends struct {
	src, dst int32
	id       uint32
}

// engine is one run.
type engine struct {
	net     *Network
	cfg     *Config
	flows   []Flow
	between []ends // of flows
	links   []link
	in      [][]int32   // links by node
	up      [][]int32   // of leaves: to spines, in the order of their table; nil: not needed yet
	over    [][][]int32 // of spines by host of another pod: to cores, in the same way
	salt    []uint32    // of leaves, then of spines
	setup   *setup
	hosts   []host
	snd     []sender
	rcv     []receiver
	res     Result
	deps    [][]int32
	missing []int32
	pools   [][]int32 // what has not been started
	ready   []int64
	live    int
	look    int64
	leaf    []uint16 // of hosts
	port    []uint16 // by link: which of those of the node where it begins
	due     []int64  // by link: when its first frame arrives
	ends    []int64  // by link: when the frame in transmission ends
	acts    []int64  // by host: it does nothing before
	arrived []frame
	parts   parted.Parts
	ended   []int32
	nscc    cc.Ultra
	queue   int64 // bytes of a switch's queue
	ecnLow  int64
	ecnHigh int64
	rto     int64
}

const never = int64(1<<63 - 1)

// Run simulates the flows on the network.
func Run(n *Network, flows []Flow, c *Config) (*Result, error) {
	if err := Check(n, flows, c); err != nil {
		return nil, err
	}
	e := build(n, flows, c)
	for now := e.next(0); e.live > 0 && now != never; {
		if e.res.Windows&1023 == 0 && c.Poll != nil {
			if err := c.Poll(); err != nil {
				return nil, err
			}
		}
		e.res.Windows++
		end := now + e.look
		if e.window(end) {
			now = end
		} else {
			now = e.next(end)
		}
	}
	for i := range e.links {
		if l := &e.links[i]; int64(l.peak) > e.res.PeakQueue {
			e.res.PeakQueue, e.res.PeakLink = int64(l.peak), [2]int32{l.from, l.to}
		}
	}
	return &e.res, nil
}

// window simulates up to end; it reports whether frames arrived.
func (e *engine) window(end int64) bool {
	busy := 0
	for i := range e.hosts {
		if in := 2*i + 1; e.due[in] < end {
			busy += e.pullHost(&e.hosts[i], end)
			e.due[in], e.acts[i] = e.links[in].wire.first(), 0
		}
	}
	e.settle()
	for i := range e.hosts {
		if h := &e.hosts[i]; e.acts[i] < end {
			e.runHost(h, end)
			h.arrived = h.arrived[:0]
			e.acts[i] = h.nextEvent(e)
		}
	}
	for v := e.net.Hosts(); v < len(e.in); v++ {
		busy += e.runSwitch(v, end)
	}
	return busy > 0
}

// settle starts what waited for the flows that ended.
func (e *engine) settle() {
	if len(e.pools) > 0 {
		slices.SortStableFunc(e.ended, func(a, b int32) int { return cmp.Compare(e.res.Flows[a].End, e.res.Flows[b].End) })
	}
	for _, f := range e.ended {
		e.live--
		if k := e.flows[f].Pool - 1; k >= 0 && len(e.pools[k]) > 0 {
			e.release(e.pools[k][0], f)
			e.pools[k] = e.pools[k][1:]
		}
		for _, d := range e.deps[f] {
			e.release(d, f)
		}
	}
	e.ended = e.ended[:0]
}

// release notes that a flow no longer waits for another, which ended.
func (e *engine) release(d, ended int32) {
	e.ready[d] = max(e.ready[d], int64(e.res.Flows[ended].End))
	if e.missing[d]--; e.missing[d] == 0 {
		e.begin(d, max(e.ready[d], int64(e.flows[d].Start)))
	}
}

// next returns when something happens at or after now.
func (e *engine) next(now int64) int64 {
	t := never
	for i := range e.links {
		t = min(t, e.due[i], e.ends[i])
	}
	for i := range e.hosts {
		t = min(t, e.hosts[i].nextEvent(e))
	}
	if t == never {
		return t
	}
	return max(t, now)
}

// take takes what arrives at a leaf or spine before end off the links, and puts it apart by the
// ports by which it leaves.
func (e *engine) take(v int, end int64) {
	p, from, arrived := &e.parts, end-e.look, e.arrived[:0]
	p.Begin(len(e.in[v]))
	for _, id := range e.in[v] {
		if e.due[id] >= end {
			continue
		}
		q := &e.links[id].wire
		buf, head, tail := q.buf, q.head, q.tail
		for ; head != tail; head++ {
			f := &buf[head&uint32(len(buf)-1)]
			if f.at >= end {
				break
			}
			arrived = extend(arrived)
			g := &arrived[len(arrived)-1]
			*g = *f
			p.Add(e.port[e.route(v, g)], parted.Key(g.at-from, len(arrived)-1))
		}
		q.head = head
		e.due[id] = q.first()
	}
	e.arrived = arrived
	p.End()
}

// runSwitch simulates a leaf or spine up to end, port by port: ports share nothing.
func (e *engine) runSwitch(v int, end int64) int {
	p, from := &e.parts, end-e.look
	e.take(v, end)
	for i, id := range e.in[v] {
		some := p.Used[i/64]>>(i%64)&1 != 0
		if !some && e.ends[id^1] >= end {
			continue
		}
		l := &e.links[id^1]
		if some {
			keys := p.Leaving(i, e.look)
			for k, key := range keys {
				f, next := &e.arrived[key&parted.Place], end
				if k+1 < len(keys) {
					next = from + parted.After(keys[k+1])
				}
				if e.serve(l, f.at); l.busy || !e.straight(l, f, next) {
					e.enqueue(l, f)
				}
			}
		}
		e.serve(l, end)
	}
	return len(e.arrived)
}

// route returns the link by which a frame leaves a switch.
func (e *engine) route(v int, f *frame) int32 {
	n := e.net
	leaf := int(e.leaf[f.to])
	if at := v - n.Hosts(); at < n.Leaves {
		if at == leaf {
			return 2*f.to + 1 // to the host
		}
		up := e.up[at]
		if up == nil {
			up = e.permuted(at, e.setup)
			e.up[at] = up
		}
		return e.hashed(up, at, f)
	}
	spine := v - n.Hosts() - n.Leaves
	if n.Pods > 0 {
		switch pod := n.Pod(leaf); {
		case spine >= n.AllSpines(): // a core
			core := spine - n.AllSpines()
			below := pod*n.Spines + core%n.Spines
			return int32(2*(n.Hosts()+n.Leaves*n.Spines+below*n.Uplinks()+core/n.Spines) + 1)
		case spine/n.Spines != pod:
			return e.hashed(e.beyond(spine, f.to), n.Leaves+spine, f)
		}
		spine %= n.Spines
	}
	return int32(2*(n.Hosts()+leaf*n.Spines+spine) + 1)
}

// hashed is the link of a table of a switch that a frame's hash chooses.
func (e *engine) hashed(up []int32, at int, f *frame) int32 {
	if len(up) == 1 {
		return up[0]
	}
	k := jenkins(e.between[f.flow].id, uint32(f.path), e.salt[at])
	if n := uint32(len(up)); n&(n-1) == 0 {
		return up[k&(n-1)]
	}
	return up[k%uint32(len(up))]
}

// serve ends and starts transmissions of a link before a time.
func (e *engine) serve(l *link, until int64) {
	for l.busy && l.free < until {
		e.finish(l)
	}
}

// finish ends the transmission of a frame: it leaves its queue, is marked by
// what stays there, and travels. The next one starts.
func (e *engine) finish(l *link) {
	var f *frame
	ce := uint8(0)
	if l.high {
		f = l.hi.pop()
		l.hiBytes -= int64(f.size)
	} else {
		f = l.low.pop()
		l.lowBytes -= int64(f.size)
		if l.lowBytes > e.ecnLow && e.marked(l) {
			ce = flagCE
			e.res.Marks++
		}
	}
	if f.flags&(flagAck|flagNack|flagTrimmed) == 0 {
		e.res.DataPacketHops++
	}
	e.pass(l, f, l.free+l.delay, ce)
	l.busy, e.ends[l.id] = false, never
	if !l.low.empty() || l.hiBytes > 0 {
		e.start(l, l.free)
	}
}

// straight lets a frame through a port that is idle, unless it would still be in
// transmission when the next one comes.
func (e *engine) straight(l *link, f *frame, next int64) bool {
	at := f.at + e.lasts(l, f.size)
	if at >= next {
		return false
	}
	if f.flags&(flagAck|flagNack|flagTrimmed) == 0 {
		if int64(f.size) > e.queue {
			return false
		}
		l.peak = max(l.peak, int32(f.size))
		e.res.DataPacketHops++
	}
	e.pass(l, f, at+l.delay, 0)
	return true
}

// pass puts a frame on the cable.
func (e *engine) pass(l *link, f *frame, at int64, flags uint8) {
	if l.wire.empty() {
		e.due[l.id] = at
	}
	if l.wire.full() {
		l.wire.grow()
	}
	g := l.wire.next()
	g.set(f, at)
	g.flags |= flags
}

// marked draws whether a frame is marked.
func (e *engine) marked(l *link) bool {
	if l.lowBytes > e.ecnHigh {
		return true
	}
	l.draws++
	p := uint64(0x7fffffff*(l.lowBytes-e.ecnLow)) / uint64(e.ecnHigh-e.ecnLow)
	return uint64(draw(e.cfg.Seed, uint64(l.id), l.draws)>>1) < p
}

// start begins the transmission of the next frame: control first.
func (e *engine) start(l *link, at int64) {
	l.busy, l.high = true, l.hiBytes > 0
	if l.high {
		l.free = at + e.lasts(l, l.hi.front().size)
	} else {
		l.free = at + e.lasts(l, l.low.front().size)
	}
	e.ends[l.id] = l.free
}

// lasts is how long a frame occupies a link, in ps.
func (e *engine) lasts(l *link, bytes uint16) int64 {
	if bytes == control {
		return l.small
	}
	if l.bytes != bytes {
		l.bytes, l.full = bytes, spell(int64(bytes), l.rate)
	}
	return l.full
}

// spell is how long bytes take at a rate, in ps. The peer multiplies bytes by
// whole picoseconds a byte (sim/queue.cpp).
func spell(bytes, rate int64) int64 { return bytes * (8_000_000_000_000 / rate) }

// enqueue puts a frame into the queues of a link; where data finds no room, it
// or the frame that came last is trimmed.
func (e *engine) enqueue(l *link, f *frame) {
	if f.flags&(flagAck|flagNack|flagTrimmed) == 0 {
		room := l.lowBytes+int64(f.size) <= e.queue
		if !room {
			l.draws++
		}
		if room || draw(e.cfg.Seed, uint64(l.id), l.draws)&1 == 0 {
			if !room {
				l.low.tail--
				last := l.low.buf[l.low.tail&uint32(len(l.low.buf)-1)]
				l.lowBytes -= int64(last.size)
				e.trim(l, &last)
			}
			l.low.push(f, f.at)
			l.lowBytes += int64(f.size)
			l.peak = max(l.peak, int32(l.lowBytes))
			if !l.busy {
				e.start(l, f.at)
			}
			return
		}
		e.trim(l, f)
	} else {
		e.pushHigh(l, f)
	}
	if !l.busy && l.hiBytes > 0 {
		e.start(l, f.at)
	}
}

// trim cuts the payload off and queues the header before data.
func (e *engine) trim(l *link, f *frame) {
	e.res.Trims++
	f.flags |= flagTrimmed
	f.size = control
	if l.toHost {
		f.flags |= flagLast
	}
	e.pushHigh(l, f)
}

func (e *engine) pushHigh(l *link, f *frame) {
	if l.hiBytes+int64(f.size) > 2*e.queue {
		e.res.Drops++
		return
	}
	l.hi.push(f, f.at)
	l.hiBytes += int64(f.size)
}
