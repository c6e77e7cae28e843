package tiebreak

import (
	"math/bits"
	"slices"
)

// Longest is the longest window, in ps.
const Longest = 1000 << 16

// Number names what began: by the calendar that recorded it, and by how much that had
// recorded before, both modulo the size of a word.
type Number uint32

// None is what began before all that is known.
const None Number = 1 << 31

// Cause is the event that happens, by the number of what planned it, or by the place of that in
// the order of all.
type Cause uint64

const (
	numbered  Cause = 1 << 63 // it is a number
	whatShift       = 60      // in Entry.by: what begins
	whatBits  Cause = 3 << whatShift
)

// Calendar is the log of what began in the nodes of one worker, by number.
type Calendar struct {
	By      Cause   // what happens now
	P       float64 // with what chance the frame that begins is marked, if Drawing
	Drawing bool
	shift   uint8
	id      uint32  // the lower bits of numbers, shift of them
	turn    uint32  // the others of a number, all set
	step    Number  // from a number to the next
	from    int64   // where the window begins
	base    int64   // where that of all calendars does, ps of the first of heads
	oldest  uint32  // how much began before what is in log
	log     []Entry // of which size are in use
	size    int
	next    Number   // that of what begins next
	view    []Entry  // of log, what began before this window: for others
	ranks   []uint64 // places in the order of all of the first of log
	draws   []draw   // of this window
	heads   []int32  // by ns: the last of draws then; -1: none
	used    []uint64 // bits of those that are not -1
	cut     int      // so many of log are to be forgotten
	places  []placed // of log, of which the end may lack
	rows    uint64   // of places
	known   []pair   // what was found before, by hash; a power of two
	of      *Ranker
}

// Entry is what planned something: a frame that began, or a pause of pacing; or a number that
// was drawn for a PFC frame.
type Entry struct {
	by Cause // and what it is
	at int64
}

// draw is an entry for which a number is drawn.
type draw struct {
	n    Number
	next int32 // of the same ns
	link int32 // pfc: it marks no frame
	wire uint32
	p    float64
	at   int64
}

// What an event does, in its order.
const (
	paused  Cause = iota // it draws the identification of a PFC frame
	sent                 // a frame begins
	slept                // pacing begins to wait
	resumed              // as paused
)

// pfc represents a link in draws that mark no frame: the identification of a PFC frame.
const pfc = -1

// Root is the event that was planned before all others, one of several.
func Root(n int32) Cause { return Cause(n) + 1 }

// Happens reports whether what was planned happens when that began which has a number.
func (c *Calendar) Happens(n Number) { c.By = numbered | Cause(n) }

// Of is the event that was planned when that began which has a number.
func Of(n Number) Cause { return numbered | Cause(n) }

// OfPlace is Of for what began long ago perhaps: then its place is the cause.
func OfPlace(n Number, place uint64) Cause {
	if n&None != 0 {
		return Cause(place)
	}
	return Of(n)
}

// Sends marks a cause for Plan: it lets a frame begin.
func (c Cause) Sends() Cause { return c | sent<<whatShift }

// Sleeps marks a cause for Plan: from it on, a host waits for pacing.
func (c Cause) Sleeps() Cause { return c | slept<<whatShift }

// Fit makes room for n more to be planned.
func (c *Calendar) Fit(n int) {
	if len(c.log)-c.size < n {
		c.grow(n)
	}
}

// Plan records what begins at a time and draws nothing, and returns its number; Fit has made room.
func (c *Calendar) Plan(what Cause, at int64) Number {
	c.log[c.size] = Entry{what, max(at, c.from)}
	c.size++
	n := c.next
	c.next = (n + c.step) &^ None
	return n
}

// Wakes is Happens for what began long ago perhaps; then its place is asked for.
func (c *Calendar) Wakes(n Number, place uint64) {
	if c.Happens(n); n&None != 0 {
		c.By = Cause(place)
	}
}

// Sent records a frame that begins at a time by the event that happens now, at a place
// of a link, and returns its number.
func (c *Calendar) Sent(at int64, link int32, wire uint32) Number {
	n := c.size
	if n >= len(c.log) || c.Drawing {
		return c.sent(at, link, wire)
	}
	c.log[n] = Entry{c.By | sent<<whatShift, max(at, c.from)}
	c.size = n + 1
	return c.count(1)
}

// count is the next number, with which so many are given away.
func (c *Calendar) count(n int) Number {
	first := c.next
	c.next = (first + Number(n)*c.step) &^ None
	return first
}

// Row is room for n frames that draw nothing and begin in this window, to be recorded by Began.
// Their numbers are each by a step more than the one before, modulo None; last is the one before
// theirs.
func (c *Calendar) Row(n int) (row []Entry, last, step Number) {
	if len(c.log)-c.size < n {
		c.grow(n)
	}
	return c.log[c.size : c.size+n], (c.next - c.step) &^ None, c.step
}

// From is where the window begins: nothing of it begins before.
func (c *Calendar) From() int64 { return c.from }

// Began is a frame that begins at a time when that happens which began under a number.
func Began(by Number, at int64) Entry { return Entry{numbered | Cause(by) | sent<<whatShift, at} }

// At is when it began.
func (e Entry) At() int64 { return e.at }

// Took reports whether so many of a row began.
func (c *Calendar) Took(n int) {
	c.size += n
	c.count(n)
}

// grow makes room for n more: twice as much, but no more than is needed until the oldest is forgotten.
func (c *Calendar) grow(n int) {
	more := 2 * len(c.log)
	if all := c.of.room + c.of.room/8 + usual/2; len(c.log) < all && all <= 2*more {
		more = all
	}
	log := make([]Entry, max(usual, more, c.size+n))
	copy(log, c.log[:c.size])
	c.log = log
}

// sent is Sent where there is no room, or a number is drawn.
func (c *Calendar) sent(at int64, link int32, wire uint32) Number {
	n := c.note(at, sent)
	if c.Drawing {
		c.draw(n, at, link, wire)
	}
	return n
}

// number returns the number of the nth record of the log.
func (c *Calendar) number(n int) Number { return Number((c.oldest+uint32(n))<<c.shift|c.id) &^ None }

// Led is what planned the event by which a frame of the only calendar began.
func (c *Calendar) Led(n Number) Number {
	return Number(c.log[(uint32(n)>>c.shift-c.oldest)&c.turn].by) &^ None
}

// Slept records a host that waits for its pacing.
func (c *Calendar) Slept(at int64) Number { return c.note(at, slept) }

// Skip records a number that is drawn for a PFC frame that pauses, or resumes, beside
// that of the frame that begins.
func (c *Calendar) Skip(at int64, pause bool) {
	before, what := c.Drawing, resumed
	if pause {
		what = paused
	}
	c.draw(c.note(at, what), at, pfc, 0)
	c.Drawing = before
}

// Draw records a number to be drawn for the ith of a row of frames, to be marked with a chance.
func (c *Calendar) Draw(i int, chance float64, at int64, link int32, wire uint32) {
	c.P = chance
	c.draw((c.next+Number(i)*c.step)&^None, at, link, wire)
}

// note records what began.
func (c *Calendar) note(at int64, what Cause) Number {
	if c.size == len(c.log) {
		c.grow(1)
	}
	c.log[c.size] = Entry{c.By | what<<whatShift, max(at, c.from)}
	c.size++
	return c.count(1)
}

// draw records a number to be drawn.
func (c *Calendar) draw(n Number, at int64, link int32, wire uint32) {
	c.draws = append(c.draws, draw{n: n, link: link, wire: wire, p: c.P, at: max(at, c.from)})
	c.place(len(c.draws) - 1)
	c.Drawing = false
}

// place puts one of draws to those of its nanosecond.
func (c *Calendar) place(k int) {
	d := &c.draws[k]
	i := uint64(max(0, d.at-c.base)) / 1000
	h := &c.heads[i]
	d.next, *h = *h, int32(k)
	c.used[i/64] |= 1 << (i % 64)
}

// wait keeps what is drawn at a time or later.
func (c *Calendar) wait(from int64) {
	late := c.draws[:0]
	for _, d := range c.draws {
		if d.at >= from {
			late = append(late, d)
		}
	}
	c.draws = late
}

// find is what a cause began with, as long as the order of that is not known for good; nil if
// it is, and then its place. 0: too long ago.
func (c *Calendar) find(by Cause) (*Entry, uint64) {
	if by>>31 != numbered>>31 { // no number, or None
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
// that is not known.
func (c *Calendar) Order(x, y Number) int {
	if order := c.glance(x, y); order != 0 {
		return order
	}
	if x > y {
		return -c.compare(y, x)
	}
	return c.compare(x, y)
}

// Ranker lets what began draw in order, over all calendars.
type Ranker struct {
	calendars []*Calendar
	// Marked is called for each frame that draws a mark, in order, and Skipped for each
	// number that is drawn beside.
	Marked  func(link int32, wire uint32, p float64)
	Skipped func()
	// Ahead is how far, in ps, some nodes are ahead of the end of a window; Wait: what they draw
	// waits for what others draw.
	Ahead int64
	Wait  bool
	// Pauses goes through the pauses of pacing that last, by number; where a pause is to be
	// known by its place from then on, it sets that and None.
	Pauses func(each func(n *Number, place *uint64))
	last   uint64 // the last place in the order of all
	look   int64
	reach  int64 // for how long it counts when something began
	room   int   // so much is recorded before the oldest is forgotten
	least  int
	ids    uint32 // bits of a number that say whose it is
	drawn  []drawn
	sorted []placing
	keys   []uint64
}

// placing is what is put in order for good.
type placing struct {
	n     Number
	slot  int32 // in ranks; -1: of a pause
	at    int64
	of    *Calendar
	pause *Number
	place *uint64
}

// usual is how much is recorded before the oldest is forgotten, at least.
const usual = 1 << 11

// most is how many pairs are kept at most that were compared.
const most = 1 << 16

// some is up to how much is recorded beside that where the oldest is forgotten seldom: that takes time, too.
const some = 1 << 13

// Open makes calendars for windows of so many ps. The order of what began is asked for no later
// than reach, in ps; roots is how many events were planned before all others.
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

// Begin begins a window.
func (r *Ranker) Begin(from int64) {
	for _, c := range r.calendars {
		c.from, c.base = from, from
		for k := range c.draws { // those that waited
			c.place(k)
		}
	}
}

// Later begins the same window for nodes where it is later.
func (r *Ranker) Later(from int64) {
	for _, c := range r.calendars {
		c.from = from
	}
}

// Close ends a window, at a time.
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

// before is -1 where one is first, 0 where it is not: enough for a stable sort.
func before(first bool) int {
	if first {
		return -1
	}
	return 0
}

// forget puts in order for good what began since, but before end, and forgets what began before.
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
			c.cut = 0 // what has its place may be within reach, too
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

// indexBits is how many of the lower bits of a key say where one of n is.
func indexBits(n int) int { return bits.Len(uint(n)) }

// key puts a time in ps behind which so many bits say where it is; times that are too far
// on for the bits above it are equal. Whole ns are multiples of 8 ps.
func key(at int64, i, index int) uint64 {
	return min(uint64(at)>>3, 1<<(64-index)-1)<<index | uint64(i)
}

// later is the place of what begins after all that is put in order.
const later = 1<<64 - 1

// order is the order of what is to be put in order for good: in the lower indexBits, where each is.
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
				// equal: a pause, which is known by its number as well
				return before(a.n != b.n && a.of.First(a.n, b.n))
			})
		}
		i = n
	}
	r.keys = keys
	return keys
}

// forget forgets what is before cut; what is not gets room for its place, if it begins before end.
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
