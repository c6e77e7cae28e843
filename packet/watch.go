package packet

import (
	"github.com/simccl/simccl/packet/internal/port"
	"github.com/simccl/simccl/packet/spec"
)

// watch runs the PFC watchdog of a switch's ports at the end of a window.
func (e *engine) watch(w *worker, s *switchNode, now int64) {
	c := &e.cfg.Watchdog
	for _, id := range s.out {
		l := &e.links[id]
		for k := 1; k < e.classes && l.Watch != nil; k++ {
			if l.Watch.Poll(k, l.Paused>>k&1 != 0, l.Waiting>>k&1 != 0, now, int64(c.After),
				int64(c.Restore)) {
				w.Watchdogs, l.Stats.Triggers = w.Watchdogs+1, l.Stats.Triggers+1
				e.flush(w, s, l, uint8(k), now)
			}
		}
	}
}

// flush drops a queue and frees its buffer, which may resume neighbours.
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

// heldBack charges a pause that ends to the queue pairs of a host that were ready to send during it.
func (e *engine) heldBack(h *host, l *link) {
	for _, id := range h.Pairs {
		if s := &e.snd[id]; s.Nxt < s.Frames && s.NextAvail < l.HOL.To && !e.rules.Bound(s, l.HOL.To, never) {
			l.HOL.Delayed(id, e.hops[s.Route+1], s.NextAvail)
		}
	}
}

// findDeadlock records a new cycle of ports that pause each other and send nothing.
func (e *engine) findDeadlock(now int64) {
	if d := port.FindDeadlock(e.links, e.net.Nodes, &e.locks, now); d.Nodes != nil {
		e.deadlocks = append(e.deadlocks, d)
	}
}

// stall explains why flows have not ended.
func (e *engine) stall() *Stall {
	s := spec.Unfinished(e.result)
	s.Paused, s.Stopped = e.lostResume(), e.next(0) != never
	if !s.Stopped {
		s.Deadlock = port.Cycle(e.links, e.net.Nodes)
	}
	return s
}

// lostResume returns the paused and the far end of the first link that is still paused though the far end has
// sent RESUME, which was lost; -1, -1 if there is none.
func (e *engine) lostResume() [2]int32 {
	for i := range e.switches {
		if x := port.LostResume(e.links, e.switches[i].in, e.switches[i].Stopped); x != nil {
			return [2]int32{x.From, x.To}
		}
	}
	return [2]int32{-1, -1}
}
