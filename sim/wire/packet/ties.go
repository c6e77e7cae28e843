package packet

import (
	"cmp"
	"math/bits"
	"slices"
)

// A simulator with a queue of events lets what happens at one instant happen in the
// order in which it was planned. Config.EventOrder finds that order without a queue:
// an event is planned while another happens, so two events of an instant come in the
// order of the two in which they were planned, and if these happened at one instant
// too, in theirs. What a network plans is planned when a frame begins: its end, its
// arrival; and when pacing lets nothing be sent: the end of that pause. So it is
// enough to rank those of one instant, over all links: at the end of a window, in
// the order of time, each by the age of the event in which it happens and the rank of
// what planned that event. What is alone at its instant has rank 0.

// oldest is the age of what was planned before all frames.
const oldest = ^uint32(0)

// longest is the longest window with EventOrder, in ns.
const longest = 1 << 16

// cause is the event that happens.
type cause struct {
	age    uint32 // ns since it was planned
	source uint32 // rank of what planned it
	parent int32  // that, if it was in this window: its place in begun; otherwise -1
}

// planned is where a pause of pacing was planned.
type planned struct {
	at    int64
	begun int64 // as that of a link
	rank  uint32
}

// begun is what planned something in this window: a frame that began, or a pause of
// pacing; or a number that was drawn for a PFC frame.
type begun struct {
	cause        // once it has its rank, that is its source
	link  int32  // of a pause of pacing: which host
	wire  uint32 // its place on the link
	next  int32  // of the same instant
	what  uint8
	drawn bool // its number is drawn for a mark with the next of chances
	_     uint16
}

// What an event does, in its order.
const (
	paused  uint8 = iota // it draws the identification of a PFC frame
	sent                 // a frame begins
	slept                // pacing begins to wait
	resumed              // as paused
)

// calendar is what began in a window, by ns.
type calendar struct {
	cause         // what happens now
	base    int64 // how much began before this window
	from    int64 // where the window begins
	begun   []begun
	spans   []span   // by ns
	used    []uint64 // bits of those that are not empty
	draws   []uint64 // bits of those in which a number is drawn
	chances []chance
	chance  float64 // of the frame that begins, that it is marked, if drawing
	drawing bool
}

// chance is with what probability a frame, by its place in begun, is marked.
type chance struct {
	n int32
	p float64
}

// span is the first and the last of an instant.
type span struct{ head, tail int32 }

// open makes a calendar for windows of so many ps.
func (c *calendar) open(look int64) {
	c.spans = make([]span, look/1000+1)
	c.used, c.draws = make([]uint64, len(c.spans)/64+1), make([]uint64, len(c.spans)/64+1)
}

// note takes note of what began at a time by the event that happens now.
func (c *calendar) note(at int64, link int32, wire uint32, what uint8) int64 {
	n, i := len(c.begun), uint64(max(0, at-c.from))/1000
	if n == cap(c.begun) {
		c.begun = slices.Grow(c.begun, 1+n)
	}
	c.begun = c.begun[:n+1]
	b := &c.begun[n]
	b.age, b.source, b.parent = c.age, c.source, c.parent
	b.link, b.wire, b.next, b.what, b.drawn = link, wire, -1, what, c.drawing
	if c.drawing {
		c.draws[i/64] |= 1 << (i % 64)
		c.chances = append(c.chances, chance{int32(n), c.chance})
		c.drawing = false
	}
	if s := &c.spans[i]; c.used[i/64]>>(i%64)&1 == 0 {
		c.used[i/64] |= 1 << (i % 64)
		s.head, s.tail = int32(n), int32(n)
	} else {
		c.begun[s.tail].next = int32(n)
		s.tail = int32(n)
	}
	return c.base + int64(n)
}

// travel is how long, in ps, a frame is on its way over a link.
func (e *engine) travel(id int32, size uint16) int64 {
	l := &e.links[id]
	switch size {
	case e.full:
		return l.delay + l.whole
	case e.ack:
		return l.delay + l.ack
	}
	return l.delay + e.lasts(int(size), l.rate)
}

// arrived says that a frame arrives over a link.
func (e *engine) arrived(w *worker, link int32, f *frame) {
	if e.ordered {
		w.age, w.source, w.parent = uint32(e.travel(link, f.size)/1000), uint32(f.rank), -1
	}
}

// completed says that the frame in transmission ends.
func (e *engine) completed(w *worker, l *link) {
	if e.ordered {
		w.age, w.source, w.parent = uint32((l.free-l.start)/1000), l.rank, int32(max(l.begun-w.base, -1))
	}
}

// woken says that a pause of pacing ends.
func (e *engine) woken(w *worker, h *host, now int64) {
	if p := &h.planned; e.ordered {
		w.cause = cause{age: uint32((now - p.at) / 1000), source: p.rank, parent: int32(max(p.begun-w.base, -1))}
	}
}

// notice is for how long, in ps, the arrival of an acknowledgement was planned; without
// EventOrder longer than any timer.
func (e *engine) notice(w *worker) int64 {
	if !e.ordered {
		return never
	}
	return 1000 * int64(w.cause.age)
}

// wakesFirst says that pacing ends before a frame that comes at that instant.
func (e *engine) wakesFirst(h *host, f *frame) bool {
	return e.ordered && h.wake-h.planned.at > e.travel(h.in, f.size)
}

// later says that of two frames that arrived at a switch at one instant the one by the
// earlier port comes later.
func (e *engine) later(s *swtch, a, b *frame) bool {
	if !e.ordered {
		return false
	}
	if x, y := e.travel(s.in[a.port], a.size), e.travel(s.in[b.port], b.size); x != y {
		return x < y
	}
	return a.rank > b.rank
}

// began takes note of a frame that begins on a link.
func (w *worker) began(l *link, at int64) {
	l.start, l.rank = at, 0
	l.begun = w.note(at, l.id, l.wire.tail, sent)
}

// await takes note of a host that waits for its pacing from now on.
func (e *engine) await(w *worker, h *host, now int64) {
	if e.ordered {
		h.planned.at, h.planned.rank = now, 0
		h.planned.begun = w.note(now, e.hostOf[h.node], 0, slept)
	}
}

// skip takes note of a number that is drawn for a PFC frame.
func (e *engine) skip(w *worker, at int64, what uint8) {
	if e.ordered && e.streams != nil {
		before := w.drawing // for the frame that begins in the same event
		w.drawing = true
		w.note(at, -1, 0, what)
		w.drawing = before
	}
}

// endsFirst says that of two frames whose transmissions end at one instant one's is first.
func (w *worker) endsFirst(a, b *link) bool {
	x, y := a.begun-w.base, b.begun-w.base
	switch {
	case a.start != b.start:
		return a.start < b.start
	case x < 0 || y < 0:
		return a.rank < b.rank
	}
	return w.first(int32(x), int32(y))
}

// first says that of two that began at one instant of this window one was first.
func (w *worker) first(a, b int32) bool {
	for {
		x, y := &w.begun[a], &w.begun[b]
		switch {
		case x.age != y.age:
			return x.age > y.age
		case x.parent < 0 || y.parent < 0:
			return x.source < y.source
		case x.parent == y.parent:
			return a < b
		}
		a, b = x.parent, y.parent
	}
}

// tied is what began at an instant.
type tied struct {
	key uint64 // in the order of events
	n   int32  // its place in begun
	w   int32
}

// open begins the calendars of a window.
func (e *engine) openWindow(from int64) {
	for i := range e.workers {
		e.workers[i].from = from
	}
}

// closeWindow ranks what began in a window, and draws marks.
func (e *engine) closeWindow() {
	for k := range e.workers[0].used {
		var all, draws uint64
		for i := range e.workers {
			all |= e.workers[i].used[k]
			draws |= e.workers[i].draws[k]
		}
		for ; all != 0; all &= all - 1 {
			i := bits.TrailingZeros64(all)
			if w := &e.workers[0]; len(e.workers) == 1 && draws>>i&1 == 0 && w.spans[64*k+i].head == w.spans[64*k+i].tail {
				w.begun[w.spans[64*k+i].head].source = 0
				continue
			}
			e.instant(64*k + i)
		}
	}
	for i := range e.workers {
		c := &e.workers[i].calendar
		c.base += int64(len(c.begun))
		c.begun, c.chances = c.begun[:0], c.chances[:0]
		clear(c.used)
		clear(c.draws)
	}
}

// instant ranks what began at an instant.
func (e *engine) instant(at int) {
	t := e.ties[:0]
	for i := range e.workers {
		w := &e.workers[i]
		if w.used[at/64]>>(at%64)&1 == 0 {
			continue
		}
		for n := w.spans[at].head; n >= 0; {
			b := &w.begun[n]
			source := b.source
			if b.parent >= 0 {
				source = w.begun[b.parent].source
			}
			x := tied{uint64(^b.age)<<32 | uint64(source)<<2 | uint64(b.what), n, int32(i)}
			j := len(t)
			t = append(t, x)
			for ; j > 0 && x.key < t[j-1].key; j-- {
				t[j] = t[j-1]
			}
			t[j] = x
			n = b.next
		}
	}
	for rank := range t {
		e.ranked(&e.workers[t[rank].w], t[rank].n, uint32(rank))
	}
	e.ties = t
}

// ranked tells a frame and its link the rank, and draws whether the frame is marked.
func (e *engine) ranked(w *worker, n int32, rank uint32) {
	b, id := &w.begun[n], w.base+int64(n)
	b.source, b.parent = rank, -1
	switch b.what {
	case slept:
		if h := &e.hosts[b.link]; h.planned.begun == id {
			h.planned.rank = rank
		}
		return
	case paused, resumed:
		e.streams.Skip()
		return
	}
	if rank == 0 && !b.drawn {
		return
	}
	l := &e.links[b.link]
	if l.begun == id {
		l.rank = rank
	}
	f := &l.wire.buf[b.wire&uint32(len(l.wire.buf)-1)]
	f.rank = uint16(min(rank, 1<<16-1))
	if b.drawn && e.streams.Draw() < w.likelihood(n) && f.flags&flagAck == 0 {
		f.flags |= flagCE
		e.workers[0].marks++
		l.port.marks++
	}
}

// likelihood is the chance of a mark.
func (c *calendar) likelihood(n int32) float64 {
	i, _ := slices.BinarySearchFunc(c.chances, n, func(x chance, n int32) int { return cmp.Compare(x.n, n) })
	return c.chances[i].p
}
