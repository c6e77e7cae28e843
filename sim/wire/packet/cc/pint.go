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

// Ack finds the rate after the utilisation that an acknowledgement brings back, and
// says whether it changes: frames below psn have arrived, next is sent next.
func (p *Coded) Ack(c *Params, s *Rate, code, psn, next uint32) (rate int64, changes bool) {
	full := psn > p.update
	if p.update == 0 {
		p.update = next
		return 0, false
	}
	over := math.Pow(c.PintBase, float64(code)) / PintUnit / c.Utilisation
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
