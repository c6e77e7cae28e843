package packet

import (
	"slices"

	"github.com/simccl/simccl/sim/wire/packet/internal/blame"
	"github.com/simccl/simccl/units"
)

// watched is what the watchdog of a link knows of its classes.
type watched struct {
	since [8]int64 // when a pause, or where it dropped their end, began; -1: none
	drops uint16   // classes that are dropped
}

// watch looks at the ports of a switch at the end of a window.
func (e *engine) watch(w *worker, s *swtch, now int64) {
	c := &e.cfg.Watchdog
	for _, id := range s.out {
		l := &e.links[id]
		if l.watch == nil {
			continue
		}
		for k := 1; k < e.classes; k++ {
			bit, x := uint16(1)<<k, &l.watch.since[k]
			if dropping := l.watch.drops&bit != 0; (l.paused&bit != 0) == dropping {
				*x = -1
				continue
			}
			if *x < 0 {
				*x = now
			}
			switch {
			case l.watch.drops&bit != 0 && now-*x >= int64(c.Restore):
				l.watch.drops &^= bit
				*x = -1
			case l.watch.drops&bit == 0 && l.waiting&bit != 0 && now-*x >= int64(c.After):
				l.watch.drops |= bit
				*x = -1
				w.barks, l.port.barks = w.barks+1, l.port.barks+1
				e.flush(w, s, l, uint8(k), now)
			}
		}
	}
}

// flush drops a queue, and resumes those whose frames it held.
func (e *engine) flush(w *worker, s *swtch, l *link, class uint8, now int64) {
	s.soon = 0
	s.Recount()
	for q := &l.q[class]; !q.empty(); q.pop(&s.spare) {
		f := q.front()
		q.bytes -= int64(f.size)
		w.drops, l.port.drops = w.drops+1, l.port.drops+1
		if in := &e.links[s.in[f.tag]]; in.credit != nil {
			in.repay(f, now)
		} else {
			e.release(w, s, f, now)
		}
	}
	l.waiting &^= 1 << class
	s.Exact = false
}

// deaf says that the watchdog drops what comes to a link in a class.
func (l *link) deaf(class uint8) bool { return l.watch != nil && l.watch.drops>>class&1 != 0 }

// alarm is when the watchdog next has something to do on a link.
func (e *engine) alarm(l *link) int64 {
	t := never
	for k := 1; k < e.classes; k++ {
		if since := l.watch.since[k]; since >= 0 {
			after := e.cfg.Watchdog.After
			if l.watch.drops>>k&1 != 0 {
				after = e.cfg.Watchdog.Restore
			}
			t = min(t, since+int64(after))
		}
	}
	return t
}

// note keeps the times of a link's pauses; before is what was paused.
func (l *link) note(before uint16, f *frame) {
	switch {
	case before == 0 && l.paused != 0:
		if l.hol == nil {
			l.hol, l.odd = &blame.Pauses{First: f.at}, true
		}
		l.hol.Begin(f.at, int32(f.aux)-1)
	case before != 0 && l.paused == 0:
		l.hol.End(f.at)
	}
}

// heldBack takes note of the flows of a host that waited for the end of a pause.
func (e *engine) heldBack(h *host, l *link) {
	for _, id := range h.qps {
		if s := &e.snd[id]; s.nxt < s.frames && s.nextAvail < l.hol.To && !e.windowBound(s, l.hol.To) {
			l.hol.Delayed(id, e.hops[s.route+1], s.nextAvail)
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

// locks is what the look-out for deadlocks knows.
type locks struct {
	all  []Deadlock
	last []int32 // a cycle that may be one
	at   int64
	sent uint64
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
					sent += uint64(l.q[c].head)
				}
			}
		}
	}
	if !held {
		k.last = nil
		return
	}
	c := e.cycle()
	switch {
	case c == nil || !slices.Equal(c, k.last) || sent != k.sent:
		k.last, k.at, k.sent = slices.Clone(c), now, sent
	case !slices.ContainsFunc(k.all, func(d Deadlock) bool { return slices.Equal(d.Nodes, c) }):
		k.all = append(k.all, Deadlock{At: units.Time(k.at), Nodes: slices.Clone(c)})
	}
}
