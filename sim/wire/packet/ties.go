package packet

import "github.com/simccl/simccl/sim/wire/packet/internal/instant"

// With Config.EventOrder what happens at one instant happens in the order in which it
// was planned (package instant).

// planned is where a pause of pacing was planned.
type planned struct {
	at    int64
	begun int64 // as that of a link
	rank  uint32
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
		w.Age, w.Source, w.Parent = uint32(e.travel(link, f.size)/1000), uint32(f.rank), -1
	}
}

// completed says that the frame in transmission ends.
func (e *engine) completed(w *worker, l *link) {
	if e.ordered {
		w.Age, w.Source, w.Parent = uint32((l.free-l.start)/1000), l.rank, w.Place(l.begun)
	}
}

// woken says that a pause of pacing ends.
func (e *engine) woken(w *worker, h *host, now int64) {
	if p := &h.planned; e.ordered {
		w.Age, w.Source, w.Parent = uint32((now-p.at)/1000), p.rank, w.Place(p.begun)
	}
}

// started says that a flow starts.
func (w *worker) started(flow int32) { w.Age, w.Source, w.Parent = instant.Oldest, uint32(flow), -1 }

// notice is for how long, in ps, the arrival of an acknowledgement was planned; without
// EventOrder longer than any timer.
func (e *engine) notice(w *worker) int64 {
	if !e.ordered {
		return never
	}
	return 1000 * int64(w.Age)
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
	l.begun = w.Note(at, l.id, l.wire.tail, instant.Sent)
}

// await takes note of a host that waits for its pacing from now on.
func (e *engine) await(w *worker, h *host, now int64) {
	if e.ordered {
		h.planned = planned{now, w.Note(now, e.hostOf[h.node], 0, instant.Slept), 0}
	}
}

// skip takes note of a number that is drawn for a PFC frame.
func (e *engine) skip(w *worker, at int64, what uint8) {
	if e.ordered && e.streams != nil {
		w.Skip(at, what)
	}
}

// endsFirst says that of two frames whose transmissions end at one instant one's is first.
func (w *worker) endsFirst(a, b *link) bool {
	x, y := w.Place(a.begun), w.Place(b.begun)
	switch {
	case a.start != b.start:
		return a.start < b.start
	case x < 0 || y < 0:
		return a.rank < b.rank
	}
	return w.First(x, y)
}

// openCalendars makes the calendars of all workers.
func (e *engine) openCalendars() {
	for i := range e.workers {
		c := &e.workers[i].Calendar
		c.Open(e.look)
		e.ranker.Calendars = append(e.ranker.Calendars, c)
	}
	e.ranker.Ranked = e.ranked
}

// beginWindow begins the calendars of a window.
func (e *engine) beginWindow(from int64) {
	for i := range e.workers {
		e.workers[i].Begin(from)
	}
}

// ranked takes the rank of a frame, and draws whether the frame is marked.
func (e *engine) ranked(c *instant.Calendar, n int32, rank uint32) {
	b, number := c.At(n), c.Base+int64(n)
	switch b.What {
	case instant.Slept:
		if h := &e.hosts[b.Link]; h.planned.begun == number {
			h.planned.rank = rank
		}
		return
	case instant.Paused, instant.Resumed:
		e.streams.Skip()
		return
	}
	l := &e.links[b.Link]
	if l.begun == number {
		l.rank = rank
	}
	f := &l.wire.buf[b.Wire&uint32(len(l.wire.buf)-1)]
	f.rank = uint16(min(rank, 1<<16-1))
	if b.Drawn && e.streams.Draw() < c.Chance(n) && f.flags&flagAck == 0 {
		f.flags |= flagCE
		e.workers[0].marks++
		l.port.marks++
	}
}
