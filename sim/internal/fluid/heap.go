package fluid

import (
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// Two binary heaps whose elements know their index, so that any of them can be removed: bundle.heap,
// a bundle's flows by target (up, down), and Fluid.order, bundles and flows that run alone by their next
// completion (order…).

func before(a, b *entry) bool {
	if a.target != b.target {
		return a.target < b.target
	}
	return a.seq < b.seq
}

func (f *Fluid) up(b *bundle, i int) {
	e := b.heap[i]
	for i > 0 {
		p := (i - 1) / 2
		if !before(&e, &b.heap[p]) {
			break
		}
		b.heap[i] = b.heap[p]
		f.flows[b.heap[i].flow].pos = int32(i)
		i = p
	}
	b.heap[i] = e
	f.flows[e.flow].pos = int32(i)
}

func (f *Fluid) down(b *bundle, i int) {
	e, n := b.heap[i], len(b.heap)
	for {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && before(&b.heap[c+1], &b.heap[c]) {
			c++
		}
		if !before(&b.heap[c], &e) {
			break
		}
		b.heap[i] = b.heap[c]
		f.flows[b.heap[i].flow].pos = int32(i)
		i = c
	}
	b.heap[i] = e
	f.flows[e.flow].pos = int32(i)
}

// due is an element of order: a bundle at the end of its first flow (flow -1), or a flow that runs alone,
// with flow.own as bundle.
type due struct {
	at     units.Time
	bundle int32
	flow   wire.FlowID
}

func (a due) before(b due) bool { return a.at < b.at || a.at == b.at && a.bundle < b.bundle }

// orderFix inserts a bundle into order, or moves it, by the time of its next completion.
func (f *Fluid) orderFix(bi int32, b *bundle, at units.Time) {
	if b.pos < 0 {
		b.pos = int32(len(f.order))
		f.order = append(f.order, due{})
	} else if f.order[b.pos].at == at {
		return
	}
	f.orderPlace(int(b.pos), due{at, bi, -1})
}

func (f *Fluid) orderRemove(b *bundle) {
	if b.pos >= 0 {
		f.orderDrop(int(b.pos))
		b.pos = -1
	}
}

// orderDrop removes the element at an index of order.
func (f *Fluid) orderDrop(i int) {
	n := len(f.order) - 1
	last := f.order[n]
	f.order = f.order[:n]
	if i < n {
		f.orderPlace(i, last)
	}
}

// orderPlace puts an element at index i, whose content is dropped, and moves it up or down from there.
func (f *Fluid) orderPlace(i int, e due) {
	order := f.order
	from := i
	for i > 0 {
		p := (i - 1) / 2
		if !e.before(order[p]) {
			break
		}
		order[i] = order[p]
		f.orderAt(i)
		i = p
	}
	for i == from {
		c := 2*i + 1
		if c >= len(order) {
			break
		}
		if c+1 < len(order) && order[c+1].before(order[c]) {
			c++
		}
		if !order[c].before(e) {
			break
		}
		order[i] = order[c]
		f.orderAt(i)
		i, from = c, c
	}
	order[i] = e
	f.orderAt(i)
}

// orderAt stores the index of an element of order in its flow or bundle.
func (f *Fluid) orderAt(i int) {
	if e := &f.order[i]; e.flow >= 0 {
		f.flows[e.flow].pos = int32(i)
	} else {
		f.bundles[e.bundle].pos = int32(i)
	}
}
