package packet

import "github.com/simccl/simccl/sim/wire/packet/internal/streams"

// stamp adds a switch's record to a data frame that it starts.
func (e *engine) stamp(l *link, f *frame, at int64) {
	var queued int64
	for i := range l.q {
		queued += l.q[i].bytes
	}
	e.controls.Telemetry(f.flow).Stamp(&e.cfg.CC, f.psn, at/1000, l.txBytes, queued, l.rate)
}

// shift changes the rate, and the time of the next frame by the difference of
// the gaps.
func (e *engine) shift(w *worker, h *host, s *sender, rate, now int64) {
	size := int(s.last)
	gap := e.lasts(size, rate)
	if full := s.last == e.full; full && s.Gap > 0 && !e.cfg.CC.Unpaced {
		s.nextAvail += gap - s.Gap
		s.Set(rate)
		s.Gap = gap
	} else {
		s.nextAvail += gap - e.lasts(size, s.Rate.Rate)
		s.Set(rate)
	}
	h.paced = min(h.paced, s.nextAvail)
	if h.wake > now && s.nextAvail < h.wake {
		h.wake = max(s.nextAvail, now)
		e.await(w, h, now)
	}
}

// pintStamp lets a frame carry the highest utilisation of its path, encoded as a
// power of PintBase.
func (e *engine) pintStamp(l *link, f *frame, at int64) {
	if f.flags&flagAck == 0 && f.flow >= 0 {
		var queued int64
		for i := range l.q {
			queued += l.q[i].bytes
		}
		u := l.pint.Used(&e.cfg.CC, at/1000, queued, l.rate)
		f.aux = max(f.aux, e.cfg.CC.Code(u, streams.Hash(e.cfg.Seed, l.id, drawCode, l.pint.Frames)))
	}
	l.pint.Sent(at/1000, f.size)
}
