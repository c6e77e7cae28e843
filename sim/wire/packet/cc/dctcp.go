package cc

// Share is the state of DCTCP with rates, as in the HPCC simulator.
type Share struct {
	alpha   float64
	update  uint32 // the frame whose acknowledgement ends a round trip
	high    uint32 // a cut lasts until this frame is acknowledged
	marks   uint32 // of this round trip
	frames  uint32 // of this round trip
	reduced bool
}

// NewShare is the state at the start of a flow.
func NewShare() Share { return Share{alpha: 1} }

// Ack counts marks, and cuts the rate at most once in a round trip: frames below psn
// have arrived, next is sent next.
func (d *Share) Ack(c *Params, s *Rate, psn, next uint32, marked bool) {
	round := psn > d.update
	if marked {
		d.marks++
	}
	switch {
	case round && d.update == 0:
		d.update, d.frames = next, next+1
	case round:
		d.alpha = float64((1-c.Gain)*d.alpha) + float64(c.Gain*min(1, float64(d.marks)/float64(d.frames)))
		d.update, d.marks, d.frames = next, 0, next-psn+1
	}
	if d.reduced && psn > d.high {
		d.reduced = false
	}
	if marked && !d.reduced {
		s.Set(max(c.MinRate, int64(float64(s.Rate)*(1-d.alpha/2))))
		d.reduced, d.high = true, next
	}
	if !d.reduced && round {
		s.Set(min(s.Line, s.Rate+c.RateAI))
	}
}
