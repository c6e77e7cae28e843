// Package instant puts what happens at one instant in the order in which a simulator with
// a queue of events would let it happen: that in which it was planned.
//
// An event is planned while another happens, so two events of an instant come in the
// order of the two in which they were planned, and if these happened at one instant
// too, in theirs. What a network plans is planned when a frame begins: its end, its
// arrival; and when pacing lets nothing be sent: the end of that pause. So it is
// enough to rank those of one instant, over all links: at the end of a window, in
// the order of time, each by the age of the event in which it happens and the rank of
// what planned that event. What is alone at its instant has rank 0.
//
// In: what began in a window, when, and by which event. Out: ranks. It must not know
// frames or hosts.
package instant

import (
	"cmp"
	"math/bits"
	"slices"
)

// Oldest is the age of what was planned before all frames.
const Oldest = ^uint32(0)

// Longest is the longest window, in ps.
const Longest = 1000 << 16

// Cause is the event that happens.
type Cause struct {
	Age    uint32 // ns since it was planned
	Source uint32 // rank of what planned it
	Parent int32  // that, if it was in this window: its place; otherwise -1
}

// Entry is what planned something in this window: a frame that began, or a pause of
// pacing; or a number that was drawn for a PFC frame.
type Entry struct {
	Cause        // once it has its rank, that is its source
	Link  int32  // of a pause of pacing: which host
	Wire  uint32 // its place on the link
	next  int32  // of the same instant
	What  uint8
	Drawn bool // a number is drawn for it: see Chance
}

// What an event does, in its order.
const (
	Paused  uint8 = iota // it draws the identification of a PFC frame
	Sent                 // a frame begins
	Slept                // pacing begins to wait
	Resumed              // as Paused
)

// Calendar is what began in a window, by ns.
type Calendar struct {
	Cause           // what happens now
	Base    int64   // how much began before this window
	P       float64 // with what chance the frame that begins is marked, if Drawing
	Drawing bool
	from    int64 // where the window begins
	entries []Entry
	spans   []span   // by ns
	used    []uint64 // bits of those that are not empty
	draws   []uint64 // bits of those in which a number is drawn
	chances []chance
}

// chance is with what probability a frame is marked.
type chance struct {
	n int32
	p float64
}

// span is the first and the last of an instant.
type span struct{ head, tail int32 }

// Open makes a calendar for windows of so many ps.
func (c *Calendar) Open(look int64) {
	c.spans = make([]span, look/1000+1)
	c.used, c.draws = make([]uint64, len(c.spans)/64+1), make([]uint64, len(c.spans)/64+1)
}

// Begin begins a window.
func (c *Calendar) Begin(from int64) { c.from = from }

// Place is where what the window knows by a number is among its entries; -1: it was
// before.
func (c *Calendar) Place(number int64) int32 { return int32(max(number-c.Base, -1)) }

// At is an entry.
func (c *Calendar) At(n int32) *Entry { return &c.entries[n] }

// Note takes note of what began at a time by the event that happens now, and returns
// its number.
func (c *Calendar) Note(at int64, link int32, wire uint32, what uint8) int64 {
	n, i := len(c.entries), uint64(max(0, at-c.from))/1000
	if n == cap(c.entries) {
		c.entries = slices.Grow(c.entries, 1+n)
	}
	c.entries = c.entries[:n+1]
	b := &c.entries[n]
	b.Age, b.Source, b.Parent = c.Age, c.Source, c.Parent
	b.Link, b.Wire, b.next, b.What, b.Drawn = link, wire, -1, what, c.Drawing
	if c.Drawing {
		c.draws[i/64] |= 1 << (i % 64)
		c.chances = append(c.chances, chance{int32(n), c.P})
		c.Drawing = false
	}
	if s := &c.spans[i]; c.used[i/64]>>(i%64)&1 == 0 {
		c.used[i/64] |= 1 << (i % 64)
		s.head, s.tail = int32(n), int32(n)
	} else {
		c.entries[s.tail].next = int32(n)
		s.tail = int32(n)
	}
	return c.Base + int64(n)
}

// Skip takes note of a number that is drawn beside that of the frame that begins.
func (c *Calendar) Skip(at int64, what uint8) {
	before := c.Drawing
	c.Drawing = true
	c.Note(at, -1, 0, what)
	c.Drawing = before
}

// First says that of two that began at one instant of this window one was first.
func (c *Calendar) First(a, b int32) bool {
	for {
		x, y := &c.entries[a], &c.entries[b]
		switch {
		case x.Age != y.Age:
			return x.Age > y.Age
		case x.Parent < 0 || y.Parent < 0:
			return x.Source < y.Source
		case x.Parent == y.Parent:
			return a < b
		}
		a, b = x.Parent, y.Parent
	}
}

// Chance is that of the mark of an entry.
func (c *Calendar) Chance(n int32) float64 {
	i, _ := slices.BinarySearchFunc(c.chances, n, func(x chance, n int32) int { return cmp.Compare(x.n, n) })
	return c.chances[i].p
}

// Ranker ranks what began in a window, over all calendars.
type Ranker struct {
	Calendars []*Calendar
	// Ranked is called for what shares an instant, or draws, in order.
	Ranked func(c *Calendar, n int32, rank uint32)
	ties   []tied
}

// tied is what began at an instant.
type tied struct {
	key uint64 // in the order of events
	n   int32  // its place
	c   int32
}

// Close ranks what began in a window.
func (r *Ranker) Close() {
	first := r.Calendars[0]
	for k := range first.used {
		var all, draws uint64
		for _, c := range r.Calendars {
			all |= c.used[k]
			draws |= c.draws[k]
		}
		for ; all != 0; all &= all - 1 {
			i := bits.TrailingZeros64(all)
			if s := &first.spans[64*k+i]; len(r.Calendars) == 1 && draws>>i&1 == 0 && s.head == s.tail {
				first.entries[s.head].Source = 0
				continue
			}
			r.instant(64*k + i)
		}
	}
	for _, c := range r.Calendars {
		c.Base += int64(len(c.entries))
		c.entries, c.chances = c.entries[:0], c.chances[:0]
		clear(c.used)
		clear(c.draws)
	}
}

// instant ranks what began at an instant.
func (r *Ranker) instant(at int) {
	t := r.ties[:0]
	for i, c := range r.Calendars {
		if c.used[at/64]>>(at%64)&1 == 0 {
			continue
		}
		for n := c.spans[at].head; n >= 0; {
			b := &c.entries[n]
			source := b.Source
			if b.Parent >= 0 {
				source = c.entries[b.Parent].Source
			}
			x := tied{uint64(^b.Age)<<32 | uint64(source)<<2 | uint64(b.What), n, int32(i)}
			j := len(t)
			t = append(t, x)
			for ; j > 0 && x.key < t[j-1].key; j-- {
				t[j] = t[j-1]
			}
			t[j] = x
			n = b.next
		}
	}
	for rank, x := range t {
		c := r.Calendars[x.c]
		b := &c.entries[x.n]
		b.Source, b.Parent = uint32(rank), -1
		if rank > 0 || b.Drawn || b.What == Slept {
			r.Ranked(c, x.n, uint32(rank))
		}
	}
	r.ties = t
}
