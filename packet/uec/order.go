package uec

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/packet/internal/arrivals"
)

// Frames that arrive at a switch at one instant are ordered by the arrivals of the frames before them, each
// on its own link. In the peer a cable has one event at a time, which is scheduled when the frame before
// arrives (sim/pipe.cpp). Links that have delivered nothing yet are in the order of ports.
//
// NICs that send side by side stay in step until one of them inserts an acknowledgement between its data. If
// ties were always decided by port, an overflowing queue would trim the frames of some hosts more often than
// those of others.

// batch is the frames of one link in a window, as ranges of engine.arrived: [low, hi) from its low queue,
// [hi, end) from its high queue.
type batch struct {
	port         *port
	low, hi, end int32
	last         int32 // the frame that arrives last
	// an earlier batch whose last frame may arrive at the same time; negative: none
	like  int32
	place uint16 // order among batches with equal last arrival
}

// frames sets the ranges of the batch to the end of arrived; hi is the index at which the frames of the high
// queue begin.
func (b *batch) frames(arrived []frame, hi int) {
	b.hi, b.end = int32(hi), int32(len(arrived))
	b.last = b.end - 1
	if b.low < b.hi && b.hi < b.end && arrived[hi-1].at > arrived[b.last].at {
		b.last = b.hi - 1
	}
}

// past iterates backwards over a batch in order of arrival: the frames before low and hi are still to be
// visited.
type past struct {
	batch   *batch
	low, hi int32
}

// before returns the frames of the batch that arrived before frame i.
func (b *batch) before(arrived []frame, i int32) past {
	p, at := past{b, b.hi, b.end}, arrived[i].at
	if i < b.hi {
		p.low = i
		for p.hi > b.hi && arrived[p.hi-1].at > at {
			p.hi--
		}
		return p
	}
	p.hi = i
	for p.low > b.low && arrived[p.low-1].at > at {
		p.low--
	}
	return p
}

// at steps back one frame and returns its arrival time; negative: the frame came in an earlier window.
func (p *past) at(arrived []frame) int64 {
	low, hi := int64(-1), int64(-1)
	if p.low > p.batch.low {
		low = arrived[p.low-1].at
	}
	if p.hi > p.batch.hi {
		hi = arrived[p.hi-1].at
	}
	if low > hi {
		p.low--
		return low
	}
	p.hi--
	return hi
}

// of returns the batch that frame i belongs to.
func (e *engine) of(i int32) *batch {
	first, n := 0, len(e.batches)
	for n > 1 {
		if half := n / 2; e.batches[first+half].low <= i {
			first, n = first+half, n-half
		} else {
			n = half
		}
	}
	return &e.batches[first]
}

// later reports whether frame i comes after frame j, of two that arrive at one instant.
func (e *engine) later(i, j uint64) bool {
	return e.laterOf(e.of(int32(i)), e.of(int32(j)), int32(i), int32(j))
}

// laterOf is later for known batches: it walks back along both links until arrivals differ.
func (e *engine) laterOf(x, y *batch, i, j int32) bool {
	if e.ranks.known {
		return e.ranks.at[i] > e.ranks.at[j]
	}
	p, q := x.before(e.arrived, i), y.before(e.arrived, j)
	for ; ; e.ranks.steps++ {
		t, u := p.at(e.arrived), q.at(e.arrived)
		if t != u {
			return t > u
		}
		if t < 0 {
			return x.port.later(y.port)
		}
	}
}

// later reports whether port x's last frame came after port y's.
func (x *port) later(y *port) bool {
	return x.last > y.last || x.last == y.last && x.place > y.place
}

// untieLinks orders sorted keys of ports whose first frames arrive at one instant.
func (e *engine) untieLinks(ports []port, keys []uint64) {
	for i := 1; i < len(keys); i++ {
		if arrivals.Together(keys[i-1], keys[i]) {
			arrivals.Untie(keys[i-1:], func(i, j uint64) bool { return ports[i].later(&ports[j]) })
			return
		}
	}
}

// untie orders sorted keys of frames that arrive at one instant.
func (e *engine) untie(keys []uint64) {
	for i := 1; i < len(keys); i++ {
		if arrivals.Together(keys[i-1], keys[i]) {
			arrivals.Untie(keys[i-1:], e.later)
			e.mayRank()
			return
		}
	}
}

// mayRank computes the ranks of all frames once walking back has cost more than that would.
func (e *engine) mayRank() {
	if t := &e.ranks; !t.known && t.steps > longWay*len(e.arrived) {
		e.rank()
	}
}

// ranks is the total order of a window's frames. It is computed where walking back would be long: many links
// that deliver frames in lockstep.
type ranks struct {
	parts arrivals.Parts
	at    []int32 // by frame: its rank
	links []int32 // by batch: rank of its last frame so far
	of    []int32 // by frame: its batch
	order []int32
	steps int // steps walked back in this window
	known bool
}

// longWay is the number of steps back per frame from which on ranking all frames costs less.
const longWay = 4

// rank computes ranks: in order of time, and at one instant in the order of the frames before.
func (e *engine) rank() {
	t, n := &e.ranks, len(e.arrived)
	t.known = true
	t.at, t.of = slices.Grow(t.at[:0], n)[:n], slices.Grow(t.of[:0], n)[:n]
	t.links, t.order = slices.Grow(t.links[:0], len(e.batches))[:len(e.batches)], t.order[:0]
	keys := t.parts.Room(n)
	for k := range e.batches {
		for i := e.batches[k].low; i < e.batches[k].end; i++ {
			t.of[i], keys[i] = int32(k), arrivals.Key(e.arrived[i].at-e.from, int(i))
		}
		t.order = append(t.order, int32(k))
	}
	slices.SortFunc(t.order, func(a, b int32) int {
		x, y := e.batches[a].port, e.batches[b].port
		return cmp.Or(cmp.Compare(x.last, y.last), cmp.Compare(x.place, y.place))
	})
	turn := int32(0)
	for _, k := range t.order {
		t.links[k] = turn
		turn++
	}
	keys = t.parts.All(keys, e.span)
	for len(keys) > 0 {
		same := 1
		for same < len(keys) && arrivals.Together(keys[0], keys[same]) {
			same++
		}
		if same > 1 {
			slices.SortFunc(keys[:same], func(a, b uint64) int {
				return cmp.Compare(t.links[t.of[a&arrivals.Place]], t.links[t.of[b&arrivals.Place]])
			})
		}
		for _, key := range keys[:same] {
			i := key & arrivals.Place
			t.at[i], t.links[t.of[i]] = turn, turn
			turn++
		}
		keys = keys[same:]
	}
}

// stamps is a hash table by arrival that finds batches whose last frames may arrive at one instant.
type stamps struct {
	of  [1 << stampBits]struct{ window, batch int32 }
	now int32
}

const stampBits = 9

// like returns the last batch with the same hash of arrival in this window, or a negative number, and records
// this batch.
func (s *stamps) like(at int64, batch int) int32 {
	x := &s.of[uint64(at)*0x9e3779b97f4a7c15>>(64-stampBits)]
	like := int32(-1)
	if x.window == s.now {
		like = x.batch
	}
	x.window, x.batch = s.now, int32(batch)
	return like
}

// arrivedLast records each link's last arrival of the window and the order of equal ones, for the next
// window.
func (e *engine) arrivedLast() {
	e.stamps.now++
	for n := range e.batches {
		b := &e.batches[n]
		at := e.arrived[b.last].at
		if b.like = e.stamps.like(at, n); b.like >= 0 {
			e.mayRank()
		}
		for k := b.like; k >= 0; k = e.batches[k].like {
			switch x := &e.batches[k]; {
			case e.arrived[x.last].at != at:
			case e.laterOf(x, b, x.last, b.last):
				x.place++
			default:
				b.place++
			}
		}
	}
	for n := range e.batches {
		b := &e.batches[n]
		b.port.last, b.port.place = e.arrived[b.last].at, b.place
	}
}
