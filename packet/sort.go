package packet

import "github.com/simccl/simccl/packet/internal/arrivals"

// bucket finds the ports of all frames that arrived at a switch in a window from a time on, if that was not
// done.
func (e *engine) bucket(w *worker, s *switchNode, from int64) {
	if s.bucketed {
		return
	}
	w.Begin(len(s.out))
	clear(s.control)
	for i := range s.arrived {
		e.sort(w, s, s.arrived[:i+1], i, uint16(s.entry(e, i)), from)
	}
	w.End()
}

// sort puts frames from a place on that came by a port to those that leave by another; PFC frames act
// there.
func (e *engine) sort(w *worker, s *switchNode, arrived []frame, n int, port uint16, from int64) {
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

// leaving returns the keys of the frames that leave by a port, in the order of time, those of
// equal times in that of the ports by which they came or, with EventOrder, of events.
func (e *engine) leaving(w *worker, s *switchNode, port int) []uint64 {
	a := w.Leaving(port, e.look)
	if e.ordered {
		e.untie(w, s, a)
	}
	return a
}

// whole returns the keys of all frames in that order.
func (e *engine) whole(w *worker, s *switchNode, from int64) []uint64 {
	a := w.Room(len(s.arrived))
	for i := range a {
		a[i] = arrivals.Key(s.arrived[i].At-from, i)
	}
	a = w.All(a, e.look)
	if e.ordered {
		e.untie(w, s, a)
	}
	return a
}
