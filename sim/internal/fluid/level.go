package fluid

import "github.com/simccl/simccl/sim/wire"

// Rates are those of progressive filling (Bertsekas and Gallager, Data Networks, 2nd edition, 6.5.2),
// computed link by link. A link holds up a flow if it is the flow's bottleneck. Its level is the rate of the
// flows that it holds up: an equal share of the capacity that is left once all other flows have what their
// own bounds or other links' levels grant them. A flow's rate is the minimum of its bound and its links'
// levels. The set of levels that satisfies this on every link is unique and equals that of progressive
// filling. So a change is propagated from link to link, only as far as levels change.
//
// Example: on links of 10 and 4, flow a takes both and flow b the first. The second
// link's level is 4; the first one's is then 10 - 4 = 6, not 10 / 2, for a is held
// up elsewhere. When a ends, the first link's level becomes 10.

// limit is the most that a bundle may take on a link for other reasons: its bound, or another link's level.
// key orders limits as filling reaches them.
type limit struct {
	key, rate wire.Rate
	weight    int64
	bundle    int32
}

// key returns 2·rate for a bundle's own bound, 2·rate+1 for a link's level: at equal rates the own bound
// comes first, since a flow that two links hold up at the same rate is filled by both.
func key(rate wire.Rate, own bool) wire.Rate {
	if own {
		return 2 * rate
	}
	return 2*rate + 1
}

// level recomputes levels and rates after flows came and went.
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

// count brings the links of a bundle up to date with the number of its flows.
func (f *Fluid) count(bi int32) {
	b, s := &f.bundles[bi], &f.shares[bi]
	if s.n == 0 {
		s.rate = s.bound
		for i := range b.uses {
			s.rate = min(s.rate, f.links[b.uses[i].link].level)
		}
	}
	more, k := b.live-s.n, key(s.rate, s.rate == s.bound)
	for i := range b.uses {
		u := &b.uses[i]
		l := &f.links[u.link]
		n := more * int64(u.count)
		if s.n == 0 {
			u.at = int32(len(l.active))
			l.active = append(l.active, activeUse{k, n, bi, int32(i)})
		} else if b.live == 0 {
			f.retire(l, u.at)
		} else {
			l.active[u.at].weight += n
		}
		l.weigh(k, n)
		if l.flows == 0 {
			l.since = f.now
		}
		if l.flows += n; l.flows == 0 {
			l.busy += f.now - l.since
		}
		l.rest -= wire.Rate(n) * s.rate
		f.note(l, u.link)
		if !l.queued && (l.level != none || n > 0 && !l.slack()) {
			l.queued = true
			f.queue = append(f.queue, u.link)
		}
	}
	s.n = b.live
}

// slack reports whether a link is no flow's bottleneck at the present rates. Rates are integers, so it must
// have one unit of rate left for each flow (of a single flow: not be overloaded).
func (l *link) slack() bool {
	return l.rest >= wire.Rate(l.flows) || l.flows == 1 && l.rest >= 0
}

// up returns the key of the flows that a link holds up. Without any, level is none and the key overflows to a
// negative number, which no flow has.
func (l *link) up() wire.Rate { return key(l.level, false) }

// weigh adds n flows of a key to held or top; negative n removes them. top is an upper bound and
// never falls here.
func (l *link) weigh(k wire.Rate, n int64) {
	if k == l.up() {
		l.held += n
	} else {
		l.top = max(l.top, k)
	}
}

// retire removes the entry at an index of a link's active list; the last entry takes its place.
func (f *Fluid) retire(l *link, at int32) {
	last := len(l.active) - 1
	if moved := l.active[last]; int(at) < last {
		l.active[at] = moved
		if moved.bundle < 0 {
			f.routes[^moved.bundle].places[moved.use].at = at
		} else {
			f.bundles[moved.bundle].uses[moved.use].at = at
		}
	}
	l.active = l.active[:last]
}

// resolve recomputes a link's level and changes the rates of its flows accordingly.
func (f *Fluid) resolve(li int32) {
	l := &f.links[li]
	l.queued = false
	old := l.level
	if old == none {
		if l.slack() {
			return
		}
		f.gather(l)
	}
	// Other limits of the flows that it holds up matter only if its level rises (rise).
	level, guessed := l.guess()
	if !guessed {
		f.open = f.open[:0]
		level = f.fill(l)
	}
	switch {
	case level < old:
		f.fall(li, l, level)
	case level > old:
		f.rise(li, l, level, guessed)
	}
}

// fall lowers a link's level: flows above it are held up from now on.
func (f *Fluid) fall(li int32, l *link, level wire.Rate) {
	l.level, l.held = level, 0
	for i := range l.active {
		a := &l.active[i]
		switch {
		case a.key == l.up():
			l.held += a.weight
		case a.key>>1 > level:
			f.change(a.bundle, level, li)
		}
	}
}

// rise raises a link's level. most is the level if nothing else limited the flows that it holds up; other
// limits of theirs leave more to the rest, so fill then runs with all limits. Lodgers whose bound is reached
// move out first, and the level is computed again.
func (f *Fluid) rise(li int32, l *link, most wire.Rate, guessed bool) {
	old, level := l.level, most
	for {
		least, lodged := f.limits(li, l)
		if level = most; !guessed || least <= 2*most {
			f.open = append(f.open[:0], f.held...)
			level = f.fill(l)
		}
		if lodged == none || level < lodged {
			break
		}
		f.flush(l, level)
	}
	if level == old {
		return
	}
	l.level, l.held = level, 0
	l.top = max(l.top, key(old, false))
	for i := range f.held {
		if h := &f.held[i]; min(h.rate, level) != old {
			f.change(h.bundle, min(h.rate, level), li)
		}
	}
}

// guessAbove is the least level for which guess is exact: below it the minimum rate of 1 per flow matters.
const guessAbove = 8

// guess returns fill's result without a loop, for the usual case that the link holds up the same flows as
// before: level + rest/held. ok is false where that is not certain: another flow is as fast as the new level,
// or slower by no more than rounding, so that fill might count it among those held up.
func (l *link) guess() (level wire.Rate, ok bool) {
	if l.level == none || l.held == 0 {
		return 0, false
	}
	more := l.rest / wire.Rate(l.held)
	if l.rest < 0 && more*wire.Rate(l.held) != l.rest {
		more--
	}
	level = l.level + more
	if level < guessAbove {
		return 0, false
	}
	safe := 2 * (level - 3 - wire.Rate(l.flows/l.held))
	if l.top <= safe {
		return level, true
	}
	ok, up := true, l.up()
	l.top = 0
	for i := range l.active {
		k := l.active[i].key
		if k == up {
			continue
		}
		l.top = max(l.top, k)
		if k > safe && (k&1 != 0 || k > 2*level) {
			ok = false
		}
	}
	return level, ok
}

// limits fills f.held with the limits, other than this link, of the bundles that a link holds up. It returns
// their least key, and the least bound of a flow in those that have lodgers.
func (f *Fluid) limits(li int32, l *link) (least, lodged wire.Rate) {
	f.held = f.held[:0]
	up := l.up()
	least, lodged = none, none
	for i := range l.active {
		a := &l.active[i]
		if a.key != up {
			continue
		}
		s := &f.shares[a.bundle]
		bound := s.bound
		if s.lodge {
			lodged = min(lodged, s.least)
		}
		r := bound
		for _, u := range f.bundles[a.bundle].uses {
			if u.link != li {
				r = min(r, f.links[u.link].level)
			}
		}
		k := key(r, r == bound)
		least = min(least, k)
		f.held = append(f.held, limit{k, r, a.weight, a.bundle})
	}
	return least, lodged
}

// fill computes the level of a link by progressive filling: bundles with a limit below the equal share of
// what is left take that limit, until none is below; the share is the level. Bundles that the link does not
// hold up are limited to their present rates. Limits of those that it holds up are in f.open; if that is
// empty, these are taken as unlimited.
func (f *Fluid) fill(l *link) wire.Rate {
	room, open := l.cap, l.flows
	if open == 0 {
		return none
	}
	share, up := max(1, room/wire.Rate(open)), l.up()
	todo := f.open
	for i := range l.active {
		switch a := &l.active[i]; {
		case a.key == up:
		case a.key > 2*share:
			todo = append(todo, limit{a.key, a.key >> 1, a.weight, a.bundle})
		default:
			room -= wire.Rate(a.weight) * (a.key >> 1)
			open -= a.weight
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

// change sets a bundle's rate and queues its links whose levels may change by that, except the link from.
func (f *Fluid) change(bi int32, r wire.Rate, from int32) {
	b, s := &f.bundles[bi], &f.shares[bi]
	f.settle(b, s.rate)
	more, k := r-s.rate, key(r, r == s.bound)
	s.rate = r
	if !b.moved {
		b.moved = true
		f.moved = append(f.moved, bi)
	}
	for _, u := range b.uses {
		l := &f.links[u.link]
		a := &l.active[u.at]
		if a.key == l.up() {
			l.held -= a.weight
		}
		a.key = k
		l.weigh(k, a.weight)
		l.rest -= wire.Rate(a.weight) * more
		f.note(l, u.link)
		if u.link != from && !l.queued && (l.level != none || more > 0 && !l.slack()) {
			l.queued = true
			f.queue = append(f.queue, u.link)
		}
	}
}
