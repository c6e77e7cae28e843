package uec

// timers is a min-heap of the retransmission timers of a host's flows, by deadline, then by the order of
// insertion.
type timers struct {
	heap  []timer
	added int32
}

// timer is a flow's retransmission timer. Times are in ps.
type timer struct {
	at    int64
	order int32 // of insertion
	flow  int32
}

func (t *timer) before(u *timer) bool { return t.at < u.at || t.at == u.at && t.order < u.order }

// first is when a timer is due.
func (h *timers) first() int64 {
	if len(h.heap) == 0 {
		return never
	}
	return h.heap[0].at
}

// flow is whose that is.
func (h *timers) flow() int32 { return h.heap[0].flow }

// add adds a flow's timer.
func (h *timers) add(flow int32, at int64) {
	h.heap = append(h.heap, timer{at, h.added, flow})
	h.added++
	i := len(h.heap) - 1
	for x := h.heap[i]; i > 0; i = (i - 1) / 2 {
		if above := h.heap[(i-1)/2]; x.before(&above) {
			h.heap[i], h.heap[(i-1)/2] = above, x
			continue
		}
		break
	}
}

// move sets the first to a later time.
func (h *timers) move(at int64) {
	h.heap[0].at = at
	h.sink()
}

// drop takes the first out.
func (h *timers) drop() {
	n := len(h.heap) - 1
	h.heap[0], h.heap = h.heap[n], h.heap[:n]
	h.sink()
}

func (h *timers) sink() {
	for i, n := 0, len(h.heap); ; {
		k := 2*i + 1
		if k >= n {
			return
		}
		if k+1 < n && h.heap[k+1].before(&h.heap[k]) {
			k++
		}
		if !h.heap[k].before(&h.heap[i]) {
			return
		}
		h.heap[i], h.heap[k] = h.heap[k], h.heap[i]
		i = k
	}
}
