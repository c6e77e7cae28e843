package uec

import "github.com/simccl/simccl/internal/heap"

// timers is a min-heap of a host's retransmission timers by (deadline, insertion order).
type timers struct {
	heap.Heap[timer]
	added int32
}

// timer is a flow's retransmission timer. Times are in ps.
type timer struct {
	at    int64
	order int32 // of insertion
	flow  int32
}

// Before implements heap.Ordered.
func (t timer) Before(u timer) bool { return t.at < u.at || t.at == u.at && t.order < u.order }

// first returns the first deadline, or never.
func (h *timers) first() int64 {
	if h.Len() == 0 {
		return never
	}
	return h.First().at
}

func (h *timers) add(flow int32, at int64) {
	h.Push(timer{at, h.added, flow})
	h.added++
}

// move postpones the first timer.
func (h *timers) move(at int64) {
	t := h.First()
	t.at = at
	h.Fix(0, t)
}
