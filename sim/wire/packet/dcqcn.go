package packet

// dcqcn is the state of a DCQCN reaction point, in the order of events of
// Mellanox' firmware as the HPCC simulator has it: alpha and the decrease are
// looked at by timers of their own. With CC.Immediate and CC.ByteReset it is that
// of the paper (SIGCOMM'15).
type dcqcn struct {
	alpha      float64
	target     int64 // bit/s
	tick       int64 // the next of the timers
	alphaAt    int64
	decreaseAt int64
	increase   int64
	stage      int32 // increases by time since the last cut
	byBytes    int32 // increases by bytes
	sent       int64 // bytes since the last of those
	started    bool  // a notification has come
	alphaSeen  bool  // one has since the last update of alpha
	cutSeen    bool  // one has since the last look at the decrease
}

// notify handles a congestion notification at a time. Timers of that very time
// have not run: they were set after the acknowledgement was sent.
func (e *engine) notify(s *sender, now int64) {
	d, c := &s.dcqcn, &e.cfg.CC
	e.tick(s, now-1)
	if c.Immediate {
		e.cutNow(s, now)
		return
	}
	d.alphaSeen, d.cutSeen = true, true
	if d.started {
		return
	}
	d.started, d.alphaSeen = true, false
	d.alpha = c.first()
	d.alphaAt = now + int64(c.AlphaPeriod)
	d.decreaseAt = now + int64(c.DecreasePeriod) + 1000 // a nanosecond: after alpha
	d.tick = min(d.alphaAt, d.decreaseAt)
	d.target = s.rate
}

// first is alpha at the first notification.
func (c *CC) first() float64 {
	if c.Alpha > 0 {
		return c.Alpha
	}
	return 1
}

// cutNow is a notification of the paper: cut, raise alpha, start timers and the
// byte counter again.
func (e *engine) cutNow(s *sender, now int64) {
	d, c := &s.dcqcn, &e.cfg.CC
	if !d.started {
		d.started, d.alpha, d.decreaseAt = true, c.first(), never
	}
	d.target = s.rate
	s.cut(c)
	d.alpha = float64((1-c.Gain)*d.alpha) + c.Gain
	d.alphaAt, d.increase = now+int64(c.AlphaPeriod), now+int64(c.IncreasePeriod)
	d.tick = min(d.alphaAt, d.increase)
}

// count counts bytes sent, after which the rate rises.
func (d *dcqcn) count(s *sender, c *CC) {
	if !d.started {
		return
	}
	if d.sent += int64(s.last); d.sent >= c.ByteReset {
		d.sent = 0
		d.byBytes++
		s.climb(c)
	}
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
	keep := 1 - d.alpha/2
	if c.MostCut > 0 {
		keep = max(keep, 1-c.MostCut)
	}
	s.setRate(max(c.MinRate, int64(float64(s.rate)*keep)))
	d.stage, d.byBytes, d.sent, d.cutSeen = 0, 0, 0, false
}

// raise is an increase of the rate: recovery, then additive, then hyper.
func (s *sender) raise(c *CC) {
	d := &s.dcqcn
	if c.ByteReset > 0 {
		d.stage++
		s.climb(c)
		return
	}
	switch {
	case d.stage == c.FastRecovery:
		d.target = min(d.target+c.AI, s.line)
	case d.stage > c.FastRecovery:
		d.target = min(d.target+c.HAI, s.line)
	}
	s.setRate(s.rate/2 + d.target/2)
	d.stage++
}

// climb is an increase of the paper, by the numbers of those by time and by
// bytes since the last cut.
func (s *sender) climb(c *CC) {
	d := &s.dcqcn
	switch most, least := max(d.stage, d.byBytes), min(d.stage, d.byBytes); {
	case least > c.FastRecovery:
		d.target = min(d.target+int64(least-c.FastRecovery)*c.HAI, s.line)
	case most >= c.FastRecovery:
		d.target = min(d.target+c.AI, s.line)
	}
	s.setRate(s.rate/2 + d.target/2)
}
