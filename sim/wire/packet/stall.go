package packet

import (
	"fmt"
	"strings"
)

// Stall says why flows did not end.
type Stall struct {
	Unfinished int
	First      int32 // the first of these flows
	// Deadlock is a cycle of nodes each of which may not send to the next,
	// because the next has paused it; empty if there is none.
	Deadlock []int32
	Stopped  bool // the time to simulate was over
}

// String explains it in a sentence.
func (s *Stall) String() string {
	head := fmt.Sprintf("%d flows did not end, the first is flow %d", s.Unfinished, s.First)
	switch {
	case len(s.Deadlock) > 0:
		var b strings.Builder
		for _, n := range s.Deadlock {
			fmt.Fprintf(&b, "%d > ", n)
		}
		return fmt.Sprintf("%s: deadlock, nodes pause each other in a cycle: %s%d", head, b.String(), s.Deadlock[0])
	case s.Stopped:
		return head + ": the time to simulate was over"
	}
	return head + ": the last frames of a flow were lost, and no timer sends them again"
}

// stall finds out why flows did not end.
func (e *engine) stall() *Stall {
	s := &Stall{First: -1, Stopped: e.next(0) != never}
	for i := range e.result {
		if !e.result[i].Done {
			if s.First < 0 {
				s.First = int32(i)
			}
			s.Unfinished++
		}
	}
	if !s.Stopped {
		s.Deadlock = e.cycle()
	}
	return s
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
