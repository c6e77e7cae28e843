package uec

import (
	"math/bits"

	"github.com/simccl/simccl/sim/wire/packet/internal/parted"
)

// few is as many frames as a switch takes off its links one by one.
const few = 16

// runCalm is runSwitch where few frames arrive: each goes on to its port alone, in the order of time, and then of
// the ports at which they arrive. Where spines draw tables, that is another order than theirs.
func (e *engine) runCalm(v int, n *node, end int64) (busy int, ok bool) {
	keys, from, frames := e.keys[:0], end-e.span, uint32(0)
	due, exits := e.due[n.first:n.first+n.ports], e.exits[n.first:n.first+n.ports]
	for w, some := range e.come[n.word : n.word+n.words()] {
		for ; some != 0; some &= some - 1 {
			port := 64*w + bits.TrailingZeros64(some)
			if due[port] >= end {
				continue
			}
			l := &e.links[exits[port].back]
			if frames += l.low.sent - l.low.head + l.hi.sent - l.hi.head; frames > few {
				return 0, false
			}
			keys = append(keys, parted.Key(due[port]-from, port))
		}
	}
	for keys = parted.Sort(keys); len(keys) > 0; busy++ {
		port := int32(keys[0] & parted.Place)
		if at := e.forward(v, n, port); at < end {
			replace(keys, parted.Key(at-from, int(port)))
		} else {
			keys = keys[1:]
		}
	}
	for w, some := range e.goes[n.word : n.word+n.words()] {
		for ; some != 0; some &= some - 1 {
			if port := 64*w + bits.TrailingZeros64(some); exits[port].free < end {
				e.onto(n.first+int32(port), nil, nil, end)
			}
		}
	}
	return busy, true
}

// replace puts another key in the place of the first of some in order.
func replace(keys []uint64, key uint64) {
	i := 1
	for ; i < len(keys) && keys[i] < key; i++ {
		keys[i-1] = keys[i]
	}
	keys[i-1] = key
}

// forward takes the first frame that arrives at a port of a switch, and gives it to that by which it leaves. It returns
// when the next one arrives.
func (e *engine) forward(v int, n *node, port int32) int64 {
	k := n.first + port
	l := &e.links[e.exits[k].back]
	q, due := &l.low, l.hi.comes()
	if low := l.low.comes(); due < low {
		q, due = &l.hi, low
	}
	i := q.head & uint32(len(q.buf)-1)
	f := &q.buf[i]
	q.head++
	switch q.head {
	case q.tail:
		q.head, q.sent, q.tail = 0, 0, 0
	case q.sent:
	default:
		due = min(due, q.at(q.head).at)
	}
	if e.due[k] = due; due == never {
		e.come[n.word+port>>6] &^= 1 << (port & 63)
	}
	to := n.first + int32(e.portOf(v, f))
	if x := &e.exits[to]; x.free < f.at && !x.waits {
		e.through(x, &e.links[to], f)
	} else {
		e.onto(to, q.buf[i:i+1], []uint64{0}, f.at)
	}
	return due
}

// through starts a frame at a port that has no other, as work does.
func (e *engine) through(x *exit, l *link, f *frame) {
	q, size := &l.low, f.size()
	l.lowBytes = int64(size)
	if f.has(flagsAhead) {
		q, size = &l.hi, 0
		l.lowBytes = 0
	}
	l.peak = max(l.peak, int32(size))
	x.free = f.at + l.begin(size)
	at := x.free + l.delay
	i := q.tail
	if i-q.head == uint32(len(q.buf)) {
		q.grow()
	}
	q.sent, q.tail = i+1, i+1
	g := q.at(i)
	g.at, g.who, g.what = at, f.who, f.what
	if due := &e.due[x.back]; *due == never {
		*due = at
		e.come[x.there/64] |= 1 << (x.there % 64)
	}
}

// portOf is the port by which a frame leaves a switch of two tiers.
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
