package packet

import (
	"math/bits"
	"slices"

	"github.com/simccl/simccl/sim/wire/packet/internal/frames"
	"github.com/simccl/simccl/sim/wire/packet/internal/instant"
	"github.com/simccl/simccl/sim/wire/packet/internal/memory"
	"github.com/simccl/simccl/sim/wire/packet/internal/parted"
	"github.com/simccl/simccl/sim/wire/packet/internal/streams"
)

// swtch is a switch: its shared buffer is accounted for by ingress port and
// class, its queues are those of its links out.
type swtch struct {
	node    int32
	late    bool    // its windows are later
	riding  bool    // trains are among what arrived
	in, out []int32 // links, by port
	memory.Memory
	apart    bool     // what arrived is in the worker's parts
	arrived  []frame  // of this window, port by port
	from     []uint16 // with EventOrder: the port of each
	busy     []uint64 // bits of ports, all of those that have frames
	control  []uint64 // bits of ports by which control frames leave that arrived in this window
	soon     int64    // in careful: none of them starts one before
	flowlets []flowlet
	draws    uint64 // of paths
	spare    *frames.Piece
	direct   []int32  // links out that have a feeder
	trains   []uint64 // bits of ports by which trains leave that arrived in this window
}

// pull takes what arrives at a switch before end off the links, and returns how
// many frames that are. If it may it puts them apart at once by the ports by which they leave.
func (e *engine) pull(w *worker, s *swtch, end int64, apart bool) int {
	arrived := s.arrived[:0]
	s.from, s.Total, s.apart = s.from[:0], 0, apart && !e.picky && e.cfg.Buffer.Credits == 0 && s.Quiet()
	// By link, as they arrive.
	s.begin(w)
	for from := 0; from < len(s.in); from += 64 {
		for some := parted.BeforeOf(e.due, s.in[from:min(from+64, len(s.in))], end); some != 0; some &= some - 1 {
			p := from + bits.TrailingZeros64(some)
			l := &e.links[s.in[p]]
			if l.trains > 0 {
				arrived, s.Arriving[p] = e.takeTrains(w, s, l, uint16(p), end, arrived)
			} else {
				arrived, s.Arriving[p] = e.take(w, s, l, uint16(p), end, arrived)
			}
			e.due[l.id] = l.wire.First()
			s.Total += s.Arriving[p]
		}
	}
	s.arrived = arrived
	if s.apart {
		w.End()
	}
	if e.cfg.Buffer.Credits > 0 {
		for p, id := range s.out {
			tag := uint32(p)
			if e.ordered {
				tag = uint32(instant.None)
			}
			s.arrived = e.links[id].returns.Take(tag, end, s.arrived)
			for len(s.from) < len(s.arrived) {
				s.from = append(s.from, uint16(p))
			}
		}
	}
	return len(s.arrived)
}

// begin begins a window.
func (s *swtch) begin(w *worker) {
	if clear(s.Arriving); s.apart {
		w.Begin(len(s.out))
		clear(s.control)
	}
}

// take appends what arrives over a link before end, and returns how many bytes that are. It goes over
// the frames once for each thing that is to be done: so little of it stays in registers.
func (e *engine) take(w *worker, s *swtch, l *link, port uint16, end int64, arrived []frame) (all []frame, bytes int64) {
	n := len(arrived)
	arrived, bytes = l.wire.Move(end, arrived)
	for i := n; l.lossy && i < len(arrived); i++ {
		if f := &arrived[i]; e.lose(w, l, f) {
			bytes -= int64(f.Size)
			arrived = slices.Delete(arrived, i, i+1)
			i--
		}
	}
	if e.ordered {
		s.from = slices.Grow(s.from, len(arrived)-len(s.from))[:len(arrived)]
		for i := n; i < len(s.from); i++ {
			s.from[i] = port
		}
	} else {
		for i := n; i < len(arrived); i++ {
			arrived[i].Tag = uint32(port)
		}
	}
	if s.apart {
		e.sort(w, s, arrived, n, port, end-e.look)
	}
	return arrived, bytes
}

// lose draws whether the next frame of a link is lost.
func (e *engine) lose(w *worker, l *link, f *frame) bool {
	l.arrivals++
	if l.drawn {
		if f.Flags&flagLost == 0 {
			return false
		}
	} else if streams.Hash(e.cfg.Seed, l.id, streams.Loss, l.arrivals) >= l.loss {
		return false
	}
	w.Lost++
	l.port.drops++
	return true
}

// runSwitch simulates a switch up to end.
func (e *engine) runSwitch(w *worker, s *swtch, end int64) {
	if e.ordered {
		e.started(w, e.itself(s.node))
	}
	switch calm := s.Calm(); {
	case !calm:
		e.careful(w, s, e.whole(w, s, end-e.look), end)
	case e.picky:
		e.choosing(w, s, e.whole(w, s, end-e.look), end)
	default:
		e.quick(w, s, end)
	}
	if e.cfg.Watchdog.After > 0 {
		e.watch(w, s, end)
	}
}

// quick simulates a window in which ports do not influence each other: port by
// port, each in the order of time.
func (e *engine) quick(w *worker, s *swtch, end int64) {
	if e.part(w, s, end-e.look); s.riding {
		e.carryTrains(w, s, end)
	}
	for i, some := range s.busy {
		for some |= w.Used[i]; some != 0; some &= some - 1 {
			p := 64*i + bits.TrailingZeros64(some)
			l := &e.links[s.out[p]]
			keys := e.leaving(w, s, p)
			if e.classes == 2 && !l.odd && (l.paused|l.waiting&1) == 0 && s.control[i]>>(p%64)&1 == 0 {
				e.express(w, s, l, keys, end)
				continue
			}
			for _, key := range keys {
				if f, n := s.enter(e, key&parted.Place); f.Flow < 0 {
					e.pfcAtSwitch(w, s, f, n)
				} else {
					e.onto(w, s, l, f, n)
				}
			}
			for l.waiting&^l.paused != 0 && l.free < end {
				e.completed(w, l)
				e.dequeue(w, s, l, l.free)
			}
			if l.waiting == 0 {
				s.busy[i] &^= 1 << (p % 64)
			}
		}
	}
}

// onto puts a frame onto the port by which it leaves, at its time.
func (e *engine) onto(w *worker, s *swtch, l *link, f *frame, n instant.Number) {
	for l.waiting&^l.paused != 0 && l.free < f.At {
		e.completed(w, l)
		e.dequeue(w, s, l, l.free)
	}
	if e.ordered {
		if l.free == f.At && l.waiting&^l.paused != 0 && l.free-l.start > e.travel(s.in[f.Tag], f.Size) {
			e.completed(w, l)
			e.dequeue(w, s, l, l.free)
		}
		e.arrived(w, n)
	}
	if l.waiting == 0 && l.free < f.At && l.paused>>f.Class&1 == 0 {
		l.peak = max(l.peak, int64(f.Size))
		if f.Class != 0 {
			l.turn = f.Class
		}
		e.transmit(w, l, f, f.At, 0)
		return
	}
	if f.Class != 0 {
		e.trim(w, l, f)
	}
	if f.Class != 0 {
		s.Add(f.Tag, f.Class, int64(f.Size))
	}
	e.enqueue(w, s, l, f)
}

// choosing is quick where frames choose their ports by what waits there: all ports
// in the order of time.
func (e *engine) choosing(w *worker, s *swtch, order []uint64, end int64) {
	for _, key := range order {
		f, n := s.enter(e, key&parted.Place)
		if f.Flow < 0 {
			e.pfcAtSwitch(w, s, f, n)
			continue
		}
		if l := e.leave(w, s, f); l != nil {
			e.onto(w, s, l, f, n)
		}
	}
	for _, id := range s.out {
		l := &e.links[id]
		for l.waiting&^l.paused != 0 && l.free < end {
			e.completed(w, l)
			e.dequeue(w, s, l, l.free)
		}
	}
}

// pfcAtSwitch pauses or resumes the port by which a PFC frame came.
func (e *engine) pfcAtSwitch(w *worker, s *swtch, f *frame, n instant.Number) {
	l := &e.links[s.out[f.Tag]]
	for l.waiting&^l.paused != 0 && l.free < f.At {
		e.completed(w, l)
		e.dequeue(w, s, l, l.free)
	}
	e.arrived(w, n)
	before := l.paused
	e.pfc(w, l, f)
	l.note(before, f)
	s.soon = 0
	if l.waiting&^l.paused != 0 && l.free < f.At {
		e.dequeue(w, s, l, f.At)
	}
}

// pfc sets the paused classes of a link.
func (e *engine) pfc(w *worker, l *link, f *frame) {
	before := l.asked
	if f.Flags&flagPause != 0 {
		w.Pauses++
		l.port.pauses++
		l.asked |= 1 << f.Psn
	} else {
		l.asked &^= 1 << f.Psn
	}
	if before == 0 {
		l.port.since = f.At
	} else if l.asked == 0 {
		l.port.paused += f.At - l.port.since
	}
	l.hold()
}

// hold sets the classes that may not start a frame.
func (l *link) hold() {
	l.paused = l.asked
	if l.storm {
		l.paused = ^uint16(1)
	}
}

// enqueue puts a frame into its egress queue and starts it if the link is idle.
func (e *engine) enqueue(w *worker, s *swtch, l *link, f *frame) {
	q := &l.q[f.Class]
	q.Pass(f, f.At, f.Tag, &s.spare)
	l.waiting |= 1 << f.Class
	s.busy[l.fromPort/64] |= 1 << (l.fromPort % 64)
	s.soon = min(s.soon, l.free)
	if l.odd {
		if l.credit != nil {
			e.gate(l, f.At)
		}
		if e.cfg.MarkAtEnqueue {
			e.markQueued(w, l, q)
		}
	}
	q.bytes += int64(f.Size)
	l.peak = max(l.peak, q.bytes)
	if l.free < f.At && l.waiting&^l.paused != 0 {
		e.dequeue(w, s, l, f.At)
	}
}

// dequeue starts the next frame of a link whose port is free.
func (e *engine) dequeue(w *worker, s *swtch, l *link, at int64) {
	c := frames.InTurn(l.waiting&^l.paused, &l.turn, e.classes)
	q := &l.q[c]
	f := q.Front()
	if q.Pop(&s.spare); q.Empty() {
		l.waiting &^= 1 << c
	}
	q.bytes -= int64(f.Size)
	if l.odd && l.hol != nil && l.hol.To > f.At && f.Flow >= 0 && e.tables == nil && e.hostOf[l.to] < 0 {
		l.hol.Delayed(f.Flow, e.hops[f.Route+1], f.At)
	}
	if e.cfg.Buffer.Credits > 0 {
		e.links[s.in[f.Tag]].repay(f, at)
	} else if c != 0 {
		e.release(w, s, f, at)
	}
	e.transmit(w, l, f, at, q.bytes)
	if l.odd && l.credit != nil {
		e.gate(l, at)
	}
}

// transmit marks a frame by the queue that it leaves behind and puts it on the
// cable.
func (e *engine) transmit(w *worker, l *link, f *frame, at, behind int64) {
	if l.marks && behind > l.alert && f.Class != 0 {
		e.mark(w, l, f, behind)
	}
	if f.Flags&(flagAck|flagTrim) == 0 && f.Flow >= 0 {
		w.DataPacketHops++
		if e.given != nil {
			l.data += int64(f.Size)
		}
		if e.cfg.CC.Kind == HPCC && l.q != nil {
			e.stamp(l, f, at)
		}
	}
	if l.odd {
		e.odd(l, f, at)
	}
	l.sent++
	l.txBytes += int64(f.Size)
	tag := instant.Number(0)
	if e.ordered {
		l.start, l.begun = at, w.Sent(at, l.id, l.wire.Tail)
		tag = l.begun
	}
	what := f.Flags & flagAck
	if l.sizes[what] != f.Size {
		e.measure(l, what, f.Size)
	}
	l.free = at + l.lasts[what]
	if l.wire.Empty() {
		e.due[l.id] = l.free + l.delay
	}
	if l.wire.Full() {
		l.wire.Grow()
	}
	l.wire.Next().Set(f, l.free+l.delay, uint32(tag))
}

// odd does what few links do with a frame that begins.
func (e *engine) odd(l *link, f *frame, at int64) {
	if l.pint != nil {
		e.pintStamp(l, f, at)
	}
	if l.credit != nil {
		l.spend(f)
	}
}

// markQueued marks the last frame of a queue, or draws whether to, by what waits before it.
func (e *engine) markQueued(w *worker, l *link, q *queue) {
	f := q.Back()
	if l.queued++; !l.marks || f.Class == 0 || f.Flags&flagAck != 0 || q.bytes <= l.kMin {
		return
	}
	if q.bytes <= l.kMax && streams.Hash(e.cfg.Seed, l.id, streams.Mark, l.queued) >= l.pMax*float64(q.bytes-l.kMin)/float64(l.kMax-l.kMin) {
		return
	}
	f.Flags |= flagCE
	w.Marks++
	l.port.marks++
}

// mark marks a data frame that leaves so much behind, or draws whether to.
func (e *engine) mark(w *worker, l *link, f *frame, behind int64) {
	if w.again = true; !e.ordered && e.cfg.EventOrder {
		w.deepest = max(w.deepest, float64(behind)/float64(l.kMin))
		return
	}
	if behind <= l.kMin {
		return
	}
	if behind <= l.kMax {
		p := l.pMax * float64(behind-l.kMin) / float64(l.kMax-l.kMin)
		if e.streams != nil {
			if w.P, w.Drawing = p, true; f.Flags&flagAck != 0 {
				w.P = 0 // a number is drawn, too
			}
			return
		}
		if streams.Hash(e.cfg.Seed, l.id, streams.Mark, l.sent) >= p {
			return
		}
	}
	if f.Flags&flagAck == 0 {
		f.Flags |= flagCE
		w.Marks++
		l.port.marks++
	}
}
