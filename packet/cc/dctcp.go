package cc

// Share is the state of DCTCP with rates, as in the HPCC simulator.
type Share struct {
	alpha   float64
	update  uint32 // the frame whose acknowledgement ends a round trip
	high    uint32 // a cut lasts until this frame is acknowledged
	marks   uint32 // of this round trip
	frames  uint32 // of this round trip
	reduced bool
	payload int32 // bytes of a full frame
	bytes   int64 // of the flow
}

// NewShare is the state at the start of a flow of so many bytes, or 0 where they are not known, in frames of
// payload.
func NewShare(payload int, bytes int64) Share {
	if bytes == 0 {
		bytes = 1<<63 - 1
	}
	return Share{alpha: 1, payload: int32(payload), bytes: bytes}
}

// between is how many whole frames are from one to another, plus one. As in the peer it is a word without a
// sign, of bytes that are one of twice its length: a sender that was sent back may be behind what is
// acknowledged.
func (d *Share) between(psn, next uint32) uint32 {
	from, to := min(int64(psn)*int64(d.payload), d.bytes), min(int64(next)*int64(d.payload), d.bytes)
	return uint32(uint64(to-from)/uint64(d.payload) + 1)
}

// Ack counts marks, and cuts the rate at most once in a round trip: frames below psn
// have arrived, next is sent next.
func (d *Share) Ack(c *Params, s *Rate, psn, next uint32, marked bool) {
	round := psn > d.update
	if marked {
		d.marks++
	}
	switch {
	case round && d.update == 0:
		d.update, d.frames = next, d.between(0, next)
	case round:
		d.alpha = float64((1-c.Gain)*d.alpha) + float64(c.Gain*min(1, float64(d.marks)/float64(d.frames)))
		d.update, d.marks, d.frames = next, 0, d.between(psn, next)
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
