package port

import (
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/parted"
	"github.com/simccl/simccl/packet/internal/train"
	"github.com/simccl/simccl/packet/spec"
)

// Depart puts a train on the cable whose first frame starts at a time, and the others as they came. The last
// that is there is not before from, where the two may become one.
func (l *Link) Depart(f *frames.Frame, at, from int64) {
	n, size, what := train.Frames(f), int64(f.Size), f.Flags&frames.Ack
	l.Sent += uint64(n)
	l.TxBytes += n * size
	l.Free = train.Last(f) - f.At + at + l.Lasts[what]
	g := *f
	g.At, g.Tag = at+l.Lasts[what]+l.Delay, 0
	if !train.Push(&l.Wire, &g, from) {
		l.Trains++
	}
}

// Line is the port for frames like f.
func (l *Link) Line(c *spec.Config, f *frames.Frame) train.Line {
	what := f.Flags & frames.Ack
	if l.Sizes[what] != f.Size {
		l.Measure(c, what, f.Size)
	}
	return train.Line{Free: l.Free, Lasts: l.Lasts[what]}
}

// Passes says that the port is free whenever something comes to it, in the order of keys.
func (l *Link) Passes(c *spec.Config, arrived []frames.Frame, keys []uint64) bool {
	if l.Waiting != 0 || l.Odd || l.Paused != 0 {
		return false
	}
	free := l.Free
	for _, key := range keys {
		f := &arrived[key&parted.Place]
		if f.Flow < 0 || f.At < free {
			return false
		}
		x := l.Line(c, f)
		if x.Free = free; !x.Takes(f) {
			return false
		}
		free = x.Free
	}
	return true
}

// Countable says that no link is so long that the frames of its trains could not be counted.
func Countable(links []Link) bool {
	for i := range links {
		if l := &links[i]; l.Delay > min(l.Whole, l.Ack)<<14 { // for a delay and a window of two
			return false
		}
	}
	return true
}
