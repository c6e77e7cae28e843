package packet

import (
	"github.com/simccl/simccl/packet/internal/port"
	"github.com/simccl/simccl/packet/spec"
)

// watch looks at the ports of a switch at the end of a window.
func (e *engine) watch(w *worker, s *switchNode, now int64) {
	c := &e.cfg.Watchdog
	for _, id := range s.out {
		l := &e.links[id]
		for k := 1; k < e.classes && l.Watch != nil; k++ {
			if l.Watch.Poll(k, l.Paused>>k&1 != 0, l.Waiting>>k&1 != 0, now, int64(c.After),
				int64(c.Restore)) {
				w.Watchdogs, l.Stats.Barks = w.Watchdogs+1, l.Stats.Barks+1
				e.flush(w, s, l, uint8(k), now)
			}
		}
	}
}

// flush drops a queue, and resumes those whose frames it held.
func (e *engine) flush(w *worker, s *switchNode, l *link, class uint8, now int64) {
	s.Recount()
	for q := &l.Queues[class]; !q.Empty(); q.Pop(&s.spare) {
		f := q.Front()
		q.Bytes -= int64(f.Size)
		w.Drops, l.Stats.Drops = w.Drops+1, l.Stats.Drops+1
		if e.links[s.in[f.Tag]].Repay(f, now); e.cfg.Buffer.Credits == 0 {
			e.release(w, s, f, now)
		}
	}
	l.Waiting &^= 1 << class
	s.Exact = false
}

// heldBack records the flows of a host that waited for the end of a pause.
func (e *engine) heldBack(h *host, l *link) {
	for _, id := range h.Pairs {
		if s := &e.snd[id]; s.Nxt < s.Frames && s.NextAvail < l.HOL.To && !e.rules.Bound(s, l.HOL.To, never) {
			l.HOL.Delayed(id, e.hops[s.Route+1], s.NextAvail)
		}
	}
}

// lookout looks for deadlocks.
func (e *engine) lookout(now int64) {
	if d := port.Lookout(e.links, e.net.Nodes, &e.locks, now); d.Nodes != nil {
		e.deadlocks = append(e.deadlocks, d)
	}
}

// stall finds out why flows did not end.
func (e *engine) stall() *Stall {
	s := spec.Unfinished(e.result)
	s.Paused, s.Stopped = e.forgotten(), e.next(0) != never
	if !s.Stopped {
		s.Deadlock = port.Cycle(e.links, e.net.Nodes)
	}
	return s
}

// forgotten finds a port that is paused by a neighbour that has resumed it.
func (e *engine) forgotten() [2]int32 {
	for i := range e.switches {
		if x := port.Forgotten(e.links, e.switches[i].in, e.switches[i].Stopped); x != nil {
			return [2]int32{x.From, x.To}
		}
	}
	return [2]int32{-1, -1}
}
