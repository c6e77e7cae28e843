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
	path  uint16
	size  uint16
	slot  uint16 // of the acknowledgement's content
	flags uint8
}

// link is an egress port with its two queues and the cable behind it. A frame
// in transmission travels, and counts in its queue until it ends.
//
// What most frames touch is in the first two lines of a cache.
type link struct {
	free   int64 // of hosts: when what was sent last ends
	high   bool  // the frame in transmission is from the high queue
	toHost bool
	size   uint16 // of the frame in transmission, if it is data
	id     int32
	low    fifo
	delay  int64

	small    int64 // ps of a control frame
	lowBytes int64
	hiBytes  int64
	full     int64  // ps of the frame size seen last
	bytes    uint16 // that size
	peak     int32
	_        [24]byte

	hi       fifo
	rate     int64
	draws    uint64
	from, to int32 // nodes
}

// goal is a host by its leaf and the port there.
type goal struct{ leaf, port uint16 }

// goal is the place in engine.goals of where a frame goes to.
func (f *frame) goal() uint32 {
	return uint32(f.flow)<<1 | uint32(f.flags|f.flags>>1)&1 // flagAck or flagNack
}

// engine is one run.
type engine struct {
	net     *Network
	cfg     *Config
	flows   []Flow
	goals   []goal   // of flows: of frames, then of their answers
	ids     []uint32 // of flows: what switches hash of them
	links   []link
	in      [][]int32    // links by node
	up      [][]uint16   // of leaves: ports to spines, in the order of their table; nil: not needed yet
	over    [][][]uint16 // of spines by host of another pod: to cores, in the same way
	upports []uint8      // of goals by path: the uplink of the sender's leaf, from 1; 0: not known; nil: never is
	salt    []uint32     // of leaves, then of spines
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
	waits   bool    // flows wait for others to end
	look    int64   // the least delay of a cable, in ps
	span    int64   // ps of a window
	tables  int     // of leaves, not yet drawn, that will be
	again   int64   // when a host last had a frame of a packet that it knew to have come
	due     []int64 // by link: when its first frame arrives
	ends    []int64 // by link: when the frame in transmission ends
	acts    []int64 // by host: it does nothing before
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
	done, err := e.run(e.mayTurn())
	if err == nil && !done {
		e = build(n, flows, c)
		_, err = e.run(false)
	}
	if err != nil {
		return nil, err
	}
	e.peaks()
	return &e.res, nil
}

// peaks notes the deepest queue.
func (e *engine) peaks() {
	for i := range e.links {
		if l := &e.links[i]; int64(l.peak) > e.res.PeakQueue {
			e.res.PeakQueue, e.res.PeakLink = int64(l.peak), [2]int32{l.from, l.to}
		}
	}
}

// run simulates all, in turns if it may. It reports false where the end of a window would show in
// what is counted.
func (e *engine) run(turns bool) (bool, error) {
	for now := e.next(0); e.live > 0 && now != never; {
		if turns && e.tables == 0 {
			return e.turns(now)
		}
		if err := e.poll(); err != nil {
			return false, err
		}
		end := now + e.look
		if e.window(end) {
			now = end
		} else {
			now = e.next(end)
		}
	}
	return true, nil
}

// poll counts a window, and asks, each 1024 of them, whether to go on.
func (e *engine) poll() error {
	e.res.Windows++
	if e.res.Windows&1023 == 1 && e.cfg.Poll != nil {
		return e.cfg.Poll()
	}
	return nil
}

// window simulates up to end; it reports whether frames arrived.
func (e *engine) window(end int64) bool {
	return e.runHosts(end)+e.switches(e.net.Hosts(), len(e.in), end) > 0
}

// switches simulates those from first to before last up to end; it returns how many frames arrived.
func (e *engine) switches(first, last int, end int64) (busy int) {
	for v := first; v < last; v++ {
		busy += e.runSwitch(v, end)
	}
	return busy
}

// runHosts simulates all hosts up to end; it returns how many frames arrived.
func (e *engine) runHosts(end int64) (busy int) {
	if !e.waits {
		for i := range e.hosts {
			busy += e.runAlone(&e.hosts[i], end)
		}
		e.settle()
		return busy
	}
	for i := range e.hosts {
		if h := &e.hosts[i]; e.due[2*i+1] < end {
			h.arrived = e.pullHost(h, h.arrived, end)
			busy += len(h.arrived)
			e.acts[i] = 0
		}
	}
	e.settle()
	for i := range e.hosts {
		if h := &e.hosts[i]; e.acts[i] < end {
			e.runHost(h, h.arrived, end)
			h.arrived = h.arrived[:0]
			e.acts[i] = h.nextEvent(e)
		}
	}
	return busy
}

// runAlone simulates a host up to end where no flow waits for the end of another.
func (e *engine) runAlone(h *host, end int64) int {
	e.arrived = e.arrived[:0]
	if e.due[2*h.id+1] < end {
		e.arrived = e.pullHost(h, e.arrived, end)
	} else if e.acts[h.id] >= end {
		return 0
	}
	e.runHost(h, e.arrived, end)
	e.acts[h.id] = h.nextEvent(e)
	return len(e.arrived)
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
	arrived := e.arrived[:0]
	for _, id := range e.in[v] {
		if e.due[id] >= end {
			continue
		}
		l := &e.links[id]
		if l.low.head != l.low.sent {
			arrived = l.low.take(arrived, end)
		}
		if l.hi.head != l.hi.sent {
			arrived = l.hi.take(arrived, end)
		}
		e.due[id] = l.first()
	}
	e.arrived = arrived
	e.parts.Begin(len(e.in[v]))
	switch n, from := e.net, end-e.span; {
	case v < n.Hosts()+n.Leaves:
		e.atLeaf(v-n.Hosts(), arrived, from)
	case n.Pods == 0:
		for i := range arrived {
			f := &arrived[i]
			e.parts.Add(e.goals[f.goal()].leaf, parted.Key(f.at-from, i))
		}
	default:
		for i := range arrived {
			f := &arrived[i]
			e.parts.Add(e.route(v-n.Hosts()-n.Leaves, e.goals[f.goal()], f), parted.Key(f.at-from, i))
		}
	}
	e.parts.End()
}

// atLeaf puts apart what arrives at a leaf after a time.
func (e *engine) atLeaf(at int, arrived []frame, from int64) {
	p, goals := &e.parts, e.goals
	for i := range arrived {
		f := &arrived[i]
		to := goals[f.goal()]
		port := to.port
		if int(to.leaf) != at {
			port = e.upward(at, f)
		}
		p.Add(port, parted.Key(f.at-from, i))
	}
}

// first is when the first frame of a link arrives.
func (l *link) first() int64 { return min(l.low.first(), l.hi.first()) }

// runSwitch simulates a leaf or spine up to end, port by port: ports share nothing.
func (e *engine) runSwitch(v int, end int64) int {
	p := &e.parts
	e.take(v, end)
	for i, id := range e.in[v] {
		some := p.Used[i/64]>>(i%64)&1 != 0
		if !some && e.ends[id^1] >= end {
			continue
		}
		var keys []uint64
		if some {
			keys = p.LeavingMixed(i, e.span)
		}
		e.onto(&e.links[id^1], e.arrived, keys, end)
	}
	return len(e.arrived)
}

// onto lets a port work up to end: frames come in the order of keys; a frame in transmission that
// ends no longer counts in its queue, and is marked by what stays there; the next one
// starts, control first.
func (e *engine) onto(l *link, arrived []frame, keys []uint64, end int64) {
	free, due, hops := e.ends[l.id], e.due[l.id], int64(0)
	for k := 0; ; k++ {
		f, at := coming(arrived, keys, k, end)
		for free < at {
			if l.high {
				l.hiBytes -= control
			} else {
				hops++
				if l.lowBytes -= int64(l.size); l.lowBytes > e.ecnLow {
					e.mark(l)
				}
			}
			var g *frame
			if l.hi.sent != l.hi.tail {
				g = l.hi.at(l.hi.sent)
				l.hi.sent++
				l.high = true
				free += l.small
			} else if l.low.sent != l.low.tail {
				g = l.low.at(l.low.sent)
				l.low.sent++
				l.high, l.size = false, g.size
				free += e.lasts(l, g.size)
			} else {
				free = never
				break
			}
			g.at = free + l.delay
			due = min(due, g.at)
		}
		if f == nil {
			break
		}
		q, high := &l.low, f.flags&(flagAck|flagNack|flagTrimmed) != 0
		if high {
			if l.hiBytes+control > 2*e.queue {
				e.res.Drops++
				continue
			}
			q = &l.hi
			l.hiBytes += control
		} else {
			bytes := l.lowBytes + int64(f.size)
			if bytes > e.queue {
				free, due = e.overflow(l, f, free, due)
				continue
			}
			l.lowBytes = bytes
			l.peak = max(l.peak, int32(bytes))
		}
		i := q.tail
		if i-q.head == uint32(len(q.buf)) {
			q.grow()
		}
		q.tail = i + 1
		if free == never {
			q.sent = i + 1
			l.high, l.size = high, f.size
			free = at + e.lasts(l, f.size)
			at = free + l.delay
			due = min(due, at)
		}
		q.at(i).set(f, at)
	}
	e.ends[l.id], e.due[l.id] = free, due
	e.res.DataPacketHops += hops
}

// pass puts a frame on the cable behind a port at which none waits.
func (e *engine) pass(l *link, f *frame, at int64) {
	q := &l.low
	if f.flags&(flagAck|flagNack|flagTrimmed) != 0 {
		q = &l.hi
	}
	q.push(f, at)
	q.sent++
	e.due[l.id] = min(e.due[l.id], at)
}

// coming is the frame of a key and when it comes; after the last key none does before end.
func coming(arrived []frame, keys []uint64, k int, end int64) (*frame, int64) {
	if k >= len(keys) {
		return nil, end
	}
	f := &arrived[keys[k]&parted.Place]
	return f, f.at
}

// mark marks the frame whose transmission ended, or not, as is drawn.
func (e *engine) mark(l *link) {
	if l.lowBytes <= e.ecnHigh {
		l.draws++
		p := uint64(0x7fffffff*(l.lowBytes-e.ecnLow)) / uint64(e.ecnHigh-e.ecnLow)
		if uint64(draw(e.cfg.Seed, uint64(l.id), l.draws)>>1) >= p {
			return
		}
	}
	l.low.at(l.low.sent - 1).flags |= flagCE
	e.res.Marks++
}

// start begins the transmission of the only control frame that waits.
func (e *engine) start(l *link, at int64) {
	f := l.hi.at(l.hi.sent)
	l.hi.sent++
	l.high = true
	f.at = at + l.small + l.delay
	e.ends[l.id], e.due[l.id] = at+l.small, min(e.due[l.id], f.at)
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

// overflow puts a data frame into a queue that has no room for it: it or the frame that came last is
// trimmed. In and out: when the frame in transmission ends, and when the first that travels arrives.
func (e *engine) overflow(l *link, f *frame, free, due int64) (int64, int64) {
	e.ends[l.id], e.due[l.id] = free, due
	l.draws++
	switch {
	case draw(e.cfg.Seed, uint64(l.id), l.draws)&1 != 0:
		e.trim(l, f)
	case !l.low.waits():
		e.instead(l, f)
	default:
		l.low.tail--
		last := *l.low.at(l.low.tail)
		l.lowBytes -= int64(last.size)
		e.trim(l, &last)
		l.lowBytes += int64(f.size)
		l.peak = max(l.peak, int32(l.lowBytes))
		l.low.push(f, f.at)
	}
	return e.ends[l.id], e.due[l.id]
}

// instead puts a frame in the place of that in transmission, if there is one, which is trimmed:
// the queue has room for one.
func (e *engine) instead(l *link, f *frame) {
	if e.ends[l.id] == never || l.high {
		e.trim(l, f)
		return
	}
	g := l.low.at(l.low.sent - 1)
	last := *g
	g.set(f, g.at)
	l.lowBytes += int64(f.size) - int64(last.size)
	l.size = f.size
	l.peak = max(l.peak, int32(l.lowBytes))
	e.trim(l, &last)
}

// trim cuts the payload off and queues the header before data.
func (e *engine) trim(l *link, f *frame) {
	e.res.Trims++
	f.flags |= flagTrimmed
	f.size = control
	if l.toHost {
		f.flags |= flagLast
	}
	e.control(l, f)
}

// control puts a control frame into its queue.
func (e *engine) control(l *link, f *frame) {
	if l.hiBytes+int64(f.size) > 2*e.queue {
		e.res.Drops++
		return
	}
	l.hiBytes += int64(f.size)
	l.hi.push(f, f.at)
	if e.ends[l.id] == never {
		e.start(l, f.at)
	}
}
