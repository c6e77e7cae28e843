package packet

import (
	"fmt"

	"github.com/simccl/simccl/sim/wire/packet/spec"
)

// Stall says why flows did not end.
type Stall struct {
	Unfinished int
	First      int32 // the first of these flows
	// Deadlock is a cycle of nodes each of which may not send to the next,
	// because the next has paused it; empty if there is none.
	Deadlock []int32
	Stopped  bool // the time to simulate was over
	Failed   int  // flows that gave up after their retries
	// Paused is a node that waits and the neighbour that paused it and has resumed
	// it, in a frame that was lost; -1, -1 if there is none.
	Paused [2]int32
}

// String explains it in a sentence.
func (s *Stall) String() string {
	head := fmt.Sprintf("%d flows did not end, the first is flow %d", s.Unfinished, s.First)
	switch {
	case len(s.Deadlock) > 0:
		return fmt.Sprintf("%s: deadlock, a cycle of links each of which is paused for the next: %s", head, spec.Ring(s.Deadlock))
	case s.Paused[0] >= 0:
		return fmt.Sprintf("%s: node %d is paused, and the frame by which node %d resumed it was lost", head, s.Paused[0], s.Paused[1])
	case s.Stopped:
		return head + ": the time to simulate was over"
	}
	if s.Failed > 0 {
		return fmt.Sprintf("%s: %d of them gave up after their retries", head, s.Failed)
	}
	return head + ": the last frames of a flow were lost, and no timer sends them again"
}

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
				if l := &e.links[id]; l.credit == nil && l.asked>>c&1 != 0 && !s.xoff[p*e.classes+c] {
					return [2]int32{l.from, l.to}
				}
			}
		}
	}
	return [2]int32{-1, -1}
}

// cycle finds a cycle of nodes with paused queues that wait for each other.
func (e *engine) cycle() []int32 {
	state := make([]uint8, e.net.Nodes) // 1: on the path, 2: done
	next := make([][]int32, e.net.Nodes)
	for i := range e.links {
		if l := &e.links[i]; l.waiting&l.paused != 0 {
			next[l.from] = append(next[l.from], l.to)
		}
	}
	var path []int32
	var visit func(v int32) []int32
	visit = func(v int32) []int32 {
		state[v] = 1
		path = append(path, v)
		for _, t := range next[v] {
			if state[t] == 1 {
				for i, p := range path {
					if p == t {
						return path[i:]
					}
				}
			}
			if state[t] == 0 {
				if c := visit(t); c != nil {
					return c
				}
			}
		}
		state[v] = 2
		path = path[:len(path)-1]
		return nil
	}
	for v := range next {
		if state[v] == 0 {
			if c := visit(int32(v)); c != nil {
				return c
			}
		}
	}
	return nil
}
