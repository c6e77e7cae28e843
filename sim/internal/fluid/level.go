package fluid

import "github.com/simccl/simccl/sim/wire"

// Rates are those of progressive filling (Bertsekas and Gallager, Data Networks,
// 2nd edition, 6.5.2), found link by link. A link's level is the rate of the flows
// that it holds up: what is left of its capacity where each of the others has
// what its own bound or another link's level grants it. A flow's rate is the least
// of its bound and its links' levels. Levels that agree with each other in this
// way are those of filling everything at once, and there is one such set. So a
// change is followed from link to link, and only for as long as levels change.
//
// Example: on links of 10 and 4, flow a takes both and flow b the first. The second
// link's level is 4; the first one's is then 10 - 4 = 6, not 10 / 2, for a is held
// up elsewhere. When a ends, the first link's level becomes 10.

// limit is what the rest of its route leaves to a bundle on a link. key orders
// limits as filling meets them: at equal rates a bundle's own bound first, since a
// flow that another link holds up at the same rate is filled by both.
type limit struct {
	key, rate wire.Rate
	weight    int64
}

func limitOf(rate, bound wire.Rate, weight int64) limit {
	key := 2 * rate
	if rate != bound {
		key++
	}
	return limit{key, rate, weight}
}

// level finds the rates that follow from the flows that came and went.
func (f *Fluid) level() {
	for _, bi := range f.moved {
		if b := &f.bundles[bi]; b.live != b.n {
			f.count(bi, b)
		}
	}
	for i := 0; i < len(f.queue); i++ {
		f.resolve(f.queue[i])
	}
	f.queue = f.queue[:0]
	for _, bi := range f.moved {
		b := &f.bundles[bi]
		b.moved = false
		f.schedule(bi, b)
	}
	f.moved = f.moved[:0]
}

// count tells the links of a bundle how many flows it has.
func (f *Fluid) count(bi int32, b *bundle) {
	if b.n == 0 {
		b.rate = b.bound
		for _, u := range b.uses {
			b.rate = min(b.rate, f.links[u.link].level)
		}
	}
	more := b.live - b.n
	for i := range b.uses {
		u := &b.uses[i]
		l := &f.links[u.link]
		if b.n == 0 {
			u.at = int32(len(l.active))
			l.active = append(l.active, activeUse{bi, u.count, int32(i)})
		} else if b.live == 0 {
			f.retire(l, u.at)
		}
		n := more * int64(u.count)
		if l.flows == 0 {
			l.since = f.now
		}
		if l.flows += n; l.flows == 0 {
			l.busy += f.now - l.since
		}
		l.rest -= wire.Rate(n) * b.rate
		if !l.queued && (l.level != none || n > 0 && l.rest < wire.Rate(l.flows)) {
			l.queued = true
			f.queue = append(f.queue, u.link)
		}
	}
	b.n = b.live
}

// retire takes a bundle without flows from its place on a link.
func (f *Fluid) retire(l *link, at int32) {
	last := len(l.active) - 1
	if moved := l.active[last]; int(at) < last {
		l.active[at] = moved
		f.bundles[moved.bundle].uses[moved.use].at = at
	}
	l.active = l.active[:last]
}

// resolve finds a link's level, and gives its flows the rates that follow.
func (f *Fluid) resolve(li int32) {
	l := &f.links[li]
	l.queued = false
	// With room for one unit of rate a flow it holds up none, also by rounding.
	if l.level == none && l.rest >= wire.Rate(l.flows) {
		return
	}
	caps := f.limits(li, l)
	level := fill(caps, l)
	if level == l.level {
		return
	}
	l.level = level
	for i, a := range l.active {
		b := &f.bundles[a.bundle]
		if r := min(caps[i].rate, level); r != b.rate {
			f.change(a.bundle, b, r, li)
		}
	}
}

// limits finds what bundles on a link may take without it: the rate that they
// have, unless this link holds them up.
func (f *Fluid) limits(li int32, l *link) []limit {
	if cap(f.caps) < len(l.active) {
		f.caps = make([]limit, 2*len(l.active))
	}
	caps := f.caps[:len(l.active)]
	for i, a := range l.active {
		b := &f.bundles[a.bundle]
		r := b.rate
		if r == l.level {
			r = b.bound
			for _, u := range b.uses {
				if u.link != li {
					r = min(r, f.links[u.link].level)
				}
			}
		}
		caps[i] = limitOf(r, b.bound, b.n*int64(a.count))
	}
	return caps
}

// fill finds the level of a link whose flows have such limits: those with limits
// below the equal share of what is left take them, until none has.
func fill(caps []limit, l *link) wire.Rate {
	room, open := l.cap, l.flows
	below := wire.Rate(-1) // keys up to here are through
	for open > 0 {
		share := max(1, room/wire.Rate(open))
		if 2*share <= below {
			return share
		}
		fixed := false
		for i := range caps {
			if c := &caps[i]; c.key > below && c.key <= 2*share {
				room -= wire.Rate(c.weight) * c.rate
				open -= c.weight
				fixed = true
			}
		}
		room = max(0, room)
		if !fixed {
			return share
		}
		below = 2 * share
	}
	return none
}

// change gives a bundle another rate, and has its links' levels found anew where
// that may change them; not that of the link which it comes from.
func (f *Fluid) change(bi int32, b *bundle, r wire.Rate, from int32) {
	f.settle(b)
	more := r - b.rate
	b.rate = r
	if !b.moved {
		b.moved = true
		f.moved = append(f.moved, bi)
	}
	for _, u := range b.uses {
		l := &f.links[u.link]
		l.rest -= wire.Rate(b.n*int64(u.count)) * more
		if u.link != from && !l.queued && (l.level != none || more > 0 && l.rest < wire.Rate(l.flows)) {
			l.queued = true
			f.queue = append(f.queue, u.link)
		}
	}
}
