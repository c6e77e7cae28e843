package packet

import "github.com/simccl/simccl/sim/wire/packet/internal/streams"

// stamp adds a switch's record to a data frame that it starts.
func (e *engine) stamp(l *link, f *frame, at int64) {
	var queued int64
	for i := range l.q {
		queued += l.q[i].bytes
	}
	e.controls.Telemetry(f.Flow).Stamp(&e.cfg.CC, f.Aux, at/1000, l.txBytes, queued, l.rate)
}

// shift changes the rate, and the time of the next frame by the difference of
// the gaps.
func (e *engine) shift(w *worker, h *host, s *sender, rate, now int64) {
	sooner := rate > s.Rate.Rate || s.NextAvail < h.wake // known long before the gap is
	if size := int(s.Last); rate != s.Rate.Rate {
		gap, before, full := e.lasts(size, rate), s.Gap, s.Last == e.full && s.Gap > 0 && !e.cfg.CC.Unpaced
		if !full {
			before = e.lasts(size, s.Rate.Rate)
		}
		s.NextAvail += gap - before
		if s.Set(rate); full {
			s.Gap = gap
		}
	}
	h.paced = min(h.paced, s.NextAvail)
	if h.wake > now && sooner && s.NextAvail < h.wake {
		h.wake = max(s.NextAvail, now)
		e.await(w, h, now)
	}
}

// pintStamp lets a frame carry the highest utilisation of its path, encoded as a
// power of PintBase.
func (e *engine) pintStamp(l *link, f *frame, at int64) {
	if f.Flags&flagAck == 0 && f.Flow >= 0 {
		var queued int64
		for i := range l.q {
			queued += l.q[i].bytes
		}
		u := l.pint.Used(&e.cfg.CC, at/1000, queued, l.rate)
		f.Aux = max(f.Aux, e.cfg.CC.Code(u, streams.Hash(e.cfg.Seed, l.id, streams.Code, l.pint.Frames)))
	}
	l.pint.Sent(at/1000, f.Size)
}
