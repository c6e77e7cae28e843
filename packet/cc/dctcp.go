package cc

// Share is DCTCP's state of a flow (SIGCOMM'10) with rates in place of windows, as in ns-3.
type Share struct {
	alpha   float64
	update  uint32 // the frame whose acknowledgement ends the present round trip
	high    uint32 // no second cut until this frame is acknowledged
	marks   uint32 // marked frames of this round trip
	frames  uint32 // frames of this round trip
	reduced bool
	payload int32 // bytes of a full frame
	bytes   int64 // of the flow
}

// NewShare returns the state of a flow of the given bytes (0: unknown) in frames of payload bytes.
func NewShare(payload int, bytes int64) Share {
	if bytes == 0 {
		bytes = 1<<63 - 1
	}
	return Share{alpha: 1, payload: int32(payload), bytes: bytes}
}

// between returns the number of whole frames from psn to next, plus one, in ns-3's unsigned 32-bit
// arithmetic: after going back, a sender's next frame may precede the acknowledged one.
func (d *Share) between(psn, next uint32) uint32 {
	from, to := min(int64(psn)*int64(d.payload), d.bytes), min(int64(next)*int64(d.payload), d.bytes)
	return uint32(uint64(to-from)/uint64(d.payload) + 1)
}

// Ack counts marks and cuts the rate by alpha/2 at most once a round trip. Frames below psn have arrived;
// next is the next frame to be sent.
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
