package packet

import "math"

// Constants of HPCC-PINT in the HPCC simulator (model/pint.h, switch-node.cc): the
// unit of encoded utilisations, and that in which a port keeps its own.
const (
	pintUnit = 512
	pintKept = 8192
)

// pintPort is what a port of a switch knows for HPCC-PINT.
type pintPort struct {
	util  float64
	last  int64 // ns, the frame before
	size  uint16
	draws uint64
}

// pint is the state of a sender.
type pint struct {
	update uint32 // the frame whose acknowledgement ends a round trip
	stage  int32
	rate   int64
	acks   uint64
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
		f.aux = max(f.aux, e.pintCode(u, draw(e.cfg.Seed, l.id, drawCode, p.draws)))
	}
	p.last, p.size = ns, f.size
}

// pintCode is the power of PintBase next to a utilisation, up or down by chance.
func (e *engine) pintCode(u, chance float64) uint32 {
	base := e.cfg.CC.PintBase
	n := max(1, math.Ceil(u*pintUnit))
	power := math.Log(n) / math.Log(base)
	up, down := math.Ceil(power), math.Floor(power)
	high, low := math.Pow(base, up), math.Pow(base, down)
	if up == down {
		high *= base
	}
	if chance < (n-low)/(high-low) {
		return uint32(up)
	}
	return uint32(down)
}

// pintAck adjusts the rate to the utilisation that an acknowledgement brings back.
func (e *engine) pintAck(h *host, f *frame, s *sender) {
	p, c := &e.pi[f.flow], &e.cfg.CC
	if p.acks++; draw(e.cfg.Seed, f.flow, drawSample, p.acks) >= c.PintShare {
		return
	}
	full := f.psn > p.update
	if p.update == 0 {
		p.update = s.nxt
		return
	}
	over := math.Pow(c.PintBase, float64(f.aux)) / pintUnit / c.Utilisation
	rate, stage := p.rate+c.AI, p.stage+1
	if over >= 1 || p.stage >= c.Stages {
		rate, stage = int64(float64(p.rate)/over)+c.AI, 0
	}
	rate = min(max(rate, c.MinRate), s.Line)
	e.shift(h, s, rate, f.at)
	if full {
		p.rate, p.stage = rate, stage
		p.update = max(p.update, s.nxt)
	}
}
