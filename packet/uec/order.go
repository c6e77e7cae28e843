package uec

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/packet/internal/arrivals"
)

// Frames that arrive at a switch at one instant have an order: that in which the frames before them, each on
// its own link, arrived. In the peer a cable has one event at a time, which is planned when the frame before
// arrives (sim/pipe.cpp). Links that brought nothing yet are in the order of ports.
//
// NICs that send side by side stay in step, until one of them puts an acknowledgement between its data. With
// an order of ports throughout, a queue that overflows would trim the frames of some hosts more often than
// those of others.

// batch is the frames that a link brings to a switch in a window, by their places in engine.arrived: those
// of its low queue, then those of its high queue.
type batch struct {
	port         *port
	low, hi, end int32
	last         int32 // that which arrives last
	// an earlier batch whose last frame may arrive at that instant too; negative: there is none
	like  int32
	place uint16 // among them
}

// frames notes which frames a batch has.
func (b *batch) frames(arrived []frame, hi int) {
	b.hi, b.end = int32(hi), int32(len(arrived))
	b.last = b.end - 1
	if b.low < b.hi && b.hi < b.end && arrived[hi-1].at > arrived[b.last].at {
		b.last = b.hi - 1
	}
}

// past goes back over the frames of a batch: those before low and hi of its two queues are left.
type past struct {
	batch   *batch
	low, hi int32
}

// before is what a link brought before a frame.
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

// at is when the frame before arrived; negative: in an earlier window.
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

// of is the batch of a place.
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

// later reports whether of two frames that arrive at an instant the first is later.
func (e *engine) later(i, j uint64) bool {
	return e.laterOf(e.of(int32(i)), e.of(int32(j)), int32(i), int32(j))
}

// laterOf goes back to where the frames before did not arrive at one instant.
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

// later reports whether the link of a port brought its last frame after that of another.
func (x *port) later(y *port) bool {
	return x.last > y.last || x.last == y.last && x.place > y.place
}

// untieLinks puts sorted keys of ports whose first frames arrive at one instant in order.
func (e *engine) untieLinks(ports []port, keys []uint64) {
	for i := 1; i < len(keys); i++ {
		if arrivals.Together(keys[i-1], keys[i]) {
			arrivals.Untie(keys[i-1:], func(i, j uint64) bool { return ports[i].later(&ports[j]) })
			return
		}
	}
}

// untie puts sorted keys of frames of one instant in order.
func (e *engine) untie(keys []uint64) {
	for i := 1; i < len(keys); i++ {
		if arrivals.Together(keys[i-1], keys[i]) {
			arrivals.Untie(keys[i-1:], e.later)
			e.mayRank()
			return
		}
	}
}

// mayRank orders all frames where going back took long.
func (e *engine) mayRank() {
	if t := &e.ranks; !t.known && t.steps > longWay*len(e.arrived) {
		e.rank()
	}
}

// ranks is the order of all frames of a window, which is found where going back would take long: where many
// links bring frames in step.
type ranks struct {
	parts arrivals.Parts
	at    []int32 // of frames
	links []int32 // of batches: the place of what they brought last
	of    []int32 // of frames: their batch
	order []int32
	steps int // back
	known bool
}

// longWay is so many steps back a frame of a window that to order all costs less.
const longWay = 4

// rank finds the order of all frames of a window.
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

// stamps finds links whose last frames of a window arrived at one instant.
type stamps struct {
	of  [1 << stampBits]struct{ window, batch int32 }
	now int32
}

const stampBits = 9

// like is an earlier batch of the window that may have a time too; negative: there is none.
func (s *stamps) like(at int64, batch int) int32 {
	x := &s.of[uint64(at)*0x9e3779b97f4a7c15>>(64-stampBits)]
	like := int32(-1)
	if x.window == s.now {
		like = x.batch
	}
	x.window, x.batch = s.now, int32(batch)
	return like
}

// arrivedLast notes when links brought their last frame of a window, and in which order.
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
