package packet

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/sim/wire/packet/internal/streams"
)

// A simulator with a queue of events lets what happens at one instant happen in the
// order in which it was planned. Config.EventOrder finds that order without a queue:
// an event is planned while another happens, so two events of an instant come in the
// order of the two in which they were planned, and if these happened at one instant
// too, in theirs. What a network plans is planned when a frame begins: its end, its
// arrival; and when pacing lets nothing be sent: the end of that pause. So it is
// enough to rank those of one instant, over all links: at the end of a window, in
// the order of time, each by the age of the event in which it happens and the rank of
// what planned that event.

// oldest is the age of what was planned before all frames.
const oldest = ^uint32(0)

// cause is the event that happens.
type cause struct {
	age    uint32 // ns since it was planned
	rank   uint32 // of what planned it
	parent int32  // that, if it was in this window: its place in begun; otherwise -1
}

// planned is where a pause of pacing was planned.
type planned struct {
	at    int64
	begun int32 // as that of a link
	rank  uint32
}

// begun is what planned something in this window: a frame that began, or a pause of
// pacing; or a number that was drawn for a PFC frame.
type begun struct {
	at    int64
	link  int32  // of a pause of pacing: which host
	wire  uint32 // its place on the link
	cause cause
	mark  int32 // its chance is that before this one in marks; 0: none
	what  uint8
	rank  uint32
}

// What an event does, in its order.
const (
	paused  uint8 = iota // it draws the identification of a PFC frame
	sent                 // a frame begins
	slept                // pacing begins to wait
	resumed              // as paused
)

// travel is how long, in ps, a frame is on its way over a link.
func (e *engine) travel(id int32, size uint16) int64 {
	l := &e.links[id]
	switch int(size) {
	case e.cfg.Frames.Payload + e.cfg.Frames.Header:
		return l.delay + l.whole
	case e.cfg.Frames.Ack:
		return l.delay + l.ack
	}
	return l.delay + e.lasts(int(size), l.rate)
}

// arrived says that a frame arrives over a link.
func (e *engine) arrived(w *worker, link int32, f *frame) {
	if e.cfg.EventOrder {
		w.cause = cause{age: uint32(e.travel(link, f.size) / 1000), rank: uint32(f.rank), parent: -1}
	}
}

// completed says that the frame in transmission ends.
func (e *engine) completed(w *worker, l *link) {
	if e.cfg.EventOrder {
		w.cause = cause{age: uint32((l.free - l.start) / 1000), rank: l.rank, parent: l.begun}
	}
}

// woken says that a pause of pacing ends.
func (e *engine) woken(w *worker, h *host, now int64) {
	if e.cfg.EventOrder {
		w.cause = cause{age: uint32((now - h.planned.at) / 1000), rank: h.planned.rank, parent: h.planned.begun}
	}
}

// notice is for how long, in ps, the arrival of an acknowledgement was planned; without
// EventOrder longer than any timer.
func (e *engine) notice(w *worker) int64 {
	if !e.cfg.EventOrder {
		return never
	}
	return 1000 * int64(w.cause.age)
}

// wakesFirst says that pacing ends before a frame that comes at that instant.
func (e *engine) wakesFirst(h *host, f *frame) bool {
	return e.cfg.EventOrder && h.wake-h.planned.at > e.travel(h.in, f.size)
}

// later says that a frame that arrived at a switch comes after another that arrived
// by a later port.
func (e *engine) later(s *swtch, a, b *frame) bool {
	if a.at != b.at || !e.cfg.EventOrder {
		return a.at > b.at
	}
	if x, y := e.travel(s.in[a.port], a.size), e.travel(s.in[b.port], b.size); x != y {
		return x < y
	}
	return a.rank > b.rank
}

// note takes note of a frame that begins on a link.
func (w *worker) note(l *link, at int64) {
	l.start = at
	l.begun = int32(len(w.begun))
	w.begun = append(w.begun, begun{at: at, link: l.id, wire: l.wire.tail, cause: w.cause, mark: w.marked, what: sent})
	w.marked = 0
}

// plan takes note of a host that waits for its pacing from now on.
func (w *worker) plan(e *engine, h *host, now int64) {
	h.planned.at, h.planned.begun = now, int32(len(w.begun))
	w.begun = append(w.begun, begun{at: now, link: e.hostOf[h.node], cause: w.cause, what: slept})
}

// endsFirst says that of two frames whose transmissions end at one instant one's is first.
func (w *worker) endsFirst(a, b *link) bool {
	switch {
	case a.start != b.start:
		return a.start < b.start
	case a.begun < 0 || b.begun < 0:
		return a.rank < b.rank
	}
	return w.first(a.begun, b.begun)
}

// first says that of two that began at one instant of this window one was first.
func (w *worker) first(a, b int32) bool {
	for {
		x, y := &w.begun[a].cause, &w.begun[b].cause
		switch {
		case x.age != y.age:
			return x.age > y.age
		case x.parent < 0 || y.parent < 0:
			return x.rank < y.rank
		case x.parent == y.parent:
			return a < b
		}
		a, b = x.parent, y.parent
	}
}

// losses are links whose losses are drawn in turn from one stream.
type losses struct {
	links    []int32
	numbers  streams.Numbers
	arriving []arriving // scratch
}

// arriving is a frame that arrives in this window.
type arriving struct {
	at, travel int64
	link       int32
	wire       uint32
	rank       uint16
}

func (e *engine) buildLosses() {
	all := losses{numbers: streams.NewNumbers(e.cfg.LossStream, e.cfg.Seed)}
	for i := range e.net.Cables {
		c := &e.net.Cables[i]
		if c.Loss == 0 {
			continue
		}
		both := []int32{int32(2 * i), int32(2*i + 1)}
		e.links[2*i].drawn, e.links[2*i+1].drawn = true, true
		if c.SharedLoss {
			all.links = append(all.links, both...)
		} else {
			e.losses = append(e.losses, losses{links: both, numbers: all.numbers})
		}
	}
	if all.links != nil {
		e.losses = append(e.losses, all)
	}
}

// drawLosses draws which of the frames that arrive before end are lost, in the order of
// their arrival.
func (e *engine) drawLosses(end int64) {
	for i := range e.losses {
		d := &e.losses[i]
		d.arriving = d.arriving[:0]
		for _, id := range d.links {
			q := &e.links[id].wire
			for k := q.head; k != q.tail; k++ {
				f := &q.buf[k&uint32(len(q.buf)-1)]
				if f.at >= end {
					break
				}
				d.arriving = append(d.arriving, arriving{f.at, e.travel(id, f.size), id, k, f.rank})
			}
		}
		slices.SortStableFunc(d.arriving, func(a, b arriving) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.travel, a.travel), cmp.Compare(a.rank, b.rank))
		})
		for _, a := range d.arriving {
			if l := &e.links[a.link]; d.numbers.Draw() < l.loss {
				l.wire.buf[a.wire&uint32(len(l.wire.buf)-1)].flags |= flagLost
			}
		}
	}
}

// skip takes note of a number that is drawn for a PFC frame.
func (e *engine) skip(w *worker, at int64, what uint8) {
	if e.streams != nil {
		w.begun = append(w.begun, begun{at: at, link: -1, cause: w.cause, what: what})
	}
}

// sorter puts what began in a window in order.
type sorter struct {
	all   []begun
	marks []float64
	order []uint32
	room  [buckets + 1]uint32
}

// rank ranks the frames that began in a window, and draws their marks.
func (e *engine) rank(from int64) {
	k := &e.sorter
	k.all, k.marks = k.all[:0], k.marks[:0]
	for i := range e.workers {
		w := &e.workers[i]
		base, marks := int32(len(k.all)), int32(len(k.marks))
		k.all, k.marks = append(k.all, w.begun...), append(k.marks, w.chances...)
		for j := int(base); i > 0 && j < len(k.all); j++ {
			b := &k.all[j]
			if b.cause.parent >= 0 {
				b.cause.parent += base
			}
			if b.mark > 0 {
				b.mark += marks
			}
		}
		w.begun, w.chances = w.begun[:0], w.chances[:0]
	}
	k.sort(from, e.look)
	for i := 0; i < len(k.order); {
		n := k.instant(i)
		for r := range n {
			e.ranked(&k.all[k.order[i+r]], uint32(r))
		}
		i += n
	}
}

// ranked tells a frame and its link the rank, and draws whether the frame is marked.
func (e *engine) ranked(b *begun, rank uint32) {
	b.rank = rank
	switch b.what {
	case slept:
		e.hosts[b.link].planned.begun, e.hosts[b.link].planned.rank = -1, rank
		return
	case paused, resumed:
		e.streams.Skip()
		return
	}
	l := &e.links[b.link]
	l.rank, l.begun = rank, -1
	f := &l.wire.buf[b.wire&uint32(len(l.wire.buf)-1)]
	f.rank = uint16(min(rank, 1<<16-1))
	if b.mark > 0 && e.streams.Draw() < e.sorter.marks[b.mark-1] && f.flags&flagAck == 0 {
		f.flags |= flagCE
		e.workers[0].counters.marks++
		l.port.marks++
	}
}

// sort puts all in the order of time.
func (k *sorter) sort(from, span int64) {
	n := len(k.all)
	if cap(k.order) < n {
		k.order = make([]uint32, 2*n)
	}
	k.order = k.order[:n]
	clear(k.room[:])
	scale := (1 << 40) / uint64(span) << bucketBits
	for i := range k.all {
		k.room[uint64(k.all[i].at-from)*scale>>40+1]++
	}
	for i := 1; i < len(k.room); i++ {
		k.room[i] += k.room[i-1]
	}
	for i := range k.all {
		b := &k.room[uint64(k.all[i].at-from)*scale>>40]
		k.order[*b] = uint32(i)
		*b++
	}
	for i := 1; i < n; i++ {
		x, j := k.order[i], i-1
		for ; j >= 0 && k.all[k.order[j]].at > k.all[x].at; j-- {
			k.order[j+1] = k.order[j]
		}
		k.order[j+1] = x
	}
}

// instant puts what began at the instant of the i-th in the order of events, and
// returns how many these are. All that began before have their ranks.
func (k *sorter) instant(i int) int {
	at, n := k.all[k.order[i]].at, 1
	for ; i+n < len(k.order); n++ {
		x := k.order[i+n]
		b := &k.all[x]
		if b.at != at {
			break
		}
		j := i + n - 1
		for ; j >= i && k.before(b, &k.all[k.order[j]]); j-- {
			k.order[j+1] = k.order[j]
		}
		k.order[j+1] = x
	}
	return n
}

// before says that of two events of an instant one comes first.
func (k *sorter) before(a, b *begun) bool {
	if a.cause.age != b.cause.age {
		return a.cause.age > b.cause.age
	}
	return cmp.Or(cmp.Compare(k.from(a), k.from(b)), cmp.Compare(a.what, b.what)) < 0
}

// from is the rank of what planned an event.
func (k *sorter) from(b *begun) uint32 {
	if p := b.cause.parent; p >= 0 {
		return k.all[p].rank
	}
	return b.cause.rank
}
