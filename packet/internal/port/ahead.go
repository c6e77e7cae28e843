package port

import (
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/tiebreak"
	"github.com/simccl/simccl/packet/spec"
)

// TakeBack undoes Both for frames that start at this link's switch at from or later: it moves them back to
// the feeder's cable, and closes the link for Both. led maps the number of a transmission to its cause's, the
// number that the frame had on the cable before; nil: events have no order. It reports whether a frame was
// moved.
func (l *Link) TakeBack(feeder *Link, from int64, led func(tiebreak.Number) tiebreak.Number) (moved bool) {
	q := &l.Wire
	for l.Ahead = false; !q.Empty(); l.Sent-- {
		f := q.Last()
		at := f.At - l.Delay - l.Lasts[f.Flags&frames.Ack]
		if at < from {
			l.Free, l.Start, l.Begun = f.At-l.Delay, at, tiebreak.Number(f.Tag)
			break
		}
		q.Tail--
		l.TxBytes -= int64(f.Size)
		f.At, f.Route = at, f.Route-1
		if led != nil {
			f.Tag = uint32(led(tiebreak.Number(f.Tag)))
		}
		feeder.Wire.Insert(f)
		moved = true
	}
	if moved && q.Empty() {
		l.Free = from - 1
	}
	return moved
}

// Reopen opens links for Both again and moves the frames on their feeders' cables onto them. It returns false
// if a queue, a pause or a busy port is in the way: the caller then takes everything back. It updates due,
// the arrival of each link's first frame (ps).
func Reopen(c *spec.Config, links []Link, ways, hops []int32, due []int64, calendar *tiebreak.Calendar) bool {
	for _, id := range ways {
		b := &links[id]
		if b.Waiting != 0 || b.Paused != 0 {
			return false
		}
	}
	for _, id := range ways {
		links[id].Ahead = true
	}
	for _, id := range ways {
		a := &links[links[id].Feeder]
		open := a.advance(c, links, hops, calendar)
		if due[a.ID] = a.Wire.First(); !open {
			return false
		}
	}
	for _, id := range ways {
		due[id] = links[id].Wire.First()
	}
	return true
}

// advance moves the acknowledgements on this cable onto the next links of their routes, as if Both had sent
// them. It returns false at the first acknowledgement that would have to wait there.
func (l *Link) advance(c *spec.Config, links []Link, hops []int32, calendar *tiebreak.Calendar) bool {
	for q := &l.Wire; !q.Empty(); q.Head++ {
		f := q.Front()
		if f.Flow < 0 || f.Flags&frames.Ack == 0 {
			return false
		}
		next := &links[hops[f.Route+1]]
		if !next.Ahead || next.Free >= f.At {
			return false
		}
		if next.Sizes[frames.Ack] != f.Size {
			next.Measure(c, frames.Ack, f.Size)
		}
		tag := tiebreak.Number(0)
		if calendar != nil {
			calendar.Fit(1)
			tag = calendar.Plan(tiebreak.Of(tiebreak.Number(f.Tag)).Sends(), f.At)
			next.Start, next.Begun = f.At, tag
		}
		next.onward(f, f.At, tag)
	}
	return true
}

// onward puts a frame that reaches this idle link's port at time come onto its cable.
func (l *Link) onward(f *frames.Frame, come int64, tag tiebreak.Number) {
	l.Sent++
	l.TxBytes += int64(f.Size)
	l.Free = come + l.Lasts[frames.Ack]
	l.Peak = max(l.Peak, int64(f.Size))
	if f.Class != 0 {
		l.Turn = f.Class
	}
	if l.Wire.Full() {
		l.Wire.Grow()
	}
	g := l.Wire.Next()
	g.Set(f, l.Free+l.Delay, uint32(tag))
	g.Route++
}

// Both sends an acknowledgement at a time over this link and, at once, over the next one, which is idle when
// the frame reaches it:
//
//	host --this cable--> switch --next cable--> host
//	at                   come = at + transmission + delay
//
// It reports whether the frame is alone on the next cable.
func (l *Link) Both(next *Link, f *frames.Frame, at int64, calendar *tiebreak.Calendar) (only bool) {
	what := f.Flags & frames.Ack
	come, tag := at+l.Lasts[what]+l.Delay, tiebreak.Number(0)
	if calendar != nil {
		l.Start, l.Begun = at, calendar.Sent(at, l.ID, l.Wire.Tail)
		calendar.SetCause(l.Begun)
		next.Start, next.Begun = come, calendar.Sent(come, next.ID, next.Wire.Tail)
		tag = next.Begun
	}
	l.Sent, next.Sent = l.Sent+1, next.Sent+1
	l.TxBytes, next.TxBytes = l.TxBytes+int64(f.Size), next.TxBytes+int64(f.Size)
	l.Free, next.Free = at+l.Lasts[what], come+next.Lasts[what]
	next.Peak = max(next.Peak, int64(f.Size))
	if f.Class != 0 {
		next.Turn = f.Class
	}
	only = next.Wire.Empty()
	f.Route++
	if next.Wire.Full() {
		next.Wire.Grow()
	}
	next.Wire.Next().Set(f, next.Free+next.Delay, uint32(tag))
	return only
}
