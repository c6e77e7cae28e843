package fluid

import (
	"math"

	"github.com/simccl/simccl/sim/wire"
)

// A link is slack where it has room for one unit of rate a flow and more: it
// holds up none of its flows then, also by rounding, and flows that meet on
// slack links only know nothing of each other. So a change reaches what hangs
// together by tight links, and nothing behind a slack one, unless that becomes
// tight. The rates are the same, bit for bit, as those of filling everything.

// refill redoes the shares of everything that the changes since the last call
// can reach.
func (f *Fluid) refill() {
	if len(f.dirtyB) == 0 {
		return
	}
	for _, bi := range f.dirtyB {
		b := &f.bundles[bi]
		if len(f.routes[b.route].uses) == 0 {
			f.settle(b)
			b.rate = b.bound
			f.schedule(bi)
		} else if len(b.heap) == 0 {
			f.orderRemove(bi)
		}
		b.dirty = b.n > 0 && len(f.routes[b.route].uses) > 0
	}
	for _, li := range f.dirtyL {
		if l := &f.links[li]; l.dirty && (l.tight || f.full) {
			f.begin()
			f.addLink(li)
			f.resolve()
		}
	}
	for _, bi := range f.dirtyB {
		if f.bundles[bi].dirty {
			f.begin()
			f.addBundle(bi)
			f.resolve()
		}
	}
	if f.report != nil {
		f.reportRates(f.dirtyL)
	}
	for _, li := range f.dirtyL {
		f.links[li].dirty = false
	}
	f.dirtyB, f.dirtyL = f.dirtyB[:0], f.dirtyL[:0]
}

// begin starts to gather what is filled together.
func (f *Fluid) begin() {
	f.stamp++
	f.compL, f.compO, f.compB = f.compL[:0], f.compO[:0], f.compB[:0]
}

func (f *Fluid) addLink(li int32) {
	l := &f.links[li]
	l.stamp, l.border, l.dirty = f.stamp, false, false
	f.compL = append(f.compL, li)
}

func (f *Fluid) addBundle(bi int32) {
	f.bundles[bi].stamp = f.stamp
	f.compB = append(f.compB, bi)
}

// resolve gathers, fills, and takes in links that prove to be tight, until
// none does.
func (f *Fluid) resolve() {
	links, bundles := 0, 0
	for {
		for links < len(f.compL) || bundles < len(f.compB) {
			for ; links < len(f.compL); links++ {
				for _, u := range f.links[f.compL[links]].active {
					if b := &f.bundles[u.bundle]; b.stamp != f.stamp && b.n > 0 {
						f.addBundle(u.bundle)
					}
				}
			}
			for ; bundles < len(f.compB); bundles++ {
				f.reach(f.compB[bundles])
			}
		}
		f.open()
		if f.fill() && f.slack() {
			f.commit()
			return
		}
	}
}

// reach adds the links of a bundle: those that are not tight as its border.
func (f *Fluid) reach(bi int32) {
	for _, u := range f.routes[f.bundles[bi].route].uses {
		l := &f.links[u.Link]
		switch {
		case l.stamp == f.stamp:
		case l.tight || f.full:
			f.addLink(int32(u.Link))
		default:
			l.stamp, l.border = f.stamp, true
			f.compO = append(f.compO, int32(u.Link))
		}
	}
}

// open gives links their room: all of it, or at the border what other flows
// leave.
func (f *Fluid) open() {
	for _, li := range f.compL {
		l := &f.links[li]
		l.room, l.open, l.border = l.cap, l.flows, false
	}
	for _, li := range f.compO {
		if l := &f.links[li]; l.border {
			l.room, l.open = l.rest, 0
		}
	}
	for _, bi := range f.compB {
		b := &f.bundles[bi]
		b.fixed = false
		for _, u := range f.routes[b.route].uses {
			if l := &f.links[u.Link]; l.border {
				n := b.n * int64(u.Count)
				l.room += wire.Rate(n) * b.rate
				l.open += n
			}
		}
	}
}

// fill is progressive filling of what is gathered; false where the border is
// tight. Links that are equally tight are filled together, so that the order in
// which they were met cannot show.
func (f *Fluid) fill() bool {
	for _, li := range f.compL {
		f.links[li].tight = false
	}
	f.openL = append(append(f.openL[:0], f.compL...), f.compO...)
	f.openB = append(f.openB[:0], f.compB...)
	bound, _ := f.fixBound(0)
	for left := len(f.compB); left > 0; {
		share := f.least()
		if bound <= share {
			fixed := 0
			bound, fixed = f.fixBound(share)
			left -= fixed
			continue
		}
		fixed := f.fillTight(share)
		if fixed == 0 {
			return false
		}
		left -= fixed
	}
	return true
}

// least finds the smallest share that links give, and drops those whose
// flows are all settled.
func (f *Fluid) least() wire.Rate {
	share, n := wire.Rate(math.MaxInt64), 0
	for _, li := range f.openL {
		l := &f.links[li]
		if l.open == 0 {
			l.share = math.MaxInt64
			continue
		}
		l.share = max(1, l.room/wire.Rate(l.open))
		share = min(share, l.share)
		f.openL[n] = li
		n++
	}
	f.openL = f.openL[:n]
	return share
}

// fixBound gives bundles their own rates where those are no more than a share,
// and returns the smallest of the others' and how many it settled; fixed ones
// are released.
func (f *Fluid) fixBound(share wire.Rate) (least wire.Rate, fixed int) {
	least, n := wire.Rate(math.MaxInt64), 0
	for _, bi := range f.openB {
		switch b := &f.bundles[bi]; {
		case b.fixed:
		case b.bound <= share:
			f.fix(bi, b.bound)
			fixed++
		default:
			least = min(least, b.bound)
			f.openB[n] = bi
			n++
		}
	}
	f.openB = f.openB[:n]
	return least, fixed
}

// fillTight gives the flows on the tightest links their share and returns how
// many bundles that settles: none where one of them is at the border, which then
// is taken in.
func (f *Fluid) fillTight(share wire.Rate) int {
	if f.takeIn(func(l *link) bool { return l.share == share }) {
		return 0
	}
	fixed := 0
	for _, li := range f.openL {
		l := &f.links[li]
		if l.share != share {
			continue
		}
		l.tight = true
		for _, u := range l.active {
			if b := &f.bundles[u.bundle]; !b.fixed {
				f.fix(u.bundle, share)
				fixed++
			}
		}
	}
	return fixed
}

// takeIn adds links of the border to what is filled, and reports whether it did.
func (f *Fluid) takeIn(tight func(*link) bool) bool {
	took := false
	for _, li := range f.compO {
		if l := &f.links[li]; l.border && tight(l) {
			f.addLink(li)
			took = true
		}
	}
	return took
}

// slack reports whether the border is slack at the rates found, and takes in what
// is not.
func (f *Fluid) slack() bool {
	return !f.takeIn(func(l *link) bool { return l.room < wire.Rate(l.flows) })
}

// fix settles a bundle's rate within a filling.
func (f *Fluid) fix(bi int32, r wire.Rate) {
	b := &f.bundles[bi]
	b.fixed, b.fresh = true, r
	for _, u := range f.routes[b.route].uses {
		l := &f.links[u.Link]
		n := b.n * int64(u.Count)
		l.room = max(0, l.room-wire.Rate(n)*r)
		l.open -= n
	}
}

// commit puts the rates found in force. What keeps its rate ends when it would.
func (f *Fluid) commit() {
	for _, bi := range f.compB {
		b := &f.bundles[bi]
		if more := b.fresh - b.rate; more != 0 {
			f.settle(b)
			b.rate = b.fresh
			for _, u := range f.routes[b.route].uses {
				f.links[u.Link].rest -= wire.Rate(b.n*int64(u.Count)) * more
			}
		} else if !b.dirty {
			continue
		}
		b.dirty = false
		f.schedule(bi)
	}
	for _, li := range f.compL {
		l := &f.links[li]
		l.tight = l.tight || l.rest < wire.Rate(l.flows)
	}
	if f.report != nil {
		f.reportRates(f.compL)
		f.reportRates(f.compO)
	}
}
