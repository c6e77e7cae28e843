package port

// CulpritTimes sums paused time (ps) by the link whose queue caused it, for the first four such links.
type CulpritTimes [4]struct {
	cause int32 // link + 2; 0: unused entry
	time  int64
}

// Add adds a time (ps) to a cause; a fifth cause is not counted.
func (l *CulpritTimes) Add(cause int32, time int64) {
	for i := range l {
		if x := &l[i]; x.cause == cause+2 || x.cause == 0 {
			x.cause = cause + 2
			x.time += time
			return
		}
	}
}

// Worst returns the link with the most time, or present if no pause has ended.
func (l *CulpritTimes) Worst(present int32) int32 {
	best := 0
	for i := range l {
		if l[i].time > l[best].time {
			best = i
		}
	}
	if l[best].cause == 0 {
		return present
	}
	return l[best].cause - 2
}

// Wait is the time (ps) for which flow Who was blocked by the queue of link Cause without using that link.
type Wait struct {
	Who, Cause int32
	Time       int64
	until      int64 // end of the wait that was added last
}

// Waits holds the first four pairs of flow and cause that were blocked at a port.
type Waits struct {
	list [4]Wait
	n    int
}

// Add adds a wait that ended at until. A flow is charged once for each end, although several of its frames
// may have waited.
func (w *Waits) Add(who, cause int32, until, time int64) {
	for i := range w.list[:w.n] {
		if v := &w.list[i]; v.Who == who && v.Cause == cause {
			if v.until != until {
				v.until = until
				v.Time += time
			}
			return
		}
	}
	if w.n < len(w.list) {
		w.list[w.n] = Wait{who, cause, time, until}
		w.n++
	}
}

// All lists the waits in the order in which they began.
func (w *Waits) All() []Wait { return w.list[:w.n] }

// Pauses records a port's PFC pauses and the flows that they blocked head-of-line.
type Pauses struct {
	from, To int64        // start of the last pause; end of the pause before it
	First    int64        // start of the first pause
	Culprit  int32        // link of the neighbour's deepest queue; -1: unknown
	Behind   CulpritTimes // paused time by culprit
	Blocked  Waits
}

// Begin records the start of a pause, caused by the queue of link culprit.
func (p *Pauses) Begin(at int64, culprit int32) { p.from, p.Culprit = at, culprit }

// End records the end of the pause and charges its time to the culprit.
func (p *Pauses) End(at int64) {
	p.To = at
	p.Behind.Add(p.Culprit, at-p.from)
}

// Delayed charges flow who, ready since a time (ps), if its next hop is another link than the culprit: the
// pause delayed it because of a queue that it does not use.
func (p *Pauses) Delayed(who, next int32, since int64) {
	wait := p.To - max(since, p.from)
	if wait <= 0 || p.Culprit < 0 || next == p.Culprit {
		return
	}
	p.Blocked.Add(who, p.Culprit, p.To, wait)
}
