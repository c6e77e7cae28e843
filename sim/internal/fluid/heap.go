package fluid

// Two heaps: a bundle's flows by the work at which they end, and the bundles
// by the time of their next end. Both know where each element lies.

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

func (f *Fluid) sooner(a, b int32) bool {
	x, y := f.bundles[a].next, f.bundles[b].next
	if x != y {
		return x < y
	}
	return a < b
}

// orderFix puts a bundle in its place after its time has changed.
func (f *Fluid) orderFix(bi int32) {
	if f.bundles[bi].pos < 0 {
		f.bundles[bi].pos = int32(len(f.order))
		f.order = append(f.order, bi)
	}
	i := f.orderUp(int(f.bundles[bi].pos))
	f.orderDown(i)
}

func (f *Fluid) orderRemove(bi int32) {
	i := int(f.bundles[bi].pos)
	if i < 0 {
		return
	}
	f.bundles[bi].pos = -1
	n := len(f.order) - 1
	last := f.order[n]
	f.order = f.order[:n]
	if i < n {
		f.order[i] = last
		f.bundles[last].pos = int32(i)
		f.orderDown(f.orderUp(i))
	}
}

func (f *Fluid) orderUp(i int) int {
	e := f.order[i]
	for i > 0 {
		p := (i - 1) / 2
		if !f.sooner(e, f.order[p]) {
			break
		}
		f.order[i] = f.order[p]
		f.bundles[f.order[i]].pos = int32(i)
		i = p
	}
	f.order[i] = e
	f.bundles[e].pos = int32(i)
	return i
}

func (f *Fluid) orderDown(i int) {
	e, n := f.order[i], len(f.order)
	for {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && f.sooner(f.order[c+1], f.order[c]) {
			c++
		}
		if !f.sooner(f.order[c], e) {
			break
		}
		f.order[i] = f.order[c]
		f.bundles[f.order[i]].pos = int32(i)
		i = c
	}
	f.order[i] = e
	f.bundles[e].pos = int32(i)
}
