package tiebreak

import (
	"math/bits"
	"slices"
)

// Longest is the longest window in ps: draws are bucketed by nanosecond.
const Longest = 1000 << 16

// Number identifies a scheduled event (a frame's transmission or a pacing gap): index in its calendar's log,
// shifted left, and the calendar's id in the low bits, modulo 2^31.
//
//	bit 31: None | index in the log, modulo | calendar
type Number uint32

// None is the number of an event older than all records.
const None Number = 1 << 31

// Cause identifies the event that scheduled another one: by Number (bit 63 set) or, once its record is
// discarded, by final rank.
type Cause uint64

const (
	numbered  Cause = 1 << 63 // the cause is a Number
	whatShift       = 60      // in Entry.by: position of the kind of event
	whatBits  Cause = 3 << whatShift
)

// Calendar is the log of one worker: each scheduled event with its time and cause.
type Calendar struct {
	By      Cause   // cause of the events scheduled from now on
	P       float64 // probability of the pending mark, if Drawing
	Drawing bool
	shift   uint8   // bits of id in a number
	id      uint32  // this calendar's low bits of a number
	turn    uint32  // mask of the log index in a number
	step    Number  // difference of two consecutive numbers
	from    int64   // start of the window
	base    int64   // start of the window of all calendars: ps of heads[0]
	oldest  uint32  // entries discarded before log[0]
	log     []Entry // the first size are in use
	size    int
	next    Number   // the next number
	view    []Entry  // log as of the last window's end: what other workers may read
	ranks   []uint64 // final ranks of the first entries of log
	draws   []draw   // random draws of this window
	heads   []int32  // by nanosecond: the last draw in it; -1: none
	used    []uint64 // bits of nanoseconds with draws
	cut     int      // number of entries of log to be discarded
	places  []placed // ranks within batches of simultaneous events, by log index
	rows    uint64   // number of batches so far
	known   []pair   // cache of comparisons; its size is a power of two
	of      *Ranker
}

// Entry records an event's cause, with the kind of event in bits 60 and 61, and the time at which it was
// scheduled.
type Entry struct {
	by Cause // cause and kind
	at int64
}

// draw is a random number to be drawn for an event.
type draw struct {
	n    Number
	next int32 // next draw of the same nanosecond
	link int32 // pfc: for a PFC frame, not a mark
	wire uint32
	p    float64
	at   int64
}

// Kinds of event that one event schedules, in this order.
const (
	paused  Cause = iota // identification drawn for a PAUSE frame
	sent                 // a transmission starts
	slept                // a pacing gap starts
	resumed              // identification drawn for a RESUME frame
)

// pfc is the link of draws that only keep the random stream in step: ns-3 draws the identification of each
// PFC frame.
const pfc = -1

// Root returns the cause of events that no recorded event has scheduled; they are ordered by n, before all
// others.
func Root(n int32) Cause { return Cause(n) + 1 }

// SetCause makes event n the cause of the events scheduled from now on.
func (c *Calendar) SetCause(n Number) { c.By = numbered | Cause(n) }

// Of returns event n in the form of a cause.
func Of(n Number) Cause { return numbered | Cause(n) }

// OfPlace is Of for an event that may be discarded: then its final rank is the cause.
func OfPlace(n Number, place uint64) Cause {
	if n&None != 0 {
		return Cause(place)
	}
	return Of(n)
}

// Sends marks a cause for Plan: it starts a transmission.
func (c Cause) Sends() Cause { return c | sent<<whatShift }

// Sleeps marks a cause for Plan: it starts a pacing gap.
func (c Cause) Sleeps() Cause { return c | slept<<whatShift }

// Fit makes room for n more entries.
func (c *Calendar) Fit(n int) {
	if len(c.log)-c.size < n {
		c.grow(n)
	}
}

// Plan records an event without a random draw, at a time, and returns its number. Fit must have made room.
func (c *Calendar) Plan(what Cause, at int64) Number {
	c.log[c.size] = Entry{what, max(at, c.from)}
	c.size++
	n := c.next
	c.next = (n + c.step) &^ None
	return n
}

// Wakes is SetCause for an event that may have been discarded; place is its final rank.
func (c *Calendar) Wakes(n Number, place uint64) {
	if c.SetCause(n); n&None != 0 {
		c.By = Cause(place)
	}
}

// Sent records a transmission on a link, scheduled by the present cause, with the position of its frame on
// the cable, and returns its number.
func (c *Calendar) Sent(at int64, link int32, wire uint32) Number {
	n := c.size
	if n >= len(c.log) || c.Drawing {
		return c.sent(at, link, wire)
	}
	c.log[n] = Entry{c.By | sent<<whatShift, max(at, c.from)}
	c.size = n + 1
	return c.count(1)
}

// count reserves n numbers and returns the first.
func (c *Calendar) count(n int) Number {
	first := c.next
	c.next = (first + Number(n)*c.step) &^ None
	return first
}

// Reserve returns room for n transmissions of this window without random draws, which the caller fills
// (Began) and commits (Commit). Number i is last + (i+1)·step, modulo None.
func (c *Calendar) Reserve(n int) (row []Entry, last, step Number) {
	if len(c.log)-c.size < n {
		c.grow(n)
	}
	return c.log[c.size : c.size+n], (c.next - c.step) &^ None, c.step
}

// From returns the start of the window; no event is scheduled earlier.
func (c *Calendar) From() int64 { return c.from }

// Began returns the entry of a transmission with a cause, at a time.
func Began(by Number, at int64) Entry { return Entry{numbered | Cause(by) | sent<<whatShift, at} }

func (e Entry) At() int64 { return e.at }

// Commit records the first n entries of Reserve's room.
func (c *Calendar) Commit(n int) {
	c.size += n
	c.count(n)
}

// grow makes room for n more entries: it doubles the log, but not beyond the need until the next forget.
func (c *Calendar) grow(n int) {
	more := 2 * len(c.log)
	if all := c.of.room + c.of.room/8 + usual/2; len(c.log) < all && all <= 2*more {
		more = all
	}
	log := make([]Entry, max(usual, more, c.size+n))
	copy(log, c.log[:c.size])
	c.log = log
}

// sent is Sent where the log is full, or with a draw.
func (c *Calendar) sent(at int64, link int32, wire uint32) Number {
	n := c.note(at, sent)
	if c.Drawing {
		c.draw(n, at, link, wire)
	}
	return n
}

// number returns the number of log entry n.
func (c *Calendar) number(n int) Number { return Number((c.oldest+uint32(n))<<c.shift|c.id) &^ None }

// Led returns the number of the event that caused transmission n, with a single calendar.
func (c *Calendar) Led(n Number) Number {
	return Number(c.log[(uint32(n)>>c.shift-c.oldest)&c.turn].by) &^ None
}

// Slept records the start of a pacing gap by the present cause and returns its number.
func (c *Calendar) Slept(at int64) Number { return c.note(at, slept) }

// Skip records the draw of a PAUSE or RESUME frame's identification, in addition to the draw of its
// transmission.
func (c *Calendar) Skip(at int64, pause bool) {
	before, what := c.Drawing, resumed
	if pause {
		what = paused
	}
	c.draw(c.note(at, what), at, pfc, 0)
	c.Drawing = before
}

// Draw records the draw for the mark of the i-th reserved transmission.
func (c *Calendar) Draw(i int, chance float64, at int64, link int32, wire uint32) {
	c.P = chance
	c.draw((c.next+Number(i)*c.step)&^None, at, link, wire)
}

// note records an event of a kind by the present cause.
func (c *Calendar) note(at int64, what Cause) Number {
	if c.size == len(c.log) {
		c.grow(1)
	}
	c.log[c.size] = Entry{c.By | what<<whatShift, max(at, c.from)}
	c.size++
	return c.count(1)
}

func (c *Calendar) draw(n Number, at int64, link int32, wire uint32) {
	c.draws = append(c.draws, draw{n: n, link: link, wire: wire, p: c.P, at: max(at, c.from)})
	c.place(len(c.draws) - 1)
	c.Drawing = false
}

// place adds draw k to the list of its nanosecond.
func (c *Calendar) place(k int) {
	d := &c.draws[k]
	i := uint64(max(0, d.at-c.base)) / 1000
	h := &c.heads[i]
	d.next, *h = *h, int32(k)
	c.used[i/64] |= 1 << (i % 64)
}

// wait keeps the draws at time from or later for the next window.
func (c *Calendar) wait(from int64) {
	late := c.draws[:0]
	for _, d := range c.draws {
		if d.at >= from {
			late = append(late, d)
		}
	}
	c.draws = late
}

// find returns the entry of a cause or, if its order is final, nil and its rank; rank 0: it was discarded.
func (c *Calendar) find(by Cause) (*Entry, uint64) {
	if by>>31 != numbered>>31 { // not a number, or None
		if by&numbered != 0 {
			return nil, 0
		}
		return nil, uint64(by)
	}
	o := c.of.calendars[uint32(by)&c.of.ids]
	log, n := o.view, (uint32(by)>>c.shift-o.oldest)&c.turn
	if o == c {
		log = c.log[:c.size]
	}
	switch {
	case int(n) < len(o.ranks) && o.ranks[n] != later:
		return nil, o.ranks[n]
	case int(n) < len(log):
		return &log[n], 0
	}
	return nil, 0
}

// First reports whether event x was scheduled before event y.
func (c *Calendar) First(x, y Number) bool {
	if x > y {
		return c.compare(y, x) > 0
	}
	return c.compare(x, y) < 0
}

// Order compares two events by when they were scheduled: negative if x was first, positive if y was, 0 if
// that is unknown.
func (c *Calendar) Order(x, y Number) int {
	if order := c.glance(x, y); order != 0 {
		return order
	}
	if x > y {
		return -c.compare(y, x)
	}
	return c.compare(x, y)
}

// Ranker makes the draws of all calendars in the order of events, and discards old entries.
type Ranker struct {
	calendars []*Calendar
	// Marked is called for each draw of a mark, in order; Skipped for each other draw
	Marked  func(link int32, wire uint32, p float64)
	Skipped func()
	// Ahead is the time (ps) by which the windows of some nodes end later than those of others; Wait delays
	// their draws until the others have drawn
	Ahead int64
	Wait  bool
	// Pauses visits the open pacing gaps. Where a gap's entry is discarded, its number becomes None and its
	// final rank is stored
	Pauses func(each func(n *Number, place *uint64))
	last   uint64 // the last final rank
	look   int64
	reach  int64 // time (ps) for which the order of an event can matter
	room   int   // number of entries beyond which forget runs
	least  int
	ids    uint32 // mask of the calendar in a number
	drawn  []drawn
	sorted []placing
	keys   []uint64
}

// placing is an entry, or a pacing gap, that will get its final rank.
type placing struct {
	n     Number
	slot  int32 // index in ranks; -1: a pacing gap
	at    int64
	of    *Calendar
	pause *Number
	place *uint64
}

// usual is the least number of entries between two runs of forget.
const usual = 1 << 11

// most bounds the cache of comparisons.
const most = 1 << 16

// some bounds how many more entries are kept in order to run forget less often.
const some = 1 << 13

// Open sets the calendars up for windows of look ps. The order of an event matters for at most reach ps;
// roots is the number of Root causes.
func (r *Ranker) Open(calendars []*Calendar, look, reach int64, roots int) {
	r.calendars, r.look, r.reach = calendars, look, reach
	r.ids = 1<<bits.Len(uint(len(calendars)-1)) - 1
	r.last, r.least, r.room = uint64(roots)+1, usual, usual
	for i, c := range calendars {
		c.id, c.shift, c.of = uint32(i), uint8(bits.Len(uint(len(calendars)-1))), r
		c.turn, c.step = uint32(None-1)>>c.shift, 1<<c.shift
		c.next = Number(c.id)
		c.heads, c.known = make([]int32, (look+r.Ahead)/1000+1), make([]pair, usual)
		for k := range c.heads {
			c.heads[k] = -1
		}
		c.used = make([]uint64, len(c.heads)/64+1)
	}
}

// Begin starts a window and places the draws kept from the previous one.
func (r *Ranker) Begin(from int64) {
	for _, c := range r.calendars {
		c.from, c.base = from, from
		for k := range c.draws { // draws kept from the previous window
			c.place(k)
		}
	}
}

// Later starts the same window for nodes that trail.
func (r *Ranker) Later(from int64) {
	for _, c := range r.calendars {
		c.from = from
	}
}

// Close ends a window: it makes its draws and, once enough has accumulated, discards old entries.
func (r *Ranker) Close(end int64) {
	size, draws := 0, 0
	for _, c := range r.calendars {
		c.view = c.log[:c.size]
		size += c.size
		draws += len(c.draws)
	}
	if draws > 0 {
		r.drawAll(end)
	}
	if size >= r.room {
		r.forget(end-r.reach, end)
	}
}

// before returns -1 for true, else 0, which is enough for a stable sort.
func before(first bool) int {
	if first {
		return -1
	}
	return 0
}

// forget gives the events of [since, end) their final rank and discards older ones.
func (r *Ranker) forget(since, end int64) {
	all := r.sorted[:0]
	r.Pauses(func(n *Number, place *uint64) {
		if *n&None != 0 {
			return
		}
		c := r.calendars[uint32(*n)&r.ids]
		if e, known := c.find(numbered | Cause(*n)); e == nil {
			*n, *place = None, known
		} else {
			all = append(all, placing{*n, -1, e.at, c, n, place})
		}
	})
	for _, c := range r.calendars {
		c.cut = c.size
		for c.cut > len(c.ranks) && c.log[c.cut-1].at >= since-r.look-r.reach { // in order of windows only
			c.cut--
		}
		if c.cut == len(c.ranks) {
			c.cut = 0 // entries with a rank may be within reach, too
		}
		for n := c.cut; n < c.size; n++ {
			if c.log[n].at < since || c.log[n].at >= end || n < len(c.ranks) && c.ranks[n] != later {
				continue
			}
			all = append(all, placing{c.number(n), int32(n - c.cut), c.log[n].at, c, nil, nil})
		}
	}
	order, index := r.order(all), indexBits(len(all))
	r.room = r.least
	for _, c := range r.calendars {
		n := c.size - c.cut
		r.room += 16*n + min(16*n, some)
		c.forget(end)
	}
	for _, c := range r.calendars {
		if size := 1 << bits.Len(uint(min(r.room/4, most)-1)); size > len(c.known) {
			c.known = make([]pair, size)
		}
	}
	for _, k := range order {
		x := &all[k&(1<<index-1)]
		if r.last++; x.slot >= 0 {
			x.of.ranks[x.slot] = r.last
		} else {
			*x.pause, *x.place = None, r.last
		}
	}
	r.sorted = all[:0]
}

// indexBits returns how many bits index n entries.
func indexBits(n int) int { return bits.Len(uint(n)) }

// key packs a time (in units of 8 ps, saturated) above an index of index bits.
func key(at int64, i, index int) uint64 {
	return min(uint64(at)>>3, 1<<(64-index)-1)<<index | uint64(i)
}

// later is the rank of events after all ranked ones.
const later = 1<<64 - 1

// order sorts entries by time, simultaneous ones by cause. It returns keys whose low indexBits are indices
// into all.
func (r *Ranker) order(all []placing) []uint64 {
	first, index := int64(1<<63-1), indexBits(len(all))
	for i := range all {
		first = min(first, all[i].at)
	}
	keys := r.keys[:0]
	for i := range all {
		keys = append(keys, key(all[i].at-first, i, index))
	}
	slices.Sort(keys)
	for i := 0; i < len(keys); {
		n := i + 1
		for n < len(keys) && keys[n]>>index == keys[i]>>index {
			n++
		}
		if n > i+1 {
			slices.SortStableFunc(keys[i:n], func(x, y uint64) int {
				a, b := &all[x&(1<<index-1)], &all[y&(1<<index-1)]
				// equal: a pacing gap, which also has an entry with its number
				return before(a.n != b.n && a.of.First(a.n, b.n))
			})
		}
		i = n
	}
	r.keys = keys
	return keys
}

// forget discards the entries before cut; entries at end or later keep the rank later.
func (c *Calendar) forget(end int64) {
	if c.cut > 0 {
		c.ranks = c.ranks[:0]
	}
	n := c.size - c.cut
	c.ranks = slices.Grow(c.ranks, n-len(c.ranks))
	clear(c.ranks[len(c.ranks):n])
	c.ranks = c.ranks[:n]
	copy(c.log, c.log[c.cut:c.size])
	c.move(c.cut, c.size)
	for i, x := range c.log[:n] {
		if x.at >= end {
			c.ranks[i] = later
		}
	}
	c.size, c.oldest = n, c.oldest+uint32(c.cut)
	c.view = c.log[:n]
	clear(c.known)
}
