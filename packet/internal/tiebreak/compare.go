package tiebreak

// pair is a cached comparison of two numbers: the smaller number, a bit that says whether it was first, the
// greater number.
type pair uint64

// lesser is set if the lesser number was first.
const lesser pair = 1 << 31

// compare returns a negative number if event x was scheduled before event y, a positive one if after (x < y
// as numbers), 0 if that is unknown. It walks back along both chains of causes until their times differ:
//
//	x ◀ p ◀ …    each step: times differ?  cached?  one cause?
//	y ◀ q ◀ …
func (c *Calendar) compare(x, y Number) int {
	var t trail
	p, q := numbered|Cause(x), numbered|Cause(y)
	if c.of.ids == 0 {
		var order int
		if p, q, order = c.recent(&t, x, y); order != 0 {
			return c.learn(&t, order < 0)
		}
	}
	for {
		if first, known := c.recall(p, q); known {
			return c.learn(&t, first)
		}
		e, i := c.find(p)
		f, j := c.find(q)
		switch {
		case e == nil && f == nil && i == j && t.steps == 0:
			return 0
		case e == nil && f == nil && i == j:
			return c.learn(&t, !c.behind(&t))
		case e == nil || f == nil:
			return c.learn(&t, e == nil && (f != nil || i < j))
		case e.at != f.at:
			return c.learn(&t, e.at < f.at)
		}
		t.pass(both(Number(p), Number(q)), Number(p), Number(q), e.by&whatBits, f.by&whatBits)
		if p, q = e.by&^whatBits, f.by&^whatBits; p == q {
			return c.learn(&t, !c.behind(&t))
		}
	}
}

// recent is compare while both chains are in the log of the only calendar, which is nearly always so. Where
// it leaves the log, it returns the causes it has reached, and 0.
func (c *Calendar) recent(t *trail, x, y Number) (p, q Cause, order int) {
	log, known, ranked, oldest := c.log[:c.size], c.known, len(c.ranks), Number(c.oldest)
	for {
		i, j := int((x-oldest)&^None), int((y-oldest)&^None)
		if x|y >= None || i < ranked || j < ranked || i >= len(log) || j >= len(log) {
			return numbered | Cause(x), numbered | Cause(y), 0
		}
		k := both(x, y)
		if at := k.slot(len(known)); at < uint(len(known)) && known[at].is(k) {
			return 0, 0, sign(known[at].first(x, y))
		}
		e, f := &log[i], &log[j]
		if e.at != f.at {
			return 0, 0, sign(e.at < f.at)
		}
		if max(i, j) < len(c.places) && Together(uint64(c.places[i]), uint64(c.places[j])) &&
			c.places[i] != 0 {
			return 0, 0, sign(c.places[i] < c.places[j])
		}
		t.pass(k, x, y, e.by&whatBits, f.by&whatBits)
		p, q = e.by&^whatBits, f.by&^whatBits
		if p == q {
			return 0, 0, sign(!c.behind(t))
		}
		if p&q&numbered == 0 {
			return p, q, 0
		}
		x, y = Number(p), Number(q)
	}
}

// glance is compare where the first or second step decides; else it returns 0. It suffices for senders that
// alternate.
func (c *Calendar) glance(x, y Number) int {
	log, oldest := c.log[:c.size], Number(c.oldest)
	i, j := int((x-oldest)&^None), int((y-oldest)&^None)
	if c.of.ids != 0 || x|y >= None || min(i, j) < len(c.ranks) || i >= len(log) || j >= len(log) {
		return 0
	}
	e, f := &log[i], &log[j]
	if e.at != f.at {
		return sign(e.at < f.at)
	}
	p, q := e.by&^whatBits, f.by&^whatBits
	if p&q&numbered == 0 || p == q || (p|q)&Cause(None) != 0 {
		return 0
	}
	k := both(Number(p), Number(q))
	o := c.known[k.slot(len(c.known))]
	if !o.is(k) {
		return 0
	}
	first := o.first(Number(p), Number(q))
	k = both(x, y)
	at := k.slot(len(c.known))
	if first == (x < y) {
		k |= lesser
	}
	c.known[at] = k
	return sign(first)
}

// sign returns -1 for true, 1 for false.
func sign(first bool) int {
	if first {
		return -1
	}
	return 1
}

// behind decides between two events with the same cause: by kind of event, then by log index. It reports
// whether the first was scheduled after the second.
func (c *Calendar) behind(t *trail) bool { return t.d > t.g || t.d == t.g && c.after(t.x, t.y) }

// after reports whether x follows y in the logs.
func (c *Calendar) after(x, y Number) bool {
	if a, b := uint32(x)&c.of.ids, uint32(y)&c.of.ids; a != b {
		return a > b
	}
	o := c.of.calendars[uint32(x)&c.of.ids].oldest
	return (uint32(x)>>c.shift-o)&c.turn > (uint32(y)>>c.shift-o)&c.turn
}

// both returns the cache key of two numbers in either order, without an outcome (the bit lesser is clear).
func both(x, y Number) pair { return pair(min(x, y))<<32 | pair(max(x, y)) }

// slot returns the pair's slot in a table of n, a power of two.
func (k pair) slot(n int) uint { return uint(k&^lesser*0x9e3779b97f4a7c15>>32) & uint(n-1) }

// is reports whether two keys represent the same pair of numbers, whatever the outcome.
func (k pair) is(o pair) bool { return (k^o)&^lesser == 0 }

func (k pair) first(x, y Number) bool { return (k&lesser != 0) == (x < y) }

// recall looks the comparison of two causes up in the cache; known is false if it is not there.
func (c *Calendar) recall(p, q Cause) (first, known bool) {
	x, y := Number(p), Number(q)
	if p&q&numbered == 0 || x == y || (x|y)&None != 0 {
		return false, false
	}
	k := both(x, y)
	o := c.known[k.slot(len(c.known))]
	return o.first(x, y), o.is(k)
}

// learn caches the outcome for the pairs that a walk passed.
func (c *Calendar) learn(t *trail, first bool) int {
	for _, k := range t.all[:t.n] {
		at := k.slot(len(c.known))
		if !first {
			k ^= lesser
		}
		c.known[at] = k
	}
	return sign(first)
}

// trail keeps the pairs of a walk for learn: all at first, then every 2nd, 4th … so that 16 entries cover any
// length.
type trail struct {
	all         [16]pair // stored as if the first of each pair came first
	n           int
	steps, each int
	x, y        Number // the last step's events
	d, g        Cause  // their kinds
}

func (t *trail) pass(k pair, x, y Number, d, g Cause) {
	t.x, t.y, t.d, t.g = x, y, d, g
	if t.steps++; t.each > 0 && t.steps%t.each != 0 {
		return
	}
	if t.n == len(t.all) {
		for i := range t.n / 2 {
			t.all[i] = t.all[2*i]
		}
		t.n /= 2
		t.each = max(1, t.each) * 2
	}
	if x < y {
		k |= lesser
	}
	t.all[t.n] = k
	t.n++
}
