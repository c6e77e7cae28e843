package cc

import "math"

// PintUnit is the unit of encoded utilisations in HPCC-PINT (model/pint.h of the HPCC
// simulator).
const PintUnit = 512

// Coded is the state of HPCC-PINT of a sender.
type Coded struct {
	update uint32 // the frame whose acknowledgement ends a round trip
	stage  int32
	rate   int64
}

// NewCoded is the state at the start of a flow.
func NewCoded(line int64) Coded { return Coded{rate: line} }

// Code is the power of PintBase next to a utilisation, up or down by a number drawn
// from 0 to 1.
func (c *Params) Code(u, chance float64) uint32 {
	n := max(1, math.Ceil(u*PintUnit))
	power := math.Log(n) / math.Log(c.PintBase)
	up, down := math.Ceil(power), math.Floor(power)
	high, low := math.Pow(c.PintBase, up), math.Pow(c.PintBase, down)
	if up == down {
		high *= c.PintBase
	}
	if chance < (n-low)/(high-low) {
		return uint32(up)
	}
	return uint32(down)
}

// decoded is the utilisation over that aimed at of a code.
func (c *Params) decoded(code uint32) float64 {
	return math.Pow(c.PintBase, float64(code)) / PintUnit / c.Utilisation
}

// Ack finds the rate after the utilisation over that aimed at that an acknowledgement brings back, and
// says whether it changes: frames below psn have arrived, next is sent next.
func (p *Coded) Ack(c *Params, s *Rate, over float64, psn, next uint32) (rate int64, changes bool) {
	full := psn > p.update
	if p.update == 0 {
		p.update = next
		return 0, false
	}
	rate, stage := p.rate+c.AI, p.stage+1
	if over >= 1 || p.stage >= c.Stages {
		rate, stage = int64(float64(p.rate)/over)+c.AI, 0
	}
	rate = min(max(rate, c.MinRate), s.Line)
	if full {
		p.rate, p.stage = rate, stage
		p.update = max(p.update, next)
	}
	return rate, true
}

// pintKept is the unit in which a port keeps its utilisation (model/switch-node.cc of
// the HPCC simulator).
const pintKept = 8192

// PintPort is what a port of a switch knows for HPCC-PINT.
type PintPort struct {
	Frames uint64 // of data that it sent
	util   float64
	last   int64 // ns, the frame before
	size   uint16
	frames []PintFrame // that are to be drawn, see Seen
	taken  int         // of frames

	// What PintCoder keeps:
	rate     int64   // bit/s
	rateLog  float64 // of bytes a second
	sent     float64 // what a frame of sentSize adds
	sentSize uint16
}

// Used is the utilisation of a port that sends a frame of data at a time in ns, with so
// many bytes queued, at a rate in bit/s.
func (p *PintPort) Used(c *Params, ns, queued, rate int64) float64 {
	whole, bytes := float64(int64(c.BaseRTT)/1000), float64(rate/8)
	dt := min(float64(ns-p.last), whole)
	p.util = dt*float64(queued>>8<<8)*1e9/(bytes*whole*whole) + float64(p.size)*1e9/(bytes*whole) +
		(whole-dt)*(math.Round(p.util*pintKept)/pintKept)/whole
	p.Frames++
	return p.util
}

// Sent takes note of any frame that the port sent.
func (p *PintPort) Sent(ns int64, size uint16) { p.last, p.size = ns, size }
