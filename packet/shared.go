package packet

import (
	"github.com/simccl/simccl/packet/internal/arrivals"
	"github.com/simccl/simccl/packet/internal/port"
	"github.com/simccl/simccl/packet/internal/tiebreak"
)

// stepShared simulates a window of a switch in which PFC, credits or drops may act: all ports in the order of
// time, as they share the buffer.
func (e *engine) stepShared(w *worker, s *switchNode, order []uint64, end int64) {
	s.Recount()
	s.starts = &w.starts
	s.starts.Begin(e.links, s.out, s.busy, w.order)
	for _, i := range order {
		f, n := s.enter(e, i&arrivals.Place)
		if e.drain(w, s, f.At); e.ordered && s.starts.At() == f.At {
			e.endBefore(w, s, f, n)
		}
		if f.Flow < 0 {
			if f.Flow == port.Report {
				e.credited(w, s, f)
			} else {
				e.pfcAtSwitch(w, s, f, n)
			}
			continue
		}
		e.noteArrival(w, n)
		var l *link
		if !e.egressPerFrame {
			l = &e.links[e.hops[f.Route]]
		} else if l = e.egressOf(w, s, f); l == nil {
			continue
		}
		if l.Free == f.At && e.ordered {
			e.settleTie(w, s, l, f, n)
		}
		if l.Waiting == 0 && l.Free < f.At && l.Paused>>f.Class&1 == 0 && !l.Odd &&
			(f.Class == 0 || s.Passes(f.Tag, f.Class, int64(f.Size))) {
			e.sendIdle(w, l, f)
		} else if f.Class == 0 || e.cfg.Buffer.Credits > 0 || e.admit(w, s, f) {
			e.enqueue(w, s, l, f)
		} else {
			l.Stats.Drops++
		}
	}
	e.drain(w, s, end)
	s.Exact, s.starts = false, nil
}

// drain starts, in the order of time, all frames that can start before until (ps).
func (e *engine) drain(w *worker, s *switchNode, until int64) {
	for t := s.starts.At(); t < until; t = s.starts.At() {
		l := s.starts.First()
		e.noteCompletion(w, l)
		e.dequeue(w, s, l, t)
	}
}

// endBefore completes the transmissions that end at the instant at which f arrives and were scheduled before
// its arrival.
func (e *engine) endBefore(w *worker, s *switchNode, f *frame, n tiebreak.Number) {
	for s.starts.At() <= f.At {
		l := s.starts.First()
		if !l.EndsFirst(w.order, e.travel(s.in[f.Tag], f.Size), n) {
			return
		}
		e.noteCompletion(w, l)
		e.dequeue(w, s, l, l.Free)
	}
}

// admit accounts for a frame at its ingress port. It returns false if the buffer has no room, and pauses the
// neighbour at the XOFF threshold.
func (e *engine) admit(w *worker, s *switchNode, f *frame) bool {
	room, pause := s.Admit(f.Tag, f.Class, int64(f.Size))
	if !room {
		w.Drops++
	}
	if pause {
		e.skipDraw(w, f.At, true)
		e.sendPFC(w, s, f.Tag, f.Class, flagPause, f.At)
	}
	return room
}

// release frees a departing frame's buffer, and resumes the neighbour at the XON threshold.
func (e *engine) release(w *worker, s *switchNode, f *frame, at int64) {
	if s.Release(f.Tag, f.Class, int64(f.Size)) {
		e.skipDraw(w, at, false)
		e.sendPFC(w, s, f.Tag, f.Class, flagResume, at)
	}
}

// sendPFC queues a PAUSE or RESUME frame to the neighbour at ingress port to. A PAUSE names the deepest
// queue, to which head-of-line blocking is attributed.
func (e *engine) sendPFC(w *worker, s *switchNode, to uint32, class, what uint8, at int64) {
	l, why := &e.links[s.out[to]], uint32(0)
	if what == flagPause {
		why = uint32(port.Deepest(e.links, s.out, class)) + 1
	}
	if l.Timer != nil {
		l.Timer.Asks(class, what == flagPause, at)
	}
	e.enqueue(w, s, l, &frame{At: at, Flow: -1, Psn: uint32(class), Aux: why,
		Size: uint16(e.cfg.Frames.Pause), Flags: what})
}
