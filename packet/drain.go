package packet

import (
	"github.com/simccl/simccl/packet/internal/arrivals"
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/port"
	"github.com/simccl/simccl/packet/internal/tiebreak"
)

// drainPort simulates a window of one unpaused port with one data class. The window's arrivals are known in
// advance and sorted, so the queue is an interval of keys, and a frame is copied into a queue only if it is
// left over at the end:
//
//	keys:  started | come, waiting | still to come
//	               ^begun          ^come
func (e *engine) drainPort(w *worker, s *switchNode, l *link, keys []uint64, end int64) {
	q, come, begun := &l.Queues[1], 0, 0 // numbers of keys whose frames have come, and have started
	short, arrived := len(keys) <= 3 && q.Empty(), s.arrived
	if !short && e.maxFrame != all && w.ports.Shallow(l, keys, e.maxFrame, w.peak-1) {
		e.drainUnmarked(w, s, l, keys, end)
		return
	}
	if !short {
		come = e.deplete(w, s, l, keys, end)
	}
	for {
		if come == begun && q.Empty() {
			for ; come < len(keys); come++ { // frames that find the port idle
				f := &arrived[keys[come]&arrivals.Place]
				if l.Free >= f.At {
					break
				}
				e.noteArrival(w, tiebreak.Number(f.Tag))
				l.Peak = max(l.Peak, int64(f.Size))
				e.transmit(w, l, f, f.At, 0)
			}
			if begun = come; come == len(keys) {
				break
			}
		}
		if come < len(keys) {
			come = e.gather(s, l, q, keys, begun, come)
		}
		if l.Free >= end {
			break
		}
		e.noteCompletion(w, l)
		if q.Empty() {
			f := &arrived[keys[begun]&arrivals.Place]
			begun++
			q.Bytes -= int64(f.Size)
			e.transmit(w, l, f, l.Free, q.Bytes)
		} else {
			e.dequeueHead(w, s, l, q)
		}
	}
	if e.onlyDeepestPeak {
		w.peak = max(w.peak, l.Peak)
	}
	for _, key := range keys[begun:come] { // gather has counted these frames' bytes
		q.Bytes -= int64(arrived[key&arrivals.Place].Size)
	}
	e.enqueueRest(w, s, l, q, keys[begun:come])
}

// drainUnmarked is drainPort where the queue's length has no effect: it cannot reach the marking threshold
// nor a new reported peak.
func (e *engine) drainUnmarked(w *worker, s *switchNode, l *link, keys []uint64, end int64) {
	q := &l.Queues[1]
	e.deplete(w, s, l, nil, end)
	e.enqueueRest(w, s, l, q, keys[e.forwardAll(w, s, l, keys, end):])
}

// forwardAll transmits the frames of keys that start before end (ps) from an empty queue, and returns their
// number. The result is that of transmit for each frame, without queueing.
func (e *engine) forwardAll(w *worker, s *switchNode, l *link, keys []uint64, end int64) (n int) {
	q, first := &l.Wire, l.Wire.Tail
	for int(q.Tail-q.Head)+len(keys) > len(q.Buf) {
		q.Grow()
	}
	for buf, arrived := q.Buf, s.arrived; n < len(keys); {
		some := buf[q.Tail&uint32(len(buf)-1):] // up to the end of the ring's memory
		next := keys[n:min(n+len(some), len(keys))]
		some = some[:len(next)]
		for i, key := range next {
			some[i] = arrived[key&arrivals.Place]
		}
		k := e.burst(w, l, some, end)
		if n += k; k == len(some) {
			continue
		}
		if l.Free >= end {
			break
		}
		l.Measure(e.cfg, some[k].Flags&flagAck, some[k].Size)
	}
	if n > 0 && q.Head == first {
		e.due[l.ID] = q.Front().At
	}
	return n
}

// burst transmits frames that are already copied to their places on the cable, and returns their number. It
// stops before a frame of a size whose transmission time is not cached.
func (e *engine) burst(w *worker, l *link, some []frame, end int64) int {
	p := port.Burst{Free: l.Free, End: end, Delay: l.Delay, Lasts: &l.Lasts, Sizes: &l.Sizes, Start: l.Start,
		Begun: l.Begun, Calendar: w.order}
	p.Send(some)
	l.Free, l.Start, l.Begun, l.Wire.Tail = p.Free, p.Start, p.Begun, l.Wire.Tail+uint32(p.Sent)
	data := int64(p.Sent-p.Acks) * int64(l.Sizes[0])
	w.DataPacketHops += int64(p.Sent - p.Acks)
	l.Data += data
	l.Sent += uint64(p.Sent)
	l.TxBytes += data + int64(p.Acks)*int64(l.Sizes[1])
	return p.Sent
}

// enqueueRest appends the frames that arrived but did not start to the queue, and updates the port's busy
// bit.
func (e *engine) enqueueRest(w *worker, s *switchNode, l *link, q *queue, keys []uint64) {
	if len(keys) > 0 {
		w.ports.Begin()
		w.ports.Keep(q, keys)
		s.Subtract(w.ports.Bytes)
	}
	p := l.FromPort
	if s.busy[p/64] &^= 1 << (p % 64); q.Empty() {
		l.Waiting = 0
		return
	}
	l.Waiting = 1 << 1
	s.busy[p/64] |= 1 << (p % 64)
}

// openPorts sets the worker's egress loop up for a window of a switch.
func (e *engine) openPorts(w *worker, s *switchNode, end int64) {
	w.ports = port.Egress{Config: e.cfg, Full: e.full, Ack: e.ack, End: end, Surely: e.ordered ||
		!e.cfg.EventOrder, Later: e.streams != nil, Held: s.Held(), Spare: &s.spare, Arrived: s.arrived,
		In: s.in, Links: e.links, Behind: w.ports.Behind}
	if e.cfg.CC.Kind == HPCC {
		w.ports.Flows = &e.controls
	}
	if e.ordered {
		w.ports.Calendar, w.ports.From = &w.Calendar, s.from
	}
}

// deplete transmits queued frames while any are left and start before the window ends. It returns how many of
// keys have come by then.
func (e *engine) deplete(w *worker, s *switchNode, l *link, keys []uint64, end int64) int {
	p, q := &w.ports, &l.Queues[1]
	if p.Begin(); q.Empty() {
		return 0
	}
	for {
		if p.Send(l, q, keys); !p.Stopped {
			break
		}
		e.noteCompletion(w, l)
		e.dequeueHead(w, s, l, q)
	}
	if !l.Wire.Empty() {
		e.due[l.ID] = l.Wire.Front().At
	}
	w.again = w.again || p.Deep
	s.Subtract(p.Bytes)
	w.DataPacketHops += int64(p.Data)
	w.Marks += int64(p.Marks)
	l.Stats.Marks += int64(p.Marks)
	return p.Come
}

// gather counts the bytes of frames that arrive before the port becomes free: keys before come have arrived,
// keys from begun on wait. It returns the new come. A frame that arrives at the very instant counts as later
// if its arrival was scheduled after the end of the transmission.
func (e *engine) gather(s *switchNode, l *link, q *queue, keys []uint64, begun, come int) int {
	free, bytes, peak, arrived := l.Free, q.Bytes, l.Peak, s.arrived
	for ; come < len(keys); come++ {
		i := keys[come] & arrivals.Place
		f := &arrived[i]
		if f.At >= free {
			if f.At > free || e.ordered && (come > begun || !q.Empty()) &&
				free-l.Start > e.travel(s.in[s.from[i]], f.Size) {
				break
			}
		}
		bytes += int64(f.Size)
		peak = max(peak, bytes)
	}
	q.Bytes, l.Peak = bytes, peak
	return come
}

// dequeueHead starts transmission of the queue's first frame.
func (e *engine) dequeueHead(w *worker, s *switchNode, l *link, q *queue) {
	f := q.Front()
	q.Pop(&s.spare)
	q.Bytes -= int64(f.Size)
	s.Add(f.Tag, 1, -int64(f.Size))
	e.transmit(w, l, f, l.Free, q.Bytes)
}

// relay simulates a window of a switch with two ports and no pauses: frames that arrive at one port leave by
// the other, straight off the link. It returns the number of frames, or -1 where the general path is needed.
func (e *engine) relay(w *worker, s *switchNode, end int64) (busy int) {
	if len(s.in) != 2 || e.noFastPath || e.egressPerFrame || e.classes != 2 || e.cfg.Buffer.Credits > 0 {
		return -1
	}
	var to [2]uint32
	var inOrder bool
	for p, id := range s.in {
		l, x := &e.links[id], &e.links[s.out[1-p]]
		if to[p], s.Arriving[p], inOrder = l.Wire.Upto(end); !inOrder || l.Lossy || x.Odd ||
			(x.Paused|x.Waiting&1) != 0 {
			return -1
		}
	}
	if s.Total = s.Arriving[0] + s.Arriving[1]; !s.Calm() {
		return -1
	}
	if e.ordered {
		e.noteRoot(w, e.nodeRoot(s.node))
	}
	arrived, from := s.arrived, s.from
	for p, id := range s.out {
		l, x := &e.links[s.in[1-p]], &e.links[id]
		s.arrived, s.from = l.Wire.Between(l.Wire.Head, to[1-p], &w.arrived), w.from[:0]
		keys := w.Room(len(s.arrived))
		s.from = frames.Onward(s.arrived, keys, s.from, uint16(1-p), e.ordered)
		e.openPorts(w, s, end)
		if w.from = s.from; len(keys) > 0 || x.Waiting != 0 {
			e.drainPort(w, s, x, keys, end)
		}
		l.Wire.Head = to[1-p]
		e.due[l.ID] = l.Wire.First()
		busy += len(keys)
	}
	s.arrived, s.from = arrived, from
	return busy
}
