package packet

// dctcp is the state of DCTCP with rates, as in the HPCC simulator.
type dctcp struct {
	alpha   float64
	update  uint32 // the frame whose acknowledgement ends a round trip
	high    uint32 // a cut lasts until this frame is acknowledged
	marks   uint32 // of this round trip
	frames  uint32 // of this round trip
	reduced bool
}

// dctcpAck counts marks, and cuts the rate at most once in a round trip.
func (e *engine) dctcpAck(f *frame, s *sender) {
	d, c := &e.dc[f.flow], &e.cfg.CC
	marked, round := f.flags&flagCE != 0, f.psn > d.update
	if marked {
		d.marks++
	}
	switch {
	case round && d.update == 0:
		d.update, d.frames = s.nxt, s.nxt+1
	case round:
		d.alpha = float64((1-c.Gain)*d.alpha) + float64(c.Gain*min(1, float64(d.marks)/float64(d.frames)))
		d.update, d.marks, d.frames = s.nxt, 0, s.nxt-f.psn+1
	}
	if d.reduced && f.psn > d.high {
		d.reduced = false
	}
	if marked && !d.reduced {
		s.Set(max(c.MinRate, int64(float64(s.Rate.Rate)*(1-d.alpha/2))))
		d.reduced, d.high = true, s.nxt
	}
	if !d.reduced && round {
		s.Set(min(s.Line, s.Rate.Rate+c.RateAI))
	}
}
