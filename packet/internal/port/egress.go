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

// Egress serves the queues of a switch's ports over a window, one after the other, while further frames
// arrive behind them.
type Egress struct {
	Config   *spec.Config
	Full     uint16             // bytes of frames that last Whole on a link
	Ack      uint16             // and of those that last Ack
	End      int64              // no frame starts then or later
	Calendar *tiebreak.Calendar // records frames that begin, if there is one
	Surely   bool               // no mark is only looked out for
	Later    bool               // marks are drawn in the order of events
	Held     []int64            // of two classes: bytes that came in and wait, by port and class
	Spare    **frames.Piece
	Arrived  []frames.Frame
	From     []uint16  // with Calendar: the port of each
	In       []int32   // links, by port
	Links    []Link    // all
	Flows    *cc.Flows // with HPCC: data frames get records of telemetry
	Behind   []int64   // memory: what the frames of a piece leave behind

	Come    int   // of the keys: what has come
	Bytes   int64 // that were sent, less those that were kept
	Data    int   // frames of data that were sent
	Marks   int   // those that were marked
	Deep    bool  // the queue was so long once that a frame might be marked
	Stopped bool  // the first frame is for others to send: it has a new size, or might be marked
	next    int64 // what has not come does not come before
}

// Begin clears the counters before another port is served.
func (w *Egress) Begin() { w.Come, w.Bytes, w.Data, w.Marks, w.Deep = 0, 0, 0, 0, false }

// Shallow reports whether however long the queue becomes with what has keys, frames of most bytes at most,
// no frame is marked and none deeper than peak bytes or the port's own peak is new.
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

// behind reports whether a frame that arrives exactly when the port becomes free loses the tie: the frame
// that ends then began so long before (ps) that its end was scheduled first.
func (w *Egress) behind(i uint64, before int64) bool {
	return w.Calendar != nil && before > w.Links[w.In[w.From[i]]].Travel(w.Config, w.Arrived[i].Size, w.Full,
		w.Ack)
}

// Keep appends the frames with keys to the queue.
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

// Send sends what waits at a port in the order of its queue, as long as anything does, and counts what comes
// until then. Port and queue are such that no pause, no credit and no other class plays a part.
func (w *Egress) Send(l *Link, q *Queue, keys []uint64) {
	w.next = -never
	for w.Stopped = false; !q.Empty() && l.Free < w.End && !w.Stopped; {
		some := q.Piece()
		for int(l.Wire.Tail-l.Wire.Head)+len(some) > len(l.Wire.Buf) {
			l.Wire.Grow()
		}
		out := l.Wire.Buf[l.Wire.Tail&uint32(len(l.Wire.Buf)-1):] // up to where the ring begins again
		q.Drop(w.some(l, q, some[:min(len(some), len(out))], out, keys), w.Spare)
	}
}

// some is Send for frames that lie one behind the other, as do their places on the cable, and returns how
// many of them have started. It goes over them twice: so little of it stays in registers.
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

// count counts frames that a port has sent, whose tags are the ports by which they came, and lets the
// calendar record them.
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
	row, by, step := w.Calendar.Row(n)
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
	w.Calendar.Took(n)
	l.Begun = last
}

// left is memory for what each of n frames leaves behind, if that counts.
func (w *Egress) left(n int) []int64 {
	if w.Flows == nil {
		return nil
	}
	w.Behind = slices.Grow(w.Behind[:0], n)
	return w.Behind[:n]
}

// stamp adds records to data frames that a port has sent, each of which left so much behind.
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

// draws reports whether a frame is marked behind which so much waits and which is to begin at a time as the
// ith of some, or lets its calendar draw that later.
func (w *Egress) draws(l *Link, f *frames.Frame, behind, at int64, i int) bool {
	p := l.PMax * float64(behind-l.KMin) / float64(l.KMax-l.KMin)
	if !w.Later {
		return rng.Hash(w.Config.Seed, l.ID, rng.Mark, l.Sent+uint64(i)) < p
	}
	if f.Flags&frames.Ack != 0 {
		p = 0 // a number is drawn, too
	}
	w.Calendar.Draw(i, p, at, l.ID, l.Wire.Tail+uint32(i))
	return false
}

// gather counts what comes until a port is free, behind what waits there.
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
