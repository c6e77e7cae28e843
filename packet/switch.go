package packet

import (
	"math/bits"
	"slices"

	"github.com/simccl/simccl/packet/internal/arrivals"
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/port"
	"github.com/simccl/simccl/packet/internal/rng"
	"github.com/simccl/simccl/packet/internal/route"
	"github.com/simccl/simccl/packet/internal/tiebreak"
	"github.com/simccl/simccl/packet/spec"
	"github.com/simccl/simccl/units"
)

// switchNode is a switch. Its per-port queues belong to its outgoing links; its shared buffer counts bytes by
// ingress port and class.
type switchNode struct {
	node    int32
	late    bool    // its windows trail by engine.lag
	uniform bool    // incoming links are equally long and fast
	in, out []int32 // links, by port
	port.SharedBuffer
	bucketed   bool         // arrivals are already sorted by egress port, in the worker
	arrived    []frame      // arrivals of this window, by ingress port
	from       []uint16     // with EventOrder: the ingress port of each of arrived
	busy       []uint64     // bits: ports with queued frames
	control    []uint64     // bits: ports by which control frames leave in this window
	starts     *port.Starts // ports by their next start, in stepShared; else nil
	flowlets   []route.Flowlet
	draws      uint64 // path choices drawn so far
	spare      *frames.Piece
	bypassing  []int32 // outgoing links that the bypass feeds now
	bypassable []int32 // outgoing links that the bypass may ever feed
	cooldown   uint8   // windows until the bypass is tried again
}

// pull takes the frames that arrive at a switch before end off its links into arrived and returns their
// number. With bucket, where the order of ports is irrelevant, it sorts them by egress port on the way.
func (e *engine) pull(w *worker, s *switchNode, end int64, bucket bool) int {
	s.arrived = s.arrived[:0]
	s.from, s.Total, s.bucketed = s.from[:0], 0, bucket && !e.egressPerFrame && !e.cfg.Buffer.Timed() &&
		!e.noFastPath && s.Quiet()
	// arrivals are counted by link
	if clear(s.Arriving); s.bucketed {
		w.Begin(len(s.out))
		clear(s.control)
	}
	for from := 0; from < len(s.in) && e.cfg.CutThrough == 0; from += 64 {
		for some := arrivals.BeforeOf(e.due, s.in[from:min(from+64, len(s.in))], end); some !=
			0; some &= some - 1 {
			p := from + bits.TrailingZeros64(some)
			l := &e.links[s.in[p]]
			s.arrived, s.Arriving[p] = e.take(w, s, l, uint16(p), end, s.arrived)
			e.due[l.ID] = l.Wire.First()
			s.Total += s.Arriving[p]
		}
	}
	if s.bucketed {
		w.End()
	}
	if e.cfg.CutThrough > 0 {
		x := port.Heads{Config: e.cfg, Links: e.links, Due: e.due, Lose: func(l *link, f *frame) bool {
			return e.lose(w, l, f)
		}}
		if e.tables == nil {
			x.Hops = e.hops
		}
		s.arrived = x.Take(s.in, s.out, end, s.Arriving, s.arrived)
		for _, bytes := range s.Arriving {
			s.Total += bytes
		}
	}
	if e.cfg.Buffer.Timed() {
		for p, id := range s.out {
			tag := uint32(p)
			if e.ordered {
				tag = uint32(tiebreak.None)
			}
			s.arrived = e.links[id].Back(tag, end, s.arrived)
			for len(s.from) < len(s.arrived) {
				s.from = append(s.from, uint16(p))
			}
		}
	}
	return len(s.arrived)
}

// take appends the frames that arrive over link l before end to arrived, and returns their bytes. It makes
// one pass per task (move, lose, tag): short loops keep their state in registers.
func (e *engine) take(w *worker, s *switchNode, l *link, by uint16, end int64,
	arrived []frame) (all []frame, bytes int64) {
	n := len(arrived)
	arrived, bytes = l.Wire.Move(end, arrived)
	for i := n; l.Lossy && i < len(arrived); i++ {
		if f := &arrived[i]; e.lose(w, l, f) {
			bytes -= int64(f.Size)
			arrived = slices.Delete(arrived, i, i+1)
			i--
		}
	}
	if e.ordered {
		s.from = slices.Grow(s.from, len(arrived)-len(s.from))[:len(arrived)]
		for i := n; i < len(s.from); i++ {
			s.from[i] = by
		}
	} else {
		for i := n; i < len(arrived); i++ {
			arrived[i].Tag = uint32(by)
		}
	}
	if e.cfg.CC.Kind == HPCC {
		port.PrefetchRecords(arrived[n:], len(e.snd), &e.controls)
	}
	if s.bucketed {
		e.bucketFrames(w, s, arrived, n, by, end-e.lookahead)
	}
	return arrived, bytes
}

// lose draws whether a frame is lost on its cable. The draw depends only on the seed, the link and the
// frame's number on that link.
func (e *engine) lose(w *worker, l *link, f *frame) bool {
	lost := l.Loses(f, e.cfg.Seed)
	if lost {
		w.Lost++
	}
	return lost
}

// runSwitch simulates a switch up to end by the cheapest exact loop: port by port where no threshold of the
// shared buffer can be crossed, else all ports in the order of time.
func (e *engine) runSwitch(w *worker, s *switchNode, end int64) {
	if e.ordered {
		e.noteRoot(w, e.nodeRoot(s.node))
	}
	switch calm := s.Calm(); {
	case !calm:
		e.stepShared(w, s, e.allKeys(w, s, end-e.lookahead), end)
	case e.egressPerFrame:
		e.stepAdaptive(w, s, e.allKeys(w, s, end-e.lookahead), end)
	default:
		e.stepPorts(w, s, end)
	}
	if e.cfg.Watchdog.After > 0 {
		e.watch(w, s, end)
	}
}

// stepPorts simulates a window in which ports are independent (no pause, no drop, no choice of paths), one
// port after the other.
func (e *engine) stepPorts(w *worker, s *switchNode, end int64) {
	e.bucketArrivals(w, s, end-e.lookahead)
	e.openPorts(w, s, end)
	for i, some := range s.busy {
		for some |= w.Used[i]; some != 0; some &= some - 1 {
			p := 64*i + bits.TrailingZeros64(some)
			l := &e.links[s.out[p]]
			keys := e.portKeys(w, s, p)
			if e.classes == 2 && !l.Odd && (l.Paused|l.Waiting&1) == 0 && s.control[i]>>(p%64)&1 == 0 {
				e.drainPort(w, s, l, keys, end)
				continue
			}
			for _, key := range keys {
				if f, n := s.enter(e, key&arrivals.Place); f.Flow < 0 {
					e.pfcAtSwitch(w, s, f, n)
				} else {
					e.onto(w, s, l, f, n)
				}
			}
			for l.Waiting&^l.Paused != 0 && l.Free < end {
				e.noteCompletion(w, l)
				e.dequeue(w, s, l, l.Free)
			}
			if l.Waiting == 0 {
				s.busy[i] &^= 1 << (p % 64)
			}
		}
	}
}

// onto passes frame f to its egress port l at time f.At: the port first starts the frames that can start
// before that time.
func (e *engine) onto(w *worker, s *switchNode, l *link, f *frame, n tiebreak.Number) {
	for l.Waiting&^l.Paused != 0 && l.Free < f.At {
		e.noteCompletion(w, l)
		e.dequeue(w, s, l, l.Free)
	}
	if e.ordered {
		if l.Free == f.At {
			e.settleTie(w, s, l, f, n)
		}
		e.noteArrival(w, n)
	}
	if l.Waiting == 0 && l.Free < f.At && l.Paused>>f.Class&1 == 0 {
		e.sendIdle(w, l, f)
		return
	}
	if most := e.cfg.Buffer.Trim; most > 0 && f.Class != 0 && l.Trim(f, most, uint16(e.cfg.Frames.Header)) {
		w.Trims++ // the buffer has no room
	}
	if f.Class != 0 {
		s.Add(f.Tag, f.Class, int64(f.Size))
	}
	e.enqueue(w, s, l, f)
}

// sendIdle transmits a frame over an idle port on arrival, past the queue.
func (e *engine) sendIdle(w *worker, l *link, f *frame) {
	if l.Peak = max(l.Peak, int64(f.Size)); f.Class != 0 {
		l.Turn = f.Class
	}
	e.transmit(w, l, f, f.At, 0)
}

// stepAdaptive is stepPorts where a frame's egress port depends on queue lengths (adaptive routing), or the
// watchdog may drop the frame: all ports in the order of time.
func (e *engine) stepAdaptive(w *worker, s *switchNode, order []uint64, end int64) {
	for _, key := range order {
		f, n := s.enter(e, key&arrivals.Place)
		if f.Flow < 0 {
			e.pfcAtSwitch(w, s, f, n)
			continue
		}
		if l := e.egressOf(w, s, f); l != nil {
			e.onto(w, s, l, f, n)
		}
	}
	for _, id := range s.out {
		l := &e.links[id]
		for l.Waiting&^l.Paused != 0 && l.Free < end {
			e.noteCompletion(w, l)
			e.dequeue(w, s, l, l.Free)
		}
	}
}

// pfcAtSwitch pauses or resumes the port at which a PFC frame arrived.
func (e *engine) pfcAtSwitch(w *worker, s *switchNode, f *frame, n tiebreak.Number) {
	l := &e.links[s.out[f.Tag]]
	for l.Waiting&^l.Paused != 0 && l.Free < f.At {
		e.noteCompletion(w, l)
		e.dequeue(w, s, l, l.Free)
	}
	if l.Free == f.At && e.ordered {
		e.settleTie(w, s, l, f, n)
	}
	e.noteArrival(w, n)
	if f.Flow == port.PauseRepeats {
		if l.Timer.Due(f.Psn, f.At) {
			e.sendPFC(w, s, f.Tag, uint8(f.Psn), flagPause, f.At)
		}
		return
	}
	before := l.Asked
	e.pause(w, l, f)
	l.Note(before, f)
	if s.starts.Update(l); l.Waiting&^l.Paused != 0 && l.Free < f.At {
		e.dequeue(w, s, l, f.At)
	}
}

// pause applies a PAUSE or RESUME frame to the link that leads to its sender.
func (e *engine) pause(w *worker, l *link, f *frame) {
	pause := f.Flags&flagPause != 0
	if l.Timer != nil && !l.Timer.Received(f) {
		return
	}
	if l.Ask(f.Psn, pause, f.At); pause {
		w.Pauses++
	}
	if e.samples != nil && f.Flow != port.PauseEnds {
		w.pauses = append(w.pauses, spec.PauseSample{At: units.Time(f.At), Link: l.ID, Class: uint8(f.Psn),
			Pause: pause})
	}
}

// enqueue puts a frame into its egress queue and starts it if the link is idle.
func (e *engine) enqueue(w *worker, s *switchNode, l *link, f *frame) {
	q := &l.Queues[f.Class]
	q.Pass(f, f.At, f.Tag, &s.spare)
	l.Waiting |= 1 << f.Class
	s.busy[l.FromPort/64] |= 1 << (l.FromPort % 64)
	if l.Odd {
		if l.Credit != nil {
			e.gate(l, f.At)
		}
		if e.cfg.MarkAtEnqueue && l.MarkQueued(q, e.cfg.Seed) {
			w.Marks++
		}
	}
	q.Bytes += int64(f.Size)
	l.UpdatePeak(q, f.Class)
	if l.Free < f.At && l.Waiting&^l.Paused != 0 {
		e.dequeue(w, s, l, f.At)
	} else if s.starts != nil {
		s.starts.Join(l)
	}
}

// dequeue starts the next frame of port l at a time: classes in round-robin after control frames. It frees
// the frame's share of the buffer, or repays its credit.
func (e *engine) dequeue(w *worker, s *switchNode, l *link, at int64) {
	c := frames.InTurn(l.Waiting&^l.Paused, &l.Turn, e.classes)
	q := &l.Queues[c]
	f := q.Front()
	if q.Pop(&s.spare); q.Empty() {
		l.Waiting &^= 1 << c
	}
	q.Bytes -= int64(f.Size)
	if l.Odd && l.HOL != nil && l.HOL.To > f.At && f.Flow >= 0 && e.tables == nil && e.hostOf[l.To] < 0 {
		l.HOL.Delayed(f.Flow, e.hops[f.Route+1], f.At)
	}
	if e.cfg.Buffer.Credits > 0 {
		e.links[s.in[f.Tag]].Repay(f, at)
	} else if c != 0 {
		e.release(w, s, f, at)
	}
	e.transmit(w, l, f, at, q.Bytes)
	if l.Odd && l.Credit != nil {
		e.gate(l, at)
	}
	if s.starts != nil {
		s.starts.Update(l)
	}
}

// transmit puts a frame on the cable: it marks ECN by the bytes left in the queue (behind), stamps INT
// telemetry for HPCC and counts the frame.
func (e *engine) transmit(w *worker, l *link, f *frame, at, behind int64) {
	if l.Marks && behind > l.Alert && f.Class != 0 {
		e.mark(w, l, f, behind)
	}
	if f.Flags&(flagAck|flagTrim) == 0 && f.Flow >= 0 {
		w.DataPacketHops++
		l.Data += int64(f.Size)
		if e.cfg.CC.Kind == HPCC && l.Queues != nil {
			f.Aux = e.controls.Stamp(f.Aux, e.controls.Record(at, l.TxBytes, l.Held()), l.Coded)
		}
	}
	if l.Odd && l.Credit != nil {
		l.Spend(f)
	}
	l.Sent++
	l.TxBytes += int64(f.Size)
	tag := tiebreak.Number(0)
	if e.ordered {
		l.Start, l.Begun = at, w.Sent(at, l.ID, l.Wire.Tail)
		tag = l.Begun
	}
	what := f.Flags & flagAck
	if l.Sizes[what] != f.Size {
		l.Measure(e.cfg, what, f.Size)
	}
	l.Free = at + l.Lasts[what]
	if l.Wire.Empty() {
		e.due[l.ID] = l.Free + l.Delay
	}
	if l.Wire.Full() {
		l.Wire.Grow()
	}
	l.Wire.Next().Set(f, l.Free+l.Delay, uint32(tag))
}

// mark applies RED to a data frame with behind bytes left in its queue: no mark up to KMin, probability
// PMax·(behind−KMin)/(KMax−KMin) up to KMax, always above. In a run without the order of events it only
// records how close the queue came to KMin.
func (e *engine) mark(w *worker, l *link, f *frame, behind int64) {
	if w.again = true; !e.ordered && e.cfg.EventOrder {
		w.deepest = max(w.deepest, float64(behind)/float64(l.KMin))
		return
	}
	if behind <= l.KMin {
		return
	}
	if behind <= l.KMax {
		p := l.PMax * float64(behind-l.KMin) / float64(l.KMax-l.KMin)
		if e.streams != nil {
			if w.P, w.Drawing = p, true; f.Flags&flagAck != 0 {
				w.P = 0 // ns-3 draws a number here too
			}
			return
		}
		if rng.Hash(e.cfg.Seed, l.ID, rng.Mark, l.Sent) >= p {
			return
		}
	}
	if f.Flags&flagAck == 0 {
		f.Flags |= flagCE
		w.Marks++
		l.Stats.Marks++
	}
}
