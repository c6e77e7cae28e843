package uec

import "github.com/simccl/simccl/sim/wire/packet/cc"

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

// ring is a queue that grows; frames can be taken from both ends.
type ring[T any] struct {
	buf        []T
	head, tail uint32
}

func (q *ring[T]) empty() bool { return q.head == q.tail }
func (q *ring[T]) front() *T   { return &q.buf[q.head&uint32(len(q.buf)-1)] }

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

// link is an egress port with its two queues and the cable behind it. A frame
// in transmission stays in its queue until it ends.
type link struct {
	free       int64 // when the frame in transmission ends; valid if busy
	busy, high bool  // something is transmitted; from the high queue
	toHost     bool
	from, to   int32 // nodes
	id         int32
	low, hi    ring[frame]
	wire       ring[frame]
	lowBytes   int64
	hiBytes    int64
	rate       int64
	delay      int64
	peak       int64
	draws      uint64
	full       duration // of the frame size seen last
	small      int64    // ps of a control frame
}

type duration struct {
	bytes uint16
	ps    int64
}

// engine is one run.
type engine struct {
	net     *Network
	cfg     *Config
	flows   []Flow
	links   []link
	in      [][]int32 // links by node
	up      [][]int32 // of leaves: to spines, in the order of their table; nil: not needed yet
	salt    []uint32  // of leaves
	setup   *setup
	hosts   []host
	snd     []sender
	rcv     []receiver
	res     Result
	deps    [][]int32
	missing []int32
	ready   []int64
	live    int
	look    int64
	arrived []frame
	spare   []frame
	runs    []int // where each link's frames begin in arrived
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
		if l := &e.links[i]; l.peak > e.res.PeakQueue {
			e.res.PeakQueue, e.res.PeakLink = l.peak, [2]int32{l.from, l.to}
		}
	}
	return &e.res, nil
}

// window simulates up to end; it reports whether frames arrived.
func (e *engine) window(end int64) bool {
	busy := 0
	for i := range e.hosts {
		busy += e.pullHost(&e.hosts[i], end)
	}
	e.settle()
	for i := range e.hosts {
		e.runHost(&e.hosts[i], end)
	}
	for v := e.net.Hosts(); v < len(e.in); v++ {
		busy += e.runSwitch(v, end)
	}
	return busy > 0
}

// settle starts what waited for the flows that ended.
func (e *engine) settle() {
	for _, f := range e.ended {
		e.live--
		for _, d := range e.deps[f] {
			e.ready[d] = max(e.ready[d], int64(e.res.Flows[f].End))
			if e.missing[d]--; e.missing[d] == 0 {
				e.begin(d, max(e.ready[d], int64(e.flows[d].Start)))
			}
		}
	}
	e.ended = e.ended[:0]
}

// next returns when something happens at or after now.
func (e *engine) next(now int64) int64 {
	t := never
	for i := range e.links {
		l := &e.links[i]
		if !l.wire.empty() {
			t = min(t, l.wire.front().at)
		}
		if l.busy {
			t = min(t, l.free)
		}
	}
	for i := range e.hosts {
		t = min(t, e.hosts[i].nextEvent(e))
	}
	if t == never {
		return t
	}
	return max(t, now)
}

// runSwitch simulates a leaf or spine up to end.
func (e *engine) runSwitch(v int, end int64) int {
	e.arrived, e.runs = e.arrived[:0], e.runs[:0]
	for _, id := range e.in[v] {
		q, n := &e.links[id].wire, len(e.arrived)
		for !q.empty() && q.front().at < end {
			e.arrived = append(e.arrived, *q.front())
			q.head++
		}
		if len(e.arrived) > n {
			e.runs = append(e.runs, n)
		}
	}
	e.order()
	for i := range e.arrived {
		f := &e.arrived[i]
		l := e.route(v, f)
		e.serve(l, f.at)
		e.enqueue(l, f)
	}
	for _, id := range e.in[v] {
		e.serve(&e.links[id^1], end)
	}
	return len(e.arrived)
}

// order puts the frames of a window in the order of time, those of equal times
// in that of links: it merges the links' runs, two at a time.
func (e *engine) order() {
	for len(e.runs) > 1 {
		out, k := e.spare[:0], 0
		for i := 0; i < len(e.runs); i += 2 {
			end := len(e.arrived)
			if i+2 < len(e.runs) {
				end = e.runs[i+2]
			}
			from, mid := e.runs[i], end
			if i+1 < len(e.runs) {
				mid = e.runs[i+1]
			}
			e.runs[k] = len(out)
			k++
			out = merge(out, e.arrived[from:mid], e.arrived[mid:end])
		}
		e.runs = e.runs[:k]
		e.arrived, e.spare = out, e.arrived
	}
}

// merge appends two sorted runs in order; a goes first where times are equal.
func merge(out, a, b []frame) []frame {
	for len(a) > 0 && len(b) > 0 {
		if b[0].at < a[0].at {
			out = append(out, b[0])
			b = b[1:]
		} else {
			out = append(out, a[0])
			a = a[1:]
		}
	}
	return append(append(out, a...), b...)
}

// route returns the link by which a frame leaves a switch.
func (e *engine) route(v int, f *frame) *link {
	n := e.net
	leaf := int(f.to) / n.PerLeaf
	if at := v - n.Hosts(); at < n.Leaves {
		if at == leaf {
			return &e.links[2*f.to+1] // to the host
		}
		up := e.up[at]
		if up == nil {
			up = e.permuted(at, e.setup)
			e.up[at] = up
		}
		k := uint32(0)
		if len(up) > 1 {
			k = jenkins(e.flows[f.flow].ID, uint32(f.path), e.salt[at]) % uint32(len(up))
		}
		return &e.links[up[k]]
	}
	spine := v - n.Hosts() - n.Leaves
	return &e.links[2*(n.Hosts()+leaf*n.Spines+spine)+1]
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
	var f frame
	if l.high {
		f = *l.hi.front()
		l.hi.head++
		l.hiBytes -= int64(f.size)
	} else {
		f = *l.low.front()
		l.low.head++
		l.lowBytes -= int64(f.size)
		if l.lowBytes > e.ecnLow && e.marked(l) {
			f.flags |= flagCE
			e.res.Marks++
		}
	}
	if f.flags&(flagAck|flagNack|flagTrimmed) == 0 {
		e.res.DataPacketHops++
	}
	f.at = l.free + l.delay
	l.wire.push(f)
	l.busy = false
	if !l.low.empty() || !l.hi.empty() {
		e.start(l, l.free)
	}
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
	l.busy, l.high = true, !l.hi.empty()
	if l.high {
		l.free = at + e.lasts(l, l.hi.front().size)
	} else {
		l.free = at + e.lasts(l, l.low.front().size)
	}
}

// lasts is how long a frame occupies a link, in ps.
func (e *engine) lasts(l *link, bytes uint16) int64 {
	if bytes == control {
		return l.small
	}
	if l.full.bytes != bytes {
		l.full = duration{bytes, spell(int64(bytes), l.rate)}
	}
	return l.full.ps
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
			l.low.push(*f)
			l.lowBytes += int64(f.size)
			l.peak = max(l.peak, l.lowBytes)
			if !l.busy {
				e.start(l, f.at)
			}
			return
		}
		e.trim(l, f)
	} else {
		e.pushHigh(l, f)
	}
	if !l.busy && !l.hi.empty() {
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
	l.hi.push(*f)
	l.hiBytes += int64(f.size)
}
