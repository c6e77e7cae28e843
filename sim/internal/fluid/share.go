package fluid

import (
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// watched finds rates part by part of the network, and reports those of all links
// of a part. A part is what hangs together by tight links. A link is slack where
// it has room for one unit of rate a flow and more: it holds up none of its flows
// then, also by rounding, and flows that meet on slack links only know nothing of
// each other. So a change reaches nothing behind a slack link, unless that becomes
// tight. The rates are the same, bit for bit, as those of Fluid.level.
type watched struct {
	*Fluid
	report func(l wire.LinkID, at units.Time, rate wire.Rate)
	ofLink []linkFill
	of     []bundleFill
	dirtyL []int32
	dirtyB []int32
	compL  []int32 // what is filled: links with all their flows,
	compO  []int32 // links that are not tight, with some of them,
	compB  []int32 // and bundles
	openL  []int32 // of them, those not settled yet
	openB  []int32
	stamp  int64
}

type linkFill struct {
	dirty  bool
	tight  bool      // it holds flows below their own rates, or may by rounding
	border bool      // of what is filled: not tight, and only some of its flows are in it
	room   wire.Rate // not yet given away
	open   int64
	share  wire.Rate
	stamp  int64
}

type bundleFill struct {
	dirty bool // flows came or went
	fixed bool
	fresh wire.Rate
	stamp int64
}

// touch notes that a bundle gained (or lost) n flows, and asks for new rates of
// all that share with it.
func (w *watched) touch(bi int32, n int64) {
	for int(bi) >= len(w.of) {
		w.of = append(w.of, bundleFill{})
	}
	b, x := &w.bundles[bi], &w.shares[bi]
	x.n = b.live
	if x.n == n {
		x.rate = x.bound
	}
	for i := range b.uses {
		u := &b.uses[i]
		l := &w.links[u.link]
		if x.n == n {
			u.at = int32(len(l.active))
			l.active = append(l.active, activeUse{bundle: bi, use: int32(i)})
		} else if x.n == 0 {
			w.retire(l, u.at)
		}
		if l.flows == 0 {
			l.since = w.now
		}
		if l.flows += n * int64(u.count); l.flows == 0 {
			l.busy += w.now - l.since
		}
		l.rest -= wire.Rate(n*int64(u.count)) * x.rate
		if s := &w.ofLink[u.link]; !s.dirty {
			s.dirty = true
			w.dirtyL = append(w.dirtyL, u.link)
		}
	}
	if s := &w.of[bi]; !s.dirty {
		s.dirty = true
		w.dirtyB = append(w.dirtyB, bi)
	}
}

// refill redoes the shares of everything that the changes since the last call
// can reach.
func (w *watched) refill() {
	if len(w.dirtyB) == 0 {
		return
	}
	for _, bi := range w.dirtyB {
		b, x := &w.bundles[bi], &w.shares[bi]
		if len(b.uses) == 0 {
			w.settle(b, x.rate)
			x.rate = x.bound
			w.schedule(bi, b)
		} else if len(b.heap) == 0 {
			w.orderRemove(b)
		}
		w.of[bi].dirty = x.n > 0 && len(b.uses) > 0
	}
	for _, li := range w.dirtyL {
		if s := &w.ofLink[li]; s.dirty && s.tight {
			w.begin()
			w.addLink(li)
			w.resolve()
		}
	}
	for _, bi := range w.dirtyB {
		if w.of[bi].dirty {
			w.begin()
			w.addBundle(bi)
			w.resolve()
		}
	}
	w.reportRates(w.dirtyL)
	for _, li := range w.dirtyL {
		w.ofLink[li].dirty = false
	}
	w.dirtyB, w.dirtyL = w.dirtyB[:0], w.dirtyL[:0]
}

// begin starts to gather what is filled together.
func (w *watched) begin() {
	w.stamp++
	w.compL, w.compO, w.compB = w.compL[:0], w.compO[:0], w.compB[:0]
}

func (w *watched) addLink(li int32) {
	s := &w.ofLink[li]
	s.stamp, s.border, s.dirty = w.stamp, false, false
	w.compL = append(w.compL, li)
}

func (w *watched) addBundle(bi int32) {
	s := &w.of[bi]
	s.stamp, s.fixed = w.stamp, false
	w.compB = append(w.compB, bi)
}

// resolve gathers, fills, and takes in links that prove to be tight, until
// none does.
func (w *watched) resolve() {
	links, bundles := 0, 0
	for again := false; ; again = true {
		for links < len(w.compL) || bundles < len(w.compB) {
			for ; links < len(w.compL); links++ {
				for _, u := range w.links[w.compL[links]].active {
					if w.of[u.bundle].stamp != w.stamp {
						w.addBundle(u.bundle)
					}
				}
			}
			for ; bundles < len(w.compB); bundles++ {
				w.reach(w.compB[bundles])
			}
		}
		w.open(again)
		if w.fill() && w.slack() {
			w.commit()
			return
		}
	}
}

// reach adds the links of a bundle: those that are not tight as its border, with what
// other flows leave there.
func (w *watched) reach(bi int32) {
	uses, ofLink, x := w.bundles[bi].uses, w.ofLink, &w.shares[bi]
	for i := range uses {
		u := &uses[i]
		s := &ofLink[u.link]
		if s.stamp != w.stamp {
			if s.tight {
				w.addLink(u.link)
				continue
			}
			s.stamp, s.border = w.stamp, true
			s.room, s.open = w.links[u.link].rest, 0
			w.compO = append(w.compO, u.link)
		}
		if s.border {
			s.free(x, u)
		}
	}
}

// free gives a link at the border back what a bundle has there.
func (s *linkFill) free(x *share, u *place) {
	n := x.n * int64(u.count)
	s.room += wire.Rate(n) * x.rate
	s.open += n
}

// open gives links their room: all of it, or, again, at the border what other flows
// leave.
func (w *watched) open(again bool) {
	ofLink := w.ofLink
	for _, li := range w.compL {
		l, s := &w.links[li], &ofLink[li]
		s.room, s.open, s.border = l.cap, l.flows, false
	}
	if !again { // reach has filled the border
		return
	}
	for _, li := range w.compO {
		if s := &ofLink[li]; s.border {
			s.room, s.open = w.links[li].rest, 0
		}
	}
	for _, bi := range w.compB {
		x, uses := &w.shares[bi], w.bundles[bi].uses
		w.of[bi].fixed = false
		for i := range uses {
			if s := &ofLink[uses[i].link]; s.border {
				s.free(x, &uses[i])
			}
		}
	}
}

// fill is progressive filling of what is gathered; false where the border is
// tight. Links that are equally tight are filled together, so that the order in
// which they were met cannot show.
func (w *watched) fill() bool {
	if len(w.compL) == 0 || len(w.compB) <= few {
		if w.fillBounds() {
			return true
		}
		w.open(true)
	}
	for _, li := range w.compL {
		w.ofLink[li].tight = false
	}
	w.openL = append(append(w.openL[:0], w.compL...), w.compO...)
	w.openB = append(w.openB[:0], w.compB...)
	bound, _ := w.fixBound(0)
	for left := len(w.compB); left > 0; {
		share := w.least()
		if bound <= share {
			fixed := 0
			bound, fixed = w.fixBound(share)
			left -= fixed
			continue
		}
		fixed := w.fillTight(share)
		if fixed == 0 {
			return false
		}
		left -= fixed
	}
	return true
}

// few is up to how many bundles it is tried whether their own rates fit where links were
// tight.
const few = 4

// fillBounds gives every bundle its own rate, and reports whether the links have room
// for that: filling would come to the same.
func (w *watched) fillBounds() bool {
	ofLink := w.ofLink
	for _, bi := range w.compB {
		x, s, uses := &w.shares[bi], &w.of[bi], w.bundles[bi].uses
		s.fixed, s.fresh = true, x.bound
		for i := range uses {
			l := &ofLink[uses[i].link]
			if x.bound > l.room {
				return false
			}
			if l.room -= wire.Rate(x.n*int64(uses[i].count)) * x.bound; l.room < 0 {
				return false
			}
		}
	}
	for _, li := range w.compL {
		ofLink[li].tight = false
	}
	return true
}

// least finds the smallest share that links give, and drops those whose
// flows are all settled.
func (w *watched) least() wire.Rate {
	share, n := none, 0
	for _, li := range w.openL {
		s := &w.ofLink[li]
		if s.open == 0 {
			s.share = none
			continue
		}
		s.share = max(1, s.room/wire.Rate(s.open))
		share = min(share, s.share)
		w.openL[n] = li
		n++
	}
	w.openL = w.openL[:n]
	return share
}

// fixBound gives bundles their own rates where those are no more than a share,
// and returns the smallest of the others' and how many it settled; fixed ones
// are released.
func (w *watched) fixBound(share wire.Rate) (least wire.Rate, fixed int) {
	least, n := none, 0
	for _, bi := range w.openB {
		switch x := &w.shares[bi]; {
		case w.of[bi].fixed:
		case x.bound <= share:
			w.fix(bi, x.bound)
			fixed++
		default:
			least = min(least, x.bound)
			w.openB[n] = bi
			n++
		}
	}
	w.openB = w.openB[:n]
	return least, fixed
}

// fillTight gives the flows on the tightest links their share and returns how
// many bundles that settles: none where one of them is at the border, which then
// is taken in.
func (w *watched) fillTight(share wire.Rate) int {
	if w.takeIn(func(li int32) bool { return w.ofLink[li].share == share }) {
		return 0
	}
	fixed := 0
	for _, li := range w.openL {
		s := &w.ofLink[li]
		if s.share != share {
			continue
		}
		s.tight = true
		for _, u := range w.links[li].active {
			if !w.of[u.bundle].fixed {
				w.fix(u.bundle, share)
				fixed++
			}
		}
	}
	return fixed
}

// takeIn adds links of the border to what is filled, and reports whether it did.
func (w *watched) takeIn(tight func(li int32) bool) bool {
	took := false
	for _, li := range w.compO {
		if w.ofLink[li].border && tight(li) {
			w.addLink(li)
			took = true
		}
	}
	return took
}

// slack reports whether the border is slack at the rates found, and takes in what
// is not.
func (w *watched) slack() bool {
	return !w.takeIn(func(li int32) bool { return w.ofLink[li].room < wire.Rate(w.links[li].flows) })
}

// fix settles a bundle's rate within a filling.
func (w *watched) fix(bi int32, r wire.Rate) {
	w.of[bi].fixed, w.of[bi].fresh = true, r
	uses, ofLink, flows := w.bundles[bi].uses, w.ofLink, w.shares[bi].n
	for i := range uses {
		u := &uses[i]
		s := &ofLink[u.link]
		n := flows * int64(u.count)
		s.room = max(0, s.room-wire.Rate(n)*r)
		s.open -= n
	}
}

// commit puts the rates found in force. What keeps its rate ends when it would.
func (w *watched) commit() {
	for _, bi := range w.compB {
		b, x, s := &w.bundles[bi], &w.shares[bi], &w.of[bi]
		if more := s.fresh - x.rate; more != 0 {
			w.settle(b, x.rate)
			x.rate = s.fresh
			for _, u := range b.uses {
				w.links[u.link].rest -= wire.Rate(x.n*int64(u.count)) * more
			}
		} else if !s.dirty {
			continue
		}
		s.dirty = false
		w.schedule(bi, b)
	}
	for _, li := range w.compL {
		l, s := &w.links[li], &w.ofLink[li]
		s.tight = s.tight || l.rest < wire.Rate(l.flows)
	}
	w.reportRates(w.compL)
	w.reportRates(w.compO)
}

func (w *watched) reportRates(links []int32) {
	for _, li := range links {
		l := &w.links[li]
		w.report(wire.LinkID(li), w.now, l.cap-l.rest)
		for _, mate := range l.mates {
			w.report(mate, w.now, l.cap-l.rest)
		}
	}
}
