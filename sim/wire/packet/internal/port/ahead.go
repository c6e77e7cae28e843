package port

import (
	"github.com/simccl/simccl/sim/wire/packet/internal/frames"
	"github.com/simccl/simccl/sim/wire/packet/internal/instant"
	"github.com/simccl/simccl/sim/wire/packet/internal/train"
)

// TakeBack moves the frames of a link that do not start before a time back to its feeder, as they travel there, and
// lets no more frames be ahead; it says whether it moved any. With led, which leads from the number of a frame to
// that of the frame before it, they have these.
func (l *Link) TakeBack(feeder *Link, from int64, led func(instant.Number) instant.Number) (moved bool) {
	q := &l.Wire
	if l.Trains > 0 {
		train.Unload(q)
		l.Trains = 0
	}
	for l.Ahead = false; !q.Empty(); l.Sent-- {
		f := q.Last()
		at := f.At - l.Delay - l.Lasts[f.Flags&frames.Ack]
		if at < from {
			l.Free, l.Start, l.Begun = f.At-l.Delay, at, instant.Number(f.Tag)
			break
		}
		q.Tail--
		l.TxBytes -= int64(f.Size)
		f.At, f.Route = at, f.Route-1
		if led != nil {
			f.Tag = uint32(led(instant.Number(f.Tag)))
		}
		feeder.Wire.Insert(f)
		moved = true
	}
	if moved && q.Empty() {
		l.Free = from - 1
	}
	return moved
}

// Both puts a frame that a host sends at a time onto this link and on at once onto the next, which is idle when it
// gets there; with a calendar, in the order of events. The frame does not count as one that travels here. It says
// whether nothing else travels there.
func (l *Link) Both(next *Link, f *frames.Frame, at int64, calendar *instant.Calendar) (only bool) {
	what := f.Flags & frames.Ack
	come, tag := at+l.Lasts[what]+l.Delay, instant.Number(0)
	if calendar != nil {
		l.Start, l.Begun = at, calendar.Sent(at, l.ID, l.Wire.Tail)
		calendar.Happens(l.Begun)
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
