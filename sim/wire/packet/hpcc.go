package packet

import (
	"math"

	"github.com/simccl/simccl/sim/wire/packet/internal/streams"
)

// stamp adds a switch's record to a data frame that it starts.
func (e *engine) stamp(l *link, f *frame, at int64) {
	var queued int64
	for i := range l.q {
		queued += l.q[i].bytes
	}
	e.hp[f.flow].Stamp(&e.cfg.CC, f.psn, at/1000, l.txBytes, queued, l.rate)
}

// shift changes the rate, and the time of the next frame by the difference of
// the gaps.
func (e *engine) shift(w *worker, h *host, s *sender, rate, now int64) {
	size := int(s.last)
	s.nextAvail += e.lasts(size, rate) - e.lasts(size, s.Rate.Rate)
	s.Set(rate)
	if h.wake > now && s.nextAvail < h.wake {
		h.wake = max(s.nextAvail, now)
		e.await(w, h, now)
	}
}

// pintKept is the unit in which a port keeps its utilisation (model/switch-node.cc of
// the HPCC simulator).
const pintKept = 8192

// pintPort is what a port of a switch knows for HPCC-PINT.
type pintPort struct {
	util  float64
	last  int64 // ns, the frame before
	size  uint16
	draws uint64
}

// pintStamp lets a frame carry the highest utilisation of its path, encoded as a
// power of PintBase.
func (e *engine) pintStamp(l *link, f *frame, at int64) {
	p, ns, whole := l.pint, at/1000, float64(int64(e.cfg.CC.BaseRTT)/1000)
	if f.flags&flagAck == 0 && f.flow >= 0 {
		dt := min(float64(ns-p.last), whole)
		var queued int64
		for i := range l.q {
			queued += l.q[i].bytes
		}
		bytes := float64(l.rate / 8)
		queued = queued >> 8 << 8
		u := float64(dt*float64(queued)*1e9)/(bytes*whole*whole) + float64(p.size)*1e9/(bytes*whole) +
			(whole-dt)*(math.Round(p.util*pintKept)/pintKept)/whole
		p.util = u
		p.draws++
		f.aux = max(f.aux, e.cfg.CC.Code(u, streams.Hash(e.cfg.Seed, l.id, drawCode, p.draws)))
	}
	p.last, p.size = ns, f.size
}
