package port

import (
	"math/bits"
	"slices"

	"github.com/simccl/simccl/packet/internal/tiebreak"
)

// Starts are the ports of a switch that have a frame to start, in the order in which they do: by when the
// frame in transmission ends. With a calendar, of two that start at once the first is the one whose frame
// before began first; without one, and where that is not known, the first is the lower port.
type Starts struct {
	links    []Link
	calendar *tiebreak.Calendar
	due      []start // from first on
	first    int
	listed   []uint64 // bits of ports
}

// start is when a link starts its next frame.
type start struct {
	at int64
	id int32
}

// Begin begins with those of out, the links by port, that may have frames: busy has bits of these, and of
// others they are cleared.
func (x *Starts) Begin(links []Link, out []int32, busy []uint64, calendar *tiebreak.Calendar) {
	x.links, x.calendar, x.due, x.first = links, calendar, x.due[:0], 0
	x.listed = slices.Grow(x.listed[:0], len(busy))[:len(busy)]
	clear(x.listed)
	for i, some := range busy {
		for ; some != 0; some &= some - 1 {
			p := bits.TrailingZeros64(some)
			l := &links[out[64*i+p]]
			if x.Join(l); l.Waiting == 0 {
				busy[i] &^= 1 << p
			}
		}
	}
}

// At is when the first starts; never without one.
func (x *Starts) At() int64 {
	if x.first == len(x.due) {
		return never
	}
	return x.due[x.first].at
}

// First is the one that starts first.
func (x *Starts) First() *Link { return &x.links[x.due[x.first].id] }

// Update puts a link in its place, or takes it out, after it has changed, if there is a list.
func (x *Starts) Update(l *Link) {
	if x == nil {
		return
	}
	bit := &x.listed[l.FromPort/64]
	if *bit>>(l.FromPort%64)&1 != 0 {
		*bit &^= 1 << (l.FromPort % 64)
		if k := x.first; x.due[k].id == l.ID {
			x.first++
		} else {
			for k++; x.due[k].id != l.ID; k++ {
			}
			x.due = append(x.due[:k], x.due[k+1:]...)
		}
	}
	x.Join(l)
}

// Join puts a link in its place that may have become one of those that have a frame to start; else it has
// not changed.
func (x *Starts) Join(l *Link) {
	bit, p := &x.listed[l.FromPort/64], l.FromPort%64
	if l.Waiting&^l.Paused == 0 || *bit>>p&1 != 0 {
		return
	}
	*bit |= 1 << p
	if x.first > 0 && len(x.due) == cap(x.due) {
		x.due = x.due[:copy(x.due, x.due[x.first:])]
		x.first = 0
	}
	x.due = append(x.due, start{})
	k := len(x.due) - 1
	for ; k > x.first; k-- {
		o := &x.due[k-1]
		if o.at < l.Free || o.at == l.Free && !x.before(l, &x.links[o.id]) {
			break
		}
		x.due[k] = *o
	}
	x.due[k] = start{l.Free, l.ID}
}

// before reports whether link a starts before link b, of two that may start at one time.
func (x *Starts) before(a, b *Link) bool {
	switch {
	case x.calendar == nil:
		return a.FromPort < b.FromPort
	case a.Start != b.Start:
		return a.Start < b.Start
	case a.FromPort < b.FromPort:
		return !x.calendar.First(b.Begun, a.Begun)
	}
	return x.calendar.First(a.Begun, b.Begun)
}

// EndsFirst reports whether the frame in transmission ends before another that arrives at that instant, that
// began under a number and travels for so long: its end was planned first. Without a calendar the arrival is
// first.
func (l *Link) EndsFirst(calendar *tiebreak.Calendar, travels int64, n tiebreak.Number) bool {
	if calendar == nil {
		return false
	}
	lasts := l.Free - l.Start
	return lasts > travels || lasts == travels && calendar.First(l.Begun, n)
}
