package cc

// Reaction is a DCQCN reaction point (SIGCOMM'15) as ns-3 models Mellanox's firmware: alpha and the decrease
// have timers of their own. With Params.Immediate and Params.ByteReset it is the paper's. Times are in ps.
//
//	CNP ─▶ alpha ↑ ─▶ at decreaseAt: target = rate, rate ·= 1 − alpha/2
//	no CNP ─▶ alpha ↓; at each increase: rate = (rate + target)/2;
//	          after FastRecovery of these target += AI, then HAI
type Reaction struct {
	alpha      float64
	target     int64 // bit/s
	tick       int64 // the earliest of the three timers
	alphaAt    int64
	decreaseAt int64
	increase   int64
	stage      int32 // increases by time since the last cut
	started    bool  // a notification has arrived
	alphaSeen  bool  // a notification has arrived since alpha's last update
	cutSeen    bool  // a notification has arrived since the decrease timer last ran
	byBytes    int32 // increases by bytes since the last cut
	sent       int64 // bytes since the last increase by bytes
}

// Notify handles a congestion notification at time now that was scheduled age ps earlier: timers that expire
// at the same instant precede it only if they were set before that.
func (d *Reaction) Notify(c *Params, s *Rate, now, age int64) {
	d.Tick(c, s, now, age)
	if c.Immediate {
		d.cutNow(c, s, now)
		return
	}
	d.alphaSeen, d.cutSeen = true, true
	if d.started {
		return
	}
	d.started, d.alphaSeen = true, false
	d.alpha = c.first()
	d.alphaAt = now + int64(c.AlphaPeriod)
	d.decreaseAt = now + int64(c.DecreasePeriod) + 1000 // one nanosecond later than alpha's update
	d.tick = min(d.alphaAt, d.decreaseAt)
	d.target = s.Rate
}

// first returns alpha's value at the first notification.
func (c *Params) first() float64 {
	if c.Alpha > 0 {
		return c.Alpha
	}
	return 1
}

// cutNow handles a notification as the paper does: cut, raise alpha, restart timers and byte counter.
func (d *Reaction) cutNow(c *Params, s *Rate, now int64) {
	if !d.started {
		d.started, d.alpha, d.decreaseAt = true, c.first(), never
	}
	d.target = s.Rate
	d.cut(c, s)
	d.alpha = float64((1-c.Gain)*d.alpha) + c.Gain
	d.alphaAt, d.increase = now+int64(c.AlphaPeriod), now+int64(c.IncreasePeriod)
	d.tick = min(d.alphaAt, d.increase)
}

// Count counts bytes sent; each ByteReset bytes raise the rate.
func (d *Reaction) Count(c *Params, s *Rate, bytes int64) {
	if !d.started {
		return
	}
	if d.sent += bytes; d.sent >= c.ByteReset {
		d.sent = 0
		d.byBytes++
		d.climb(c, s)
	}
}

// Halt runs the timers up to an event (see Tick) and stops them: the flow has ended.
func (d *Reaction) Halt(c *Params, s *Rate, now, age int64) {
	d.Tick(c, s, now, age)
	d.tick, d.alphaAt, d.decreaseAt, d.increase = never, never, never, never
}

// Due reports whether a timer expires by now.
func (d *Reaction) Due(now int64) bool { return d.tick <= now }

// Tick runs the timers up to an event at now that was scheduled age ps earlier. Of the timers that expire at
// that instant, those set more than age before run first. Of several timers the one with the longest period
// runs first, as it was set first.
func (d *Reaction) Tick(c *Params, s *Rate, now, age int64) {
	for d.tick <= now {
		for rest := min(d.decreaseAt, d.increase, now); d.alphaAt < rest; d.alphaAt += int64(c.AlphaPeriod) {
			d.alpha = float64((1 - c.Gain) * d.alpha)
			if d.alphaSeen {
				d.alpha += c.Gain
				d.alphaSeen = false
			}
		}
		if d.tick = min(d.alphaAt, d.decreaseAt, d.increase); d.tick > now {
			return
		}
		if d.tick == now && d.period(c) <= age {
			return
		}
		switch {
		case d.tick == d.increase && (d.tick != d.decreaseAt || c.IncreasePeriod >= c.DecreasePeriod):
			d.increase += int64(c.IncreasePeriod)
			d.raise(c, s)
		case d.tick == d.decreaseAt && (d.tick != d.alphaAt || c.DecreasePeriod >= c.AlphaPeriod):
			d.decreaseAt += int64(c.DecreasePeriod)
			if d.cutSeen {
				d.increase = d.tick + int64(c.IncreasePeriod)
				d.cut(c, s)
			}
		default:
			d.alpha = float64((1 - c.Gain) * d.alpha)
			if d.alphaSeen {
				d.alpha += c.Gain
			}
			d.alphaSeen = false
			d.alphaAt += int64(c.AlphaPeriod)
		}
		d.tick = min(d.alphaAt, d.decreaseAt, d.increase)
	}
}

// period returns the longest period of the timers that expire at tick.
func (d *Reaction) period(c *Params) int64 {
	t := int64(0)
	if d.tick == d.increase {
		t = int64(c.IncreasePeriod)
	}
	if d.tick == d.decreaseAt {
		t = max(t, int64(c.DecreasePeriod))
	}
	if d.tick == d.alphaAt {
		t = max(t, int64(c.AlphaPeriod))
	}
	return t
}

// cut lowers the rate by alpha/2, at most MostCut.
func (d *Reaction) cut(c *Params, s *Rate) {
	if c.ClampTarget || d.stage != 0 {
		d.target = s.Rate
	}
	keep := 1 - d.alpha/2
	if c.MostCut > 0 {
		keep = max(keep, 1-c.MostCut)
	}
	s.Set(max(c.MinRate, int64(float64(s.Rate)*keep)))
	d.stage, d.byBytes, d.sent, d.cutSeen = 0, 0, 0, false
}

// raise raises the rate as the firmware does: fast recovery, then additive, then hyper increase.
func (d *Reaction) raise(c *Params, s *Rate) {
	if c.ByteReset > 0 {
		d.stage++
		d.climb(c, s)
		return
	}
	switch {
	case d.stage == c.FastRecovery:
		d.target = min(d.target+c.AI, s.Line)
	case d.stage > c.FastRecovery:
		d.target = min(d.target+c.HAI, s.Line)
	}
	s.Set(s.Rate/2 + d.target/2)
	d.stage++
}

// climb raises the rate as the paper does, by the numbers of increases by time and by bytes since the last
// cut.
func (d *Reaction) climb(c *Params, s *Rate) {
	switch most, least := max(d.stage, d.byBytes), min(d.stage, d.byBytes); {
	case least > c.FastRecovery:
		d.target = min(d.target+int64(least-c.FastRecovery)*c.HAI, s.Line)
	case most >= c.FastRecovery:
		d.target = min(d.target+c.AI, s.Line)
	}
	s.Set(s.Rate/2 + d.target/2)
}

const never = int64(1<<63 - 1)

// NewReaction returns the state of a flow that starts at line rate (bit/s).
func NewReaction(line int64) Reaction {
	return Reaction{alpha: 1, target: line, tick: never, increase: never}
}
