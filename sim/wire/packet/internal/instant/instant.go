// Package instant puts what happens at one instant in the order in which a simulator with
// a queue of events would let it happen: that in which it was planned.
//
// An event is planned while another happens, so two events of an instant come in the
// order of the two in which they were planned, and if these happened at one instant
// too, in theirs. What a network plans is planned when a frame begins: its end, its
// arrival; and when pacing lets nothing be sent: the end of that pause. So it is
// enough to know the place of each of these in the order of all, over all links. At the
// end of a window what began in it is put in order, in the order of time: what began at one
// instant in the order of the events in which it did, whose order is known by then.
//
// In: what began in a window, when, and by which event. Out: its place in the order of
// all. It must not know frames or hosts.
package instant

import (
	"math/bits"
	"slices"
)

// Longest is the longest window, in ps.
const Longest = 1000 << 16

// Number names what began: by the calendar that took note of it, and by how much that had
// taken note of before, both modulo the size of a word.
type Number uint32

// None is what began before all that is known.
const None Number = 1 << 31

// Cause is the event that happens, by the number of what planned it, or by the place of that in
// the order of all.
type Cause uint64

// numbered marks a Cause that is a number.
const numbered Cause = 1 << 63

// Calendar is what began in a window, by ns.
type Calendar struct {
	By      Cause   // what happens now
	P       float64 // with what chance the frame that begins is marked, if Drawing
	Drawing bool
	shift   uint8
	id      uint32 // the lower bits of numbers, shift of them
	turn    uint32 // the others of a number, all set
	base    uint32 // how much began before this window
	from    int64  // where the window begins
	entries []entry
	heads   []int32  // by ns: the last that began then; -1: none
	used    []uint64 // bits of those that are not -1
	draws   []uint64 // bits of those in which a number is drawn
	drawn   []draw
	which   []int32 // of those, by entry, for entries that are drawn
	slept   []pause

	order          []uint32 // places in the order of all, by number; a power of two
	oldest, middle uint32   // of which order is known; when there will be
	of             *Ranker
}

// entry is what planned something in this window: a frame that began, or a pause of
// pacing; or a number that was drawn for a PFC frame.
type entry struct {
	by    Cause
	next  int32  // of the same instant
	at    uint16 // ns
	what  uint8
	drawn bool // a number is drawn for it
}

// draw is a frame whose mark is drawn.
type draw struct {
	link int32
	wire uint32
	p    float64
}

// pause is a pause of pacing.
type pause struct{ n, host int32 }

// What an event does, in its order.
const (
	paused  uint8 = iota // it draws the identification of a PFC frame
	sent                 // a frame begins
	slept                // pacing begins to wait
	resumed              // as paused
)

// Begin begins a window.
func (r *Ranker) Begin(from int64) {
	for _, c := range r.calendars {
		c.from = from
	}
}

// Root is the event that was planned before all others, one of several.
func Root(n int32) Cause { return Cause(n) + 1 }

// Place is that of what has begun, in the order of all; 0: too long ago, or in this window.
func (c *Calendar) Place(n Number) uint64 {
	k := uint32(n) >> c.shift
	if behind := (c.base - k) & c.turn; n&None != 0 || behind == 0 || behind > c.base-c.oldest {
		return 0
	}
	return c.at(k)
}

// at is the place of what this calendar took note of after k others.
func (c *Calendar) at(k uint32) uint64 {
	low := c.of.low
	return low + uint64(c.order[k&uint32(len(c.order)-1)]-uint32(low))
}

// Happens says that what was planned happens when that began which has a number.
func (c *Calendar) Happens(n Number) { c.By = numbered | Cause(n) }

// Wakes is Happens for what this calendar took note of long ago perhaps, where its place was kept.
func (c *Calendar) Wakes(n Number, place uint64) {
	if c.Happens(n); c.now(n) < 0 && c.Place(n) == 0 {
		c.By = Cause(place)
	}
}

// resolve is where the cause of an entry is among the entries of this window, or else its place.
func (c *Calendar) resolve(by Cause) (now int32, place uint64) {
	switch n := Number(by); {
	case by&numbered == 0:
		return -1, uint64(by)
	default:
		o := c.of.calendars[uint32(n)&c.of.ids]
		if o == c {
			if at := c.now(n); at >= 0 {
				return at, 0
			}
		}
		return -1, o.Place(n)
	}
}

// now is where what the calendar knows by a number is among its entries; -1: it was before.
func (c *Calendar) now(n Number) int32 {
	if at := (uint32(n)>>c.shift - c.base) & c.turn; n&None == 0 && at < uint32(len(c.entries)) {
		return int32(at)
	}
	return -1
}

// Sent takes note of a frame that begins at a time by the event that happens now, at a place
// of a link, and returns its number.
func (c *Calendar) Sent(at int64, link int32, wire uint32) Number {
	return c.note(at, sent, link, wire)
}

// Slept takes note of a host that waits for its pacing.
func (c *Calendar) Slept(at int64, host int32) Number {
	c.slept = append(c.slept, pause{int32(len(c.entries)), host})
	return c.note(at, slept, 0, 0)
}

// Skip takes note of a number that is drawn for a PFC frame that pauses, or resumes, beside
// that of the frame that begins.
func (c *Calendar) Skip(at int64, pause bool) {
	before := c.Drawing
	c.Drawing = true
	if pause {
		c.note(at, paused, 0, 0)
	} else {
		c.note(at, resumed, 0, 0)
	}
	c.Drawing = before
}

// note takes note of what began.
func (c *Calendar) note(at int64, what uint8, link int32, wire uint32) Number {
	n, i := len(c.entries), uint64(max(0, at-c.from))/1000
	if n == cap(c.entries) {
		c.entries = slices.Grow(c.entries, 1+n)
		c.which = append(make([]int32, 0, cap(c.entries)), c.which[:n]...)[:cap(c.entries)]
	}
	c.entries = c.entries[:n+1]
	b, h := &c.entries[n], &c.heads[i]
	b.by, b.next, b.at, b.what, b.drawn = c.By, *h, uint16(i), what, c.Drawing
	*h = int32(n)
	c.used[i/64] |= 1 << (i % 64)
	if c.Drawing {
		c.draws[i/64] |= 1 << (i % 64)
		c.Drawing = false
		if what == sent {
			c.which[n] = int32(len(c.drawn))
			c.drawn = append(c.drawn, draw{link, wire, c.P})
		}
	}
	return c.number(int32(n))
}

// number is that of an entry.
func (c *Calendar) number(n int32) Number {
	return Number((c.base+uint32(n))<<c.shift|c.id) &^ None
}

// First says that of two frames that began at one instant one was first.
func (c *Calendar) First(x, y Number) bool {
	a, b := c.now(x), c.now(y)
	if a < 0 || b < 0 {
		return b >= 0 || a < 0 && c.Place(x) < c.Place(y)
	}
	for {
		x, p := c.resolve(c.entries[a].by)
		y, q := c.resolve(c.entries[b].by)
		switch {
		case x < 0 && y < 0:
			return p < q
		case x < 0 || y < 0:
			return x < 0 // what was before this window is first
		case x == y:
			return a < b
		}
		a, b = x, y
		if t, u := c.entries[a].at, c.entries[b].at; t != u {
			return t < u
		}
	}
}

// Ranker puts what began in a window in order, over all calendars.
type Ranker struct {
	calendars []*Calendar
	// Marked is called for each frame that draws a mark, in order, and Skipped for each
	// number that is drawn beside.
	Marked  func(link int32, wire uint32, p float64)
	Skipped func()
	// Woken is called with the place of a pause of pacing.
	Woken   func(host int32, n Number, place uint64)
	last    uint64 // the last place in the order of all
	low     uint64 // of those that are known
	middle  uint64
	mark    int64
	horizon int64
	ties    []tied
	ids     uint32 // bits of a number that say whose it is
	brief   bool   // what is planned may happen at that very instant
}

// tied is what began at an instant.
type tied struct {
	by   uint64 // and what it does
	n, c int32
}

// Open makes calendars for windows of so many ps. Of what began its order is known for the
// horizon, in ps; roots is how many events were planned before all others. brief says that what is
// planned may happen at that very instant.
func (r *Ranker) Open(calendars []*Calendar, look, horizon int64, roots int, brief bool) {
	r.calendars, r.horizon, r.brief = calendars, horizon, brief
	r.ids = 1<<bits.Len(uint(len(calendars)-1)) - 1
	r.last = uint64(roots) + 1
	r.low, r.middle = r.last, r.last
	for i, c := range calendars {
		c.id, c.shift, c.of = uint32(i), uint8(bits.Len(uint(len(calendars)-1))), r
		c.turn = uint32(None-1) >> c.shift
		c.heads = make([]int32, look/1000+1)
		for k := range c.heads {
			c.heads[k] = -1
		}
		c.used, c.draws = make([]uint64, len(c.heads)/64+1), make([]uint64, len(c.heads)/64+1)
		c.order = make([]uint32, 1<<10)
	}
}

// Close puts what began in a window in order.
func (r *Ranker) Close() {
	first := r.calendars[0]
	for _, c := range r.calendars {
		c.room()
	}
	for k := range first.used {
		var all, draws uint64
		for _, c := range r.calendars {
			all |= c.used[k]
			draws |= c.draws[k]
		}
		if len(r.calendars) == 1 {
			r.alone(first, 64*k, all, draws)
			continue
		}
		for ; all != 0; all &= all - 1 {
			i := bits.TrailingZeros64(all)
			r.instant(64*k+i, draws>>i&1 != 0)
		}
	}
	for _, c := range r.calendars {
		for _, x := range c.slept {
			r.Woken(x.host, c.number(x.n), c.place(x.n))
		}
		c.base += uint32(len(c.entries))
		c.entries, c.drawn, c.slept = c.entries[:0], c.drawn[:0], c.slept[:0]
		clear(c.used)
		clear(c.draws)
	}
	r.forget(first.from)
}

// alone puts in order what began at instants from one on, of the only calendar: mostly one or two
// at an instant.
func (r *Ranker) alone(c *Calendar, from int, all, draws uint64) {
	for ; all != 0; all &= all - 1 {
		i := bits.TrailingZeros64(all)
		y := c.heads[from+i]
		x := c.entries[y].next
		switch {
		case draws>>i&1 != 0 || x >= 0 && c.entries[x].next >= 0:
			r.instant(from+i, draws>>i&1 != 0)
			continue
		case x >= 0: // x was first, unless y has the lesser key
			after := (r.key(c, &c.entries[y]) - r.key(c, &c.entries[x])) >> 63
			c.set(x, r.last+1+after)
			c.set(y, r.last+2-after)
			r.last += 2
		default:
			r.last++
			c.set(y, r.last)
		}
		c.heads[from+i] = -1
	}
}

// forget forgets the order of what began longer ago than the horizon.
func (r *Ranker) forget(now int64) {
	if now-r.mark < r.horizon {
		return
	}
	r.mark = now
	r.low, r.middle = r.middle, r.last
	for _, c := range r.calendars {
		c.oldest, c.middle = c.middle, c.base
	}
}

// room makes room for the order of a window.
func (c *Calendar) room() {
	size := uint32(len(c.order))
	for c.base-c.oldest+uint32(len(c.entries)) > size {
		size *= 2
	}
	if size == uint32(len(c.order)) {
		return
	}
	order := make([]uint32, size)
	for k := c.oldest; k != c.base; k++ {
		order[k&(size-1)] = c.order[k&uint32(len(c.order)-1)]
	}
	c.order = order
}

// set sets the place of an entry in the order of all.
func (c *Calendar) set(n int32, place uint64) {
	c.order[(c.base+uint32(n))&uint32(len(c.order)-1)] = uint32(place)
}

// place is that of an entry that has one.
func (c *Calendar) place(n int32) uint64 { return c.at(c.base + uint32(n)) }

// key is the place of an entry of this calendar among those of its instant.
func (r *Ranker) key(c *Calendar, b *entry) uint64 {
	if b.by>>31 != numbered>>31 || r.brief { // no number, or None
		return r.other(c, b)
	}
	c = r.calendars[uint32(b.by)&r.ids]
	k := uint32(b.by) >> c.shift
	if (k-c.oldest)&c.turn >= c.base-c.oldest+uint32(len(c.entries)) {
		return uint64(b.what) // too long ago
	}
	return c.at(k)<<2 | uint64(b.what)
}

// other is key for rare causes.
func (r *Ranker) other(c *Calendar, b *entry) uint64 {
	n, place := c.resolve(b.by)
	if n < 0 {
		return place<<2 | uint64(b.what)
	}
	if p := &c.entries[n]; p.at == b.at { // planned at that very instant
		return 1<<62 | r.other(c, p)
	}
	return c.place(n)<<2 | uint64(b.what)
}

// instant puts in order what began at an instant.
func (r *Ranker) instant(at int, draws bool) {
	t := r.ties[:0]
	for i, c := range r.calendars {
		from := len(t)
		for n := c.heads[at]; n >= 0; {
			b := &c.entries[n]
			t = append(t, tied{r.key(c, b), n, int32(i)})
			n = b.next
		}
		c.heads[at] = -1
		slices.Reverse(t[from:])
	}
	if r.ties = t; len(t) <= few && !draws {
		r.rank(t)
		return
	}
	for i := 1; i < len(t); i++ { // of equals the first stays first
		x, j := t[i], i
		for ; j > 0 && t[j-1].by > x.by; j-- {
			t[j] = t[j-1]
		}
		t[j] = x
	}
	for _, x := range t {
		r.last++
		r.calendars[x.c].set(x.n, r.last)
		if draws {
			r.draw(r.calendars[x.c], x.n)
		}
	}
}

// few is how many are put in order by counting what is before each.
const few = 12

// rank gives each its place by how many are before it, without a branch that nothing foretells.
func (r *Ranker) rank(t []tied) {
	for i := range t {
		x, before := &t[i], r.last+1
		for j := range t[:i] {
			before += 1 - (x.by-t[j].by)>>63 // of equals the first stays first
		}
		for j := i + 1; j < len(t); j++ {
			before += (t[j].by - x.by) >> 63
		}
		r.calendars[x.c].set(x.n, before)
	}
	r.last += uint64(len(t))
}

// draw draws the number of an entry that draws one.
func (r *Ranker) draw(c *Calendar, n int32) {
	if n < 0 || !c.entries[n].drawn {
		return
	}
	if what := c.entries[n].what; what == paused || what == resumed {
		r.Skipped()
		return
	}
	d := &c.drawn[c.which[n]]
	r.Marked(d.link, d.wire, d.p)
}
