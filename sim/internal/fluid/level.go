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

// limit is what a bundle may take on a link. key orders limits as filling meets
// them: at equal rates a bundle's own bound first, since a flow that another link
// holds up at the same rate is filled by both.
type limit struct {
	key, rate wire.Rate
	weight    int64
	bundle    int32
}

// key orders a rate that is a flow's own bound, or another link's level.
func key(rate wire.Rate, own bool) wire.Rate {
	if own {
		return 2 * rate
	}
	return 2*rate + 1
}

// level finds the rates that follow from the flows that came and went.
func (f *Fluid) level() {
	for _, bi := range f.moved {
		if f.bundles[bi].live != f.shares[bi].n {
			f.count(bi)
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

// count sets on the links of a bundle the number of its flows.
func (f *Fluid) count(bi int32) {
	b, s := &f.bundles[bi], &f.shares[bi]
	if s.n == 0 {
		s.rate = s.bound
		for i := range b.uses {
			s.rate = min(s.rate, f.links[b.uses[i].link].level)
		}
	}
	more := b.live - s.n
	for i := range b.uses {
		u := &b.uses[i]
		l := &f.links[u.link]
		if s.n == 0 {
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
		l.rest -= wire.Rate(n) * s.rate
		if !l.queued && (l.level != none || n > 0 && l.rest < wire.Rate(l.flows)) {
			l.queued = true
			f.queue = append(f.queue, u.link)
		}
	}
	s.n = b.live
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
	old := l.level
	// With room for one unit of rate a flow it holds up none, also by rounding.
	if old == none && l.rest >= wire.Rate(l.flows) {
		return
	}
	// What else limits the flows that it holds up matters where its level rises only.
	f.open = f.open[:0]
	level := f.fill(l)
	if level == old {
		return
	}
	if level < old {
		l.level = level
		for _, a := range l.active {
			if f.shares[a.bundle].rate > level {
				f.change(a.bundle, level, li)
			}
		}
		return
	}
	f.limits(li, l)
	f.open = append(f.open[:0], f.held...)
	if level = f.fill(l); level == old {
		return
	}
	l.level = level
	for i := range f.held {
		if h := &f.held[i]; min(h.rate, level) != old {
			f.change(h.bundle, min(h.rate, level), li)
		}
	}
}

// limits finds what the bundles that a link holds up may take without it.
func (f *Fluid) limits(li int32, l *link) {
	f.held = f.held[:0]
	for _, a := range l.active {
		s := &f.shares[a.bundle]
		if s.rate != l.level || s.bound == l.level {
			continue
		}
		r := s.bound
		for _, u := range f.bundles[a.bundle].uses {
			if u.link != li {
				r = min(r, f.links[u.link].level)
			}
		}
		f.held = append(f.held, limit{key(r, r == s.bound), r, s.n * int64(a.count), a.bundle})
	}
}

// fill finds the level of a link: flows with limits below the equal share of what
// is left take them, until none has. Those that other bundles are limited to are
// their rates; those of the bundles that the link holds up are in f.open, or
// unknown where that is empty: they stay then until the end.
func (f *Fluid) fill(l *link) wire.Rate {
	room, open := l.cap, l.flows
	if open == 0 {
		return none
	}
	share := max(1, room/wire.Rate(open))
	todo := f.open
	for _, a := range l.active {
		s := &f.shares[a.bundle]
		own := s.rate == s.bound
		if s.rate == l.level && !own {
			continue
		}
		weight := s.n * int64(a.count)
		if k := key(s.rate, own); k > 2*share {
			todo = append(todo, limit{k, s.rate, weight, a.bundle})
		} else {
			room -= wire.Rate(weight) * s.rate
			open -= weight
		}
	}
	f.open = todo
	for open > 0 {
		share = max(1, room/wire.Rate(open))
		n := 0
		for i := range todo {
			if t := &todo[i]; t.key <= 2*share {
				room -= wire.Rate(t.weight) * t.rate
				open -= t.weight
			} else {
				todo[n] = *t
				n++
			}
		}
		if n == len(todo) {
			return share
		}
		todo = todo[:n]
	}
	return none
}

// change gives a bundle another rate, and has its links' levels found anew where
// that may change them; not that of the link which it comes from.
func (f *Fluid) change(bi int32, r wire.Rate, from int32) {
	b, s := &f.bundles[bi], &f.shares[bi]
	f.settle(b, s.rate)
	more := r - s.rate
	s.rate = r
	if !b.moved {
		b.moved = true
		f.moved = append(f.moved, bi)
	}
	for _, u := range b.uses {
		l := &f.links[u.link]
		l.rest -= wire.Rate(s.n*int64(u.count)) * more
		if u.link != from && !l.queued && (l.level != none || more > 0 && l.rest < wire.Rate(l.flows)) {
			l.queued = true
			f.queue = append(f.queue, u.link)
		}
	}
}
