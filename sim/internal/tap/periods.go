package tap

import (
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// gap is where a run goes on later by so many periods than its clock says: they
// were counted, not simulated.
type gap struct{ at, length units.Time }

// stretched gives events the time that passes in place of the engine's clock: what
// comes after a gap is later by its length, and what was in progress lasts through it.
// So arrows, nesting and order stay.
type stretched struct {
	trace.Sink
	gaps []gap // by time, since the operation began
	args []trace.Arg
}

// passed converts a time of the engine's clock, which skips the periods that were counted, to the time with
// them.
func (s *stretched) passed(at units.Time) units.Time {
	later := units.Time(0)
	for _, g := range s.gaps {
		if at > g.at {
			later += g.length
		}
	}
	return at + later
}

// clock is the inverse of passed: the engine's time at a time with all periods.
func (s *stretched) clock(at units.Time) units.Time {
	for _, g := range s.gaps {
		if at > g.at {
			at = max(g.at, at-g.length)
		}
	}
	return at
}

// Emit implements trace.Sink.
func (s *stretched) Emit(e *trace.Event) {
	start, end := s.passed(e.Start), s.passed(e.Start+e.Dur)
	through := end - start - e.Dur
	if e.Phase != trace.Slice || through == 0 {
		e.Start = start
		s.Sink.Emit(e)
		return
	}
	moved := *e
	moved.Start, moved.Dur = start, end-start
	switch e.Cat {
	case "NET", "P2P_XFER", "NET_IB", "NET_SOCK", "network": // whose terms add up
		s.args = append(append(s.args[:0], e.Args...),
			trace.Num("periods_us", float64(through/trace.Tick)/1000))
		moved.Args = s.args
	case "PROXY":
		if e.Name == "Idle" { // in the periods it is idle at times
			moved.Dur = max(0, s.first(e.Start)-e.Start)
		}
	}
	s.Sink.Emit(&moved)
}

// first is where the next gap is.
func (s *stretched) first(after units.Time) units.Time {
	for _, g := range s.gaps {
		if g.at >= after {
			return g.at
		}
	}
	return after
}

// kept is what was known when the state was kept that the next period begins with.
type kept struct {
	valid bool
	sums  []nccl.Terms   // by group
	ops   []nccl.ProxyOp // of both ends of each connection
	rates []float64      // by link: its integral
}

// linkRate is what a link carried, for its mean.
type linkRate struct {
	last float64 // GB/s
	at   units.Time
	sum  float64 // GB/s · ps
}

// flow notes a link's new rate.
func (l *linkRate) flow(at units.Time, gbps float64) {
	l.sum += l.last * float64(at-l.at)
	l.last, l.at = gbps, at
}

// Repeats implements engine.Observer: periods are counted where they are shown as such.
func (t *Tracer) Repeats() bool { return t.stretch != nil }

// Keep implements engine.Observer.
func (t *Tracer) Keep() {
	k := &t.kept
	if k.valid = t.open; !k.valid {
		return
	}
	k.sums, k.ops, k.rates = k.sums[:0], k.ops[:0], k.rates[:0]
	for i := range t.groups {
		k.sums = append(k.sums, t.groups[i].sum)
	}
	for _, ct := range t.conns {
		for d := range 2 {
			var op nccl.ProxyOp
			if ct != nil && ct.wire != nil {
				op = ct.wire.ends[d].op
			}
			k.ops = append(k.ops, op)
		}
	}
	for i := range t.rates {
		l := &t.rates[i]
		l.flow(t.e.Queue.Now, l.last)
		k.rates = append(k.rates, l.sum)
	}
}

// Period implements engine.Observer: the period is drawn with a note that it comes
// again, then the time that those take. Sums of the operation have them too, links
// their mean.
func (t *Tracer) Period(ev engine.PeriodEvent) {
	now := t.e.Queue.Now
	total := units.Time(ev.Times) * (now - ev.From)
	if !t.open || now <= t.shift {
		t.before += total
		return
	}
	// whole ones, so that what is in a slice stays in it
	ticks := (t.through+total)/trace.Tick - t.through/trace.Tick
	t.through += total
	from, at, length := max(0, ev.From-t.shift), now-t.shift, ticks*trace.Tick
	if length == 0 {
		return
	}
	means := t.means(now, now-ev.From)
	for l, mean := range means {
		t.rec.Rate(l, at, mean)
	}
	p := nccl.Period{Times: ev.Times, Length: now - ev.From}
	t.rec.Period(from, at, p, false)
	t.stretch.gaps = append(t.stretch.gaps, gap{at, length})
	t.rec.Period(at, at+1, p, true)
	for l := range means {
		t.rec.Rate(l, at+1, t.rates[l].last)
	}
	if t.kept.valid {
		t.multiply(ev.Times)
	}
}

// means are the mean rates of links over the last period, in GB/s, by handle.
func (t *Tracer) means(now, period units.Time) []float64 {
	out := make([]float64, 0, len(t.rates))
	for i := range t.rates {
		l := &t.rates[i]
		l.flow(now, l.last)
		before := 0.0
		if i < len(t.kept.rates) && t.kept.valid {
			before = t.kept.rates[i]
		}
		out = append(out, (l.sum-before)/float64(period))
	}
	return out
}

// multiply adds to the operation's sums what the last period added, so many times.
func (t *Tracer) multiply(times int64) {
	for i := range t.groups {
		sum := &t.groups[i].sum
		for j := range sum {
			sum[j] += (sum[j] - t.kept.sums[i][j]) * units.Time(times)
		}
	}
	for i, ct := range t.conns {
		if ct == nil || ct.wire == nil {
			continue
		}
		for d := range ct.wire.ends {
			op, was := &ct.wire.ends[d].op, &t.kept.ops[2*i+d]
			op.Steps += (op.Steps - was.Steps) * times
			op.TransSize += (op.TransSize - was.TransSize) * units.Bytes(times)
		}
	}
}
