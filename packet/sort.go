package packet

import "github.com/simccl/simccl/packet/internal/arrivals"

// bucketArrivals sorts a window's arrivals by egress port, unless pull has done so; from is the start of the
// window (ps).
func (e *engine) bucketArrivals(w *worker, s *switchNode, from int64) {
	if s.bucketed {
		return
	}
	w.Begin(len(s.out))
	clear(s.control)
	for i := range s.arrived {
		e.bucketFrames(w, s, s.arrived[:i+1], i, uint16(s.entry(e, i)), from)
	}
	w.End()
}

// bucketFrames sorts arrived[n:], which came in at one ingress port, into buckets by egress port. PFC frames
// act on the port at which they arrived.
func (e *engine) bucketFrames(w *worker, s *switchNode, arrived []frame, n int, port uint16, from int64) {
	outs := e.outs
	for ; n < len(arrived); n++ {
		f, to := &arrived[n], port
		if f.Flow >= 0 {
			to = outs[f.Route]
		}
		if f.Class == 0 {
			s.control[to/64] |= 1 << (to % 64)
		}
		w.Add(to, arrivals.Key(f.At-from, n))
	}
}

// portKeys returns the keys of the frames that leave by a port, by time; equal times by ingress port or, with
// EventOrder, by order of events.
func (e *engine) portKeys(w *worker, s *switchNode, port int) []uint64 {
	a := w.Leaving(port, e.lookahead)
	if e.ordered {
		e.orderTies(w, s, a)
	}
	return a
}

// allKeys returns the keys of all arrivals in the order of portKeys.
func (e *engine) allKeys(w *worker, s *switchNode, from int64) []uint64 {
	a := w.Room(len(s.arrived))
	for i := range a {
		a[i] = arrivals.Key(s.arrived[i].At-from, i)
	}
	a = w.All(a, e.lookahead)
	if e.ordered {
		e.orderTies(w, s, a)
	}
	return a
}
