package port

// CulpritTimes is the first few causes with their times.
type CulpritTimes [4]struct {
	cause int32 // and two: 0 is free
	time  int64
}

// Add counts a time for a cause; there is no room for more than the first four.
func (l *CulpritTimes) Add(cause int32, time int64) {
	for i := range l {
		if x := &l[i]; x.cause == cause+2 || x.cause == 0 {
			x.cause = cause + 2
			x.time += time
			return
		}
	}
}

// Worst is the cause with the most time; without any, present.
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

// Wait is how long one waited for a cause.
type Wait struct {
	Who, Cause int32
	Time       int64
	until      int64 // end of the wait that was added last
}

// Waits are the first four that waited.
type Waits struct {
	list [4]Wait
	n    int
}

// Add counts a wait that ended at until, each end once.
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

// Pauses is what a port knows of its pauses: the last one, and whom they blocked.
type Pauses struct {
	from, To int64        // when the last one began; when one before it ended
	First    int64        // when the first one began
	Culprit  int32        // link whose queue was the deepest at the neighbour; -1: not known
	Behind   CulpritTimes // link: time paused behind its queue
	Blocked  Waits
}

// Begin begins a pause.
func (p *Pauses) Begin(at int64, culprit int32) { p.from, p.Culprit = at, culprit }

// End ends it.
func (p *Pauses) End(at int64) {
	p.To = at
	p.Behind.Add(p.Culprit, at-p.from)
}

// Delayed records who started after a wait since a time for the end of a pause: next is
// the link that is taken then.
func (p *Pauses) Delayed(who, next int32, since int64) {
	wait := p.To - max(since, p.from)
	if wait <= 0 || p.Culprit < 0 || next == p.Culprit {
		return
	}
	p.Blocked.Add(who, p.Culprit, p.To, wait)
}
