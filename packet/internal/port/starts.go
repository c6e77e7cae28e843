package port

import (
	"math/bits"
	"slices"

	"github.com/simccl/simccl/packet/internal/tiebreak"
)

// Starts is a queue of a switch's ports by the time of their next start. Of simultaneous starts, the port
// whose transmission in progress began first comes first; without a calendar, or where that is unknown, the
// lower port number.
type Starts struct {
	links    []Link
	calendar *tiebreak.Calendar
	due      []start // sorted, from first on
	first    int
	listed   []uint64 // bits: ports in due
}

// start is an entry of the queue: a link and the time of its next start (ps).
type start struct {
	at int64
	id int32
}

// Begin fills the queue with the ports of busy that have frames, and clears the bits of the others.
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

// At returns the time of the first start; never: none.
func (x *Starts) At() int64 {
	if x.first == len(x.due) {
		return never
	}
	return x.due[x.first].at
}

// First returns the port with the earliest start.
func (x *Starts) First() *Link { return &x.links[x.due[x.first].id] }

// Update moves a changed port to its new place, or removes it. A nil Starts does nothing.
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

// Join inserts a port if it has a frame to start and is not in the queue.
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

// before reports whether port a starts before port b at one instant.
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

// EndsFirst reports whether the transmission in progress ends before a frame that arrives at the same
// instant: its end was scheduled first if it lasts longer than the frame's travel time, or as long and began
// first (n is the frame's transmission). Without a calendar the arrival is first.
func (l *Link) EndsFirst(calendar *tiebreak.Calendar, travels int64, n tiebreak.Number) bool {
	if calendar == nil {
		return false
	}
	lasts := l.Free - l.Start
	return lasts > travels || lasts == travels && calendar.First(l.Begun, n)
}
