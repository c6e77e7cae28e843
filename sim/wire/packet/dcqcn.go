package packet

// dcqcn is the state of a DCQCN reaction point (SIGCOMM'15) in the order of
// events of Mellanox' firmware as the HPCC simulator has it: alpha and the
// decrease are looked at by timers of their own.
type dcqcn struct {
	alpha      float64
	target     int64 // bit/s
	tick       int64 // the next of the timers
	alphaAt    int64
	decreaseAt int64
	increase   int64
	stage      int32 // increases since the last cut
	started    bool  // a notification has come
	alphaSeen  bool  // one has since the last update of alpha
	cutSeen    bool  // one has since the last look at the decrease
}

// notify handles a congestion notification at a time. Timers of that very time
// have not run: they were set after the acknowledgement was sent.
func (e *engine) notify(s *sender, now int64) {
	d, c := &s.dcqcn, &e.cfg.CC
	e.tick(s, now-1)
	d.alphaSeen, d.cutSeen = true, true
	if d.started {
		return
	}
	d.started, d.alphaSeen = true, false
	d.alpha = 1
	d.alphaAt = now + int64(c.AlphaPeriod)
	d.decreaseAt = now + int64(c.DecreasePeriod) + 1000 // a nanosecond: after alpha
	d.tick = min(d.alphaAt, d.decreaseAt)
	d.target = s.rate
}

// tick runs the timers up to a time.
func (e *engine) tick(s *sender, now int64) {
	d := &s.dcqcn
	if d.tick > now {
		return
	}
	c := &e.cfg.CC
	for d.tick <= now {
		switch d.tick {
		case d.alphaAt:
			d.alpha = float64((1 - c.Gain) * d.alpha)
			if d.alphaSeen {
				d.alpha += c.Gain
			}
			d.alphaSeen = false
			d.alphaAt += int64(c.AlphaPeriod)
		case d.decreaseAt:
			d.decreaseAt += int64(c.DecreasePeriod)
			if d.cutSeen {
				d.increase = d.tick + int64(c.IncreasePeriod)
				s.cut(c)
			}
		default:
			d.increase += int64(c.IncreasePeriod)
			s.raise(c)
		}
		d.tick = min(d.alphaAt, d.decreaseAt, d.increase)
	}
}

// cut lowers the rate.
func (s *sender) cut(c *CC) {
	d := &s.dcqcn
	if c.ClampTarget || d.stage != 0 {
		d.target = s.rate
	}
	s.setRate(max(c.MinRate, int64(float64(s.rate)*(1-d.alpha/2))))
	d.stage, d.cutSeen = 0, false
}

// raise is an increase of the rate: recovery, then additive, then hyper.
func (s *sender) raise(c *CC) {
	d := &s.dcqcn
	switch {
	case d.stage == c.FastRecovery:
		d.target = min(d.target+c.AI, s.line)
	case d.stage > c.FastRecovery:
		d.target = min(d.target+c.HAI, s.line)
	}
	s.setRate(s.rate/2 + d.target/2)
	d.stage++
}
