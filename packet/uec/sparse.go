package uec

import (
	"math/bits"

	"github.com/simccl/simccl/packet/internal/arrivals"
)

// few is the number of arrivals in a window up to which frames are handled one by one.
const few = 16

// runSparse is runSwitch for a switch of at most 64 ports and two tiers with few arrivals: frames are
// forwarded one by one in the order of time, without bucketing. ok is false, and nothing is done, if there
// are more than few arrivals. (With three tiers, spines draw tables in the order of forwarding, which would
// differ.)
func (e *engine) runSparse(v int, n *node, end int64) (busy int, ok bool) {
	ports := e.ports[n.first : n.first+n.ports]
	keys, from, frames := e.keys[:0], end-e.span, uint32(0)
	for some := e.come[n.word]; some != 0; some &= some - 1 {
		k := bits.TrailingZeros64(some)
		x := &ports[k]
		if x.due >= end {
			continue
		}
		if frames += x.in.low.sent - x.in.low.head + x.in.hi.sent - x.in.hi.head; frames > few {
			return 0, false
		}
		keys = append(keys, arrivals.Key(x.due-from, k))
	}
	if len(keys) > 1 {
		arrivals.Sort(keys)
		e.untieLinks(ports, keys)
	}
	for len(keys) > 0 {
		x := &ports[keys[0]&arrivals.Place]
		x.last, x.place = x.due, uint16(busy)
		e.forward(v, ports, x)
		busy++
		if x.due < end {
			replace(keys, arrivals.Key(x.due-from, int(keys[0]&arrivals.Place)))
			continue
		}
		keys = keys[1:]
		if x.due == never {
			e.come[n.word] &^= 1 << (x.bit % 64)
		}
	}
	for some := e.goes[n.word]; some != 0; some &= some - 1 {
		if x := &ports[bits.TrailingZeros64(some)]; x.free < end {
			e.serveUntil(x, nil, nil, end)
		}
	}
	return busy, true
}

// replace replaces the first of the sorted keys by key, placed after the keys of the same time.
func replace(keys []uint64, key uint64) {
	i := 1
	for ; i < len(keys) && keys[i] < key|arrivals.Place; i++ {
		keys[i-1] = keys[i]
	}
	keys[i-1] = key
}

// forward takes the first frame at an ingress port and passes it to its egress port.
func (e *engine) forward(v int, ports []port, from *port) {
	q, due := &from.in.low, from.in.hi.comes()
	if low := q.comes(); due < low {
		q, due = &from.in.hi, low
	}
	i := q.head & uint32(len(q.buf)-1)
	f := &q.buf[i]
	q.head++
	next := q.at(q.head).at // whether there is a frame is decided without a branch
	if q.head == q.sent {
		next = never
	}
	from.due = min(due, next)
	if x := &ports[e.portOf(v, f)]; x.free <= f.at && !x.waits {
		e.sendIdle(x, f)
	} else {
		e.serveUntil(x, q.buf[i:i+1], []uint64{0}, f.at)
	}
}

// sendIdle transmits a frame at an idle port, as serveEach would. Data and control frames differ in masks,
// not in branches: which kind comes next cannot be predicted.
func (e *engine) sendIdle(x *port, f *frame) {
	l := x.out
	ahead := f.ahead() // the class of the frame is decided without a branch
	size := f.size() & (ahead - 1)
	if (size^l.bytes)&(ahead-1) != 0 {
		l.measure(size)
	}
	q, lasts := &l.low, l.full
	if control := &l.hi; ahead != 0 {
		q = control
	}
	if ahead != 0 {
		lasts = l.small
	}
	l.size, l.lowBytes = size, int64(size)
	l.hops += int64(1 - ahead)
	l.peak = max(l.peak, int32(size))
	x.free = f.at + lasts
	at := x.free + l.delay
	i := q.tail
	if i-q.head == uint32(len(q.buf)) {
		q.grow()
	}
	q.sent, q.tail = i+1, i+1
	g := q.at(i)
	g.at, g.who, g.what = at, f.who, f.what
	if x.peer.due == never {
		e.arrives(x.peer, at)
	}
}

// portOf returns a frame's egress port at switch v of a two-tier network, hosts and leaves numbered first:
// the host's port at its leaf, the leaf's at a spine, and else the uplink of the frame's path.
func (e *engine) portOf(v int, f *frame) uint16 {
	to := e.goals[f.goal()]
	if v >= e.spines {
		return to.leaf
	}
	at := v - len(e.hosts)
	if at == int(to.leaf) {
		return to.port
	}
	if k := int(f.goal())*e.cfg.Paths + int(f.path())&(e.cfg.Paths-1); k < len(e.outs) && e.outs[k] != 0 {
		return uint16(e.outs[k]) - 1
	}
	return e.leaving(at, f) - 1
}
