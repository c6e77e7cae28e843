package port

import "slices"

// cycleAmong returns a cycle of the graph in which next[v] lists the nodes that node v waits for, or nil.
func cycleAmong(next [][]int32) []int32 {
	state := make([]uint8, len(next)) // 1: on the path, 2: done
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

// Deadlocks distinguishes a deadlock from a passing cycle of pauses: the same cycle is found twice, and no
// paused queue has sent a frame in between.
type Deadlocks struct {
	known [][]int32
	last  []int32 // the last cycle found
	at    int64
	sent  uint64
}

// Reset drops the candidate: no queue is blocked now.
func (k *Deadlocks) Reset() { k.last = nil }

// Observe takes the present cycle (nil: none) and the number of frames that its queues have sent. It returns
// a deadlock when it is first confirmed, with the time of its first observation.
func (k *Deadlocks) Observe(c []int32, sent uint64, now int64) (nodes []int32, at int64, is bool) {
	switch {
	case c == nil || !slices.Equal(c, k.last) || sent != k.sent:
		k.last, k.at, k.sent = slices.Clone(c), now, sent
	case !slices.ContainsFunc(k.known, func(x []int32) bool { return slices.Equal(x, c) }):
		k.known = append(k.known, slices.Clone(c))
		return slices.Clone(c), k.at, true
	}
	return nil, 0, false
}
