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

// slack reports whether a link holds up none of its flows at the present rates, also by
// rounding: it has room for one unit of rate a flow, or any room for the only one.
func (l *link) slack() bool {
	return l.rest >= wire.Rate(l.flows) || l.flows == 1 && l.rest >= 0
}

// up is the key of the flows that a link holds up; no flow has it where it holds up
// none, for it is negative then.
func (l *link) up() wire.Rate { return key(l.level, false) }

// weigh counts flows of a key, which come or, below 0, go.
func (l *link) weigh(k wire.Rate, n int64) {
	if k == l.up() {
		l.held += n
	} else {
		l.top = max(l.top, k)
	}
}

// retire takes a bundle without flows from its place on a link.
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

// resolve finds a link's level, and gives its flows the rates that follow.
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
	// What else limits the flows that it holds up matters where its level rises only.
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

// fall lowers a link's level.
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

// rise raises a link's level, to at most what it would be if nothing else limited the
// flows that it holds up.
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

// guessAbove is the least level that is guessed: below it rates of 1 matter, which
// every flow has at least.
const guessAbove = 8

// guess finds what fill does, where the link goes on to hold up the flows that it
// holds up, and no others: they share what it has left. It reports false where it
// does not know that: where another flow is as fast as that, or less so by what
// rounding may amount to, by which fill may take it for one that the link holds up.
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

// limits finds what the bundles that a link holds up may take without it, the
// least key of that, and the least bound in those that have lodgers.
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

// fill finds the level of a link: flows with limits below the equal share of what
// is left take them, until none has. Those that other bundles are limited to are
// their rates; those of the bundles that the link holds up are in f.open, or
// unknown where that is empty: they stay then until the end.
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

// change gives a bundle another rate, and has its links' levels found anew where
// that may change them; not that of the link which it comes from.
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
