package port

import (
	"slices"

	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/arrivals"
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/rng"
	"github.com/simccl/simccl/packet/internal/tiebreak"
	"github.com/simccl/simccl/packet/spec"
)

// Egress transmits the queued frames of a switch's ports over one window, while arrivals join behind them. It
// is packet's hot loop, so the state that each frame touches is kept in registers.
type Egress struct {
	Config   *spec.Config
	Full     uint16             // bytes of a full data frame, transmitted in Link.Whole
	Ack      uint16             // bytes of an acknowledgement, transmitted in Link.Ack
	End      int64              // end of the window: no frame starts then or later
	Calendar *tiebreak.Calendar // records starts of frames; nil: events have no order
	Surely   bool               // marks are applied; false: Send stops before the first possible mark
	Later    bool               // marks are drawn after the window, in the order of events
	Held     []int64            // bytes in the shared buffer, by port and class (two classes)
	Spare    **frames.Piece
	Arrived  []frames.Frame
	From     []uint16  // ingress port of each of Arrived, with Calendar
	In       []int32   // incoming links, by port
	Links    []Link    // all links
	Flows    *cc.Flows // with HPCC: INT telemetry of data frames
	Behind   []int64   // scratch: queue length behind each frame of a piece

	Come  int   // number of keys whose frames have arrived
	Bytes int64 // bytes sent minus bytes queued
	Data  int   // data frames sent
	Marks int   // data frames marked
	Deep  bool  // a queue was long enough for a mark
	// Send stopped at a frame that the caller must send: its transmission time is not cached, or it may be
	// marked
	Stopped bool
	next    int64 // arrival of the first frame that is still to come
}

// Begin resets the counters for the next port.
func (w *Egress) Begin() { w.Come, w.Bytes, w.Data, w.Marks, w.Deep = 0, 0, 0, 0, false }

// Shallow reports whether a window's arrivals cannot lengthen a port's queue beyond its marking threshold,
// nor beyond max(peak, the port's own peak): then queue lengths need not be tracked. most is the largest
// frame's bytes.
func (w *Egress) Shallow(l *Link, keys []uint64, most, peak int64) bool {
	room := max(l.Peak, peak) - l.Queues[1].Bytes
	if l.Marks {
		room = min(room, l.Alert-l.Queues[1].Bytes)
	}
	if room >= int64(len(keys))*most {
		return true
	}
	for i := 0; i < len(keys) && room >= 0; i++ {
		room -= int64(w.Arrived[keys[i]&arrivals.Place].Size)
	}
	return room >= 0
}

// behind reports whether a frame that arrives exactly when the port becomes free loses the tie: the
// transmission that ends then began before ps earlier, so that its end was scheduled first.
func (w *Egress) behind(i uint64, before int64) bool {
	return w.Calendar != nil && before > w.Links[w.In[w.From[i]]].Travel(w.Config, w.Arrived[i].Size, w.Full,
		w.Ack)
}

// Keep appends the frames with the given keys to the queue.
func (w *Egress) Keep(q *Queue, keys []uint64) {
	bytes, arrived, from, held := int64(0), w.Arrived, w.From, w.Held
	for len(keys) > 0 {
		room := q.Room(w.Spare)
		some := keys[:min(len(keys), len(room))]
		for i, key := range some {
			k, f := key&arrivals.Place, &room[i]
			*f = arrived[k]
			if k < uint64(len(from)) {
				f.Tag = uint32(from[k])
			}
			size := int64(f.Size)
			bytes += size
			held[2*f.Tag+1] += size
		}
		q.Came(len(some))
		keys = keys[len(some):]
	}
	q.Bytes += bytes
	w.Bytes -= bytes
}

// Send transmits queued frames in FIFO order until the queue is empty, the window ends or Stopped. Arrivals
// before each start count in the queue's length. The port is unpaused, without credits, and has one class.
func (w *Egress) Send(l *Link, q *Queue, keys []uint64) {
	w.next = -never
	for w.Stopped = false; !q.Empty() && l.Free < w.End && !w.Stopped; {
		some := q.Piece()
		for int(l.Wire.Tail-l.Wire.Head)+len(some) > len(l.Wire.Buf) {
			l.Wire.Grow()
		}
		out := l.Wire.Buf[l.Wire.Tail&uint32(len(l.Wire.Buf)-1):] // up to the end of the ring's memory
		q.Drop(w.some(l, q, some[:min(len(some), len(out))], out, keys), w.Spare)
	}
}

// some is Send for frames that are contiguous both in the queue and in out, their places on the cable. It
// returns how many have started. A second pass (count) does the bookkeeping: two short loops keep their state
// in registers.
func (w *Egress) some(l *Link, q *Queue, some, out []frames.Frame, keys []uint64) (n int) {
	free, start, bytes, alert, left := l.Free, l.Start, q.Bytes, l.Alert, w.left(len(some))
	if !l.Marks {
		alert = never
	}
	out = out[:len(some)]
	for i := range some {
		if free >= w.End {
			break
		}
		if w.next <= free {
			bytes = w.gather(l, keys, free, start, bytes)
		}
		f := &some[i]
		what, size := f.Flags&frames.Ack, int64(f.Size)
		if l.Sizes[what] != f.Size {
			w.Stopped = true
			break
		}
		if behind := bytes - size; behind > alert {
			if !w.Surely {
				w.Stopped = true
				break
			}
			if behind > l.KMin && (behind > l.KMax || w.draws(l, f, behind, free, i)) {
				f.Flags |= (what ^ 1) * frames.CE
				w.Marks += int(what ^ 1)
			}
			w.Deep = true
		}
		bytes -= size
		if i < len(left) {
			left[i] = bytes
		}
		start = free
		free += l.Lasts[what]
		g := &out[i]
		*g = *f
		g.At = free + l.Delay
		n = i + 1
	}
	if q.Bytes = bytes; n > 0 {
		if w.Flows != nil {
			w.stamp(l, out[:n], left)
		}
		w.count(l, out[:n])
		l.Free, l.Start = free, start
	}
	return n
}

// count does the bookkeeping of sent frames: buffer, counters, and the calendar's record of each start.
// Before, frame tags are ingress ports; after, numbers of transmissions.
func (w *Egress) count(l *Link, sent []frames.Frame) {
	held, acks := w.Held, 0
	for i := range sent {
		f := &sent[i]
		held[2*f.Tag+1] -= int64(f.Size)
		acks += int(f.Flags & frames.Ack)
		f.Tag = 0
	}
	n := len(sent)
	data := int64(n-acks) * int64(l.Sizes[0])
	l.Wire.Tail, l.Sent, l.Data = l.Wire.Tail+uint32(n), l.Sent+uint64(n), l.Data+data
	data += int64(acks) * int64(l.Sizes[1])
	l.TxBytes, w.Bytes, w.Data = l.TxBytes+data, w.Bytes+data, w.Data+n-acks
	if w.Calendar == nil {
		return
	}
	row, by, step := w.Calendar.Reserve(n)
	last, from, start := l.Begun, w.Calendar.From(), l.Free
	for i := range sent {
		if i >= len(row) {
			break
		}
		row[i] = tiebreak.Began(last, max(start, from))
		by = (by + step) &^ tiebreak.None
		last, start = by, sent[i].At-l.Delay
		sent[i].Tag = uint32(by)
	}
	w.Calendar.Commit(n)
	l.Begun = last
}

// left returns scratch memory for the queue lengths of n frames, or nil where no telemetry needs them.
func (w *Egress) left(n int) []int64 {
	if w.Flows == nil {
		return nil
	}
	w.Behind = slices.Grow(w.Behind[:0], n)
	return w.Behind[:n]
}

// stamp adds HPCC telemetry (time, bytes sent, queue length) to sent data frames.
func (w *Egress) stamp(l *Link, sent []frames.Frame, left []int64) {
	before, bytes := l.Delay+l.Lasts[0], l.TxBytes
	for i := range sent {
		f := &sent[i]
		if f.Flags&frames.Ack == 0 && i < len(left) {
			f.Aux = w.Flows.Stamp(f.Aux, w.Flows.Record(f.At-before, bytes, left[i]), l.Coded)
		}
		bytes += int64(f.Size)
	}
}

// draws draws the RED mark of the i-th frame of a batch, which starts at time at. With Later it records the
// draw for the end of the window and returns false.
func (w *Egress) draws(l *Link, f *frames.Frame, behind, at int64, i int) bool {
	p := l.PMax * float64(behind-l.KMin) / float64(l.KMax-l.KMin)
	if !w.Later {
		return rng.Hash(w.Config.Seed, l.ID, rng.Mark, l.Sent+uint64(i)) < p
	}
	if f.Flags&frames.Ack != 0 {
		p = 0 // ns-3 draws a number here too
	}
	w.Calendar.Draw(i, p, at, l.ID, l.Wire.Tail+uint32(i))
	return false
}

// gather counts arrivals before the port becomes free and returns the queue's bytes with them.
func (w *Egress) gather(l *Link, keys []uint64, free, start, bytes int64) int64 {
	come, arrived := w.Come, w.Arrived
	w.next = never
	for ; come < len(keys); come++ {
		i := keys[come] & arrivals.Place
		f := &arrived[i]
		if f.At >= free {
			if f.At > free || w.behind(i, free-start) {
				w.next = f.At
				break
			}
		}
		bytes += int64(f.Size)
		l.Peak = max(l.Peak, bytes)
	}
	w.Come = come
	return bytes
}
