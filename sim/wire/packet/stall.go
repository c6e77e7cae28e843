package packet

import "github.com/simccl/simccl/sim/wire/packet/internal/blame"

// stall finds out why flows did not end.
func (e *engine) stall() *Stall {
	s := &Stall{First: -1, Paused: e.forgotten(), Stopped: e.next(0) != never}
	for i := range e.result {
		if !e.result[i].Done {
			if s.First < 0 {
				s.First = int32(i)
			}
			s.Unfinished++
			if e.result[i].Failed {
				s.Failed++
			}
		}
	}
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
