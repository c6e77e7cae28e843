package packet

import (
	"slices"

	"github.com/simccl/simccl/sim/wire/packet/internal/blame"
	"github.com/simccl/simccl/sim/wire/packet/spec"
	"github.com/simccl/simccl/units"
)

// watch looks at the ports of a switch at the end of a window.
func (e *engine) watch(w *worker, s *swtch, now int64) {
	c := &e.cfg.Watchdog
	for _, id := range s.out {
		l := &e.links[id]
		for k := 1; k < e.classes && l.watch != nil; k++ {
			if l.watch.Look(k, l.paused>>k&1 != 0, l.waiting>>k&1 != 0, now, int64(c.After), int64(c.Restore)) {
				w.Watchdogs, l.port.barks = w.Watchdogs+1, l.port.barks+1
				e.flush(w, s, l, uint8(k), now)
			}
		}
	}
}

// flush drops a queue, and resumes those whose frames it held.
func (e *engine) flush(w *worker, s *swtch, l *link, class uint8, now int64) {
	s.soon = 0
	s.Recount()
	for q := &l.q[class]; !q.Empty(); q.Pop(&s.spare) {
		f := q.Front()
		q.bytes -= int64(f.Size)
		w.Drops, l.port.drops = w.Drops+1, l.port.drops+1
		if in := &e.links[s.in[f.Tag]]; in.credit != nil {
			in.repay(f, now)
		} else {
			e.release(w, s, f, now)
		}
	}
	l.waiting &^= 1 << class
	s.Exact = false
}

// note keeps the times of a link's pauses; before is what was paused.
func (l *link) note(before uint16, f *frame) {
	switch {
	case before == 0 && l.paused != 0:
		if l.hol == nil {
			l.hol, l.odd = &blame.Pauses{First: f.At}, true
		}
		l.hol.Begin(f.At, int32(f.Aux)-1)
	case before != 0 && l.paused == 0:
		l.hol.End(f.At)
	}
}

// heldBack takes note of the flows of a host that waited for the end of a pause.
func (e *engine) heldBack(h *host, l *link) {
	for _, id := range h.Pairs {
		if s := &e.snd[id]; s.Nxt < s.Frames && s.NextAvail < l.hol.To && !e.rules.Bound(s, l.hol.To) {
			l.hol.Delayed(id, e.hops[s.Route+1], s.NextAvail)
		}
	}
}

// blocked lists head-of-line blocking, the longest first.
func (e *engine) blocked() (all []Blocked) {
	for i := range e.links {
		l := &e.links[i]
		if l.hol == nil {
			continue
		}
		for _, v := range l.hol.Blocked.All() {
			c := &e.links[v.Cause]
			all = append(all, Blocked{Flow: v.Who, Link: [2]int32{l.from, l.to}, Behind: [2]int32{c.from, c.to}, Time: units.Time(v.Time)})
		}
	}
	slices.SortStableFunc(all, func(a, b Blocked) int { return int(min(max(b.Time-a.Time, -1), 1)) })
	return all
}

// deepest is the port of a switch with the longest queue of a class.
func (e *engine) deepest(s *swtch, class uint8) int32 {
	best := s.out[0]
	for _, id := range s.out {
		if e.links[id].q[class].bytes > e.links[best].q[class].bytes {
			best = id
		}
	}
	return best
}

// lookout looks for deadlocks.
func (e *engine) lookout(now int64) {
	k := &e.locks
	held, sent := false, uint64(0)
	for i := range e.links {
		if l := &e.links[i]; l.waiting&l.paused != 0 && l.credit == nil {
			held = true
			for c := range l.q {
				if l.paused>>c&1 != 0 {
					sent += uint64(l.q[c].Head)
				}
			}
		}
	}
	if !held {
		k.Forget()
	} else if c, at, is := k.See(e.cycle(), sent, now); is {
		e.deadlocks = append(e.deadlocks, Deadlock{At: units.Time(at), Nodes: c})
	}
}

// stall finds out why flows did not end.
func (e *engine) stall() *Stall {
	s := spec.Unfinished(e.result)
	s.Paused, s.Stopped = e.forgotten(), e.next(0) != never
	if !s.Stopped {
		s.Deadlock = e.cycle()
	}
	return s
}

// forgotten finds a port that is paused by a neighbour that has resumed it.
func (e *engine) forgotten() [2]int32 {
	for i := range e.switches {
		s := &e.switches[i]
		for p, id := range s.in {
			for c := 1; c < e.classes; c++ {
				if l := &e.links[id]; l.credit == nil && l.asked>>c&1 != 0 && !s.Stopped(p, c) {
					return [2]int32{l.from, l.to}
				}
			}
		}
	}
	return [2]int32{-1, -1}
}

// cycle finds a cycle of nodes with paused queues that wait for each other.
func (e *engine) cycle() []int32 {
	next := make([][]int32, e.net.Nodes)
	for i := range e.links {
		if l := &e.links[i]; l.waiting&l.paused != 0 {
			next[l.from] = append(next[l.from], l.to)
		}
	}
	return blame.Cycle(next)
}
