package search

import "github.com/simccl/simccl/topo"

// round3 rounds to thousandths as NCCL does after every change of a link
// (search.cc:74): half away from zero, in float32.
func round3(v float32) float32 {
	v = float32(v * 1000) // converted: not to be fused with the difference below
	if v < 1<<23 && v > -(1<<23) {
		whole := float32(int32(v))
		switch d := v - whole; {
		case d >= 0.5:
			whole++
		case d <= -0.5:
			whole--
		}
		v = whole
	}
	return v / 1000
}

// allowed reports whether the current limits permit a route at all.
func (e *engine) allowed(r *route, limit topo.PathKind) bool {
	if r.kind > limit {
		return false
	}
	switch e.cur.pattern {
	case BalancedTree, SplitTree, TreePattern:
		return r.back <= limit // trees use the reverse route too
	}
	return true
}

// take reserves a rate on every link of a route, or nothing.
func (e *engine) take(r *route, q *rate) bool {
	if r.kind >= topo.PathDIS {
		return false
	}
	var n int
	switch {
	case !e.quick:
		n = e.takeExact(r, q, len(r.hops), 1)
	case r.plain:
		n = e.takePlain(r, q.milli)
	default:
		n = e.takeMilli(r, q)
	}
	if n < len(r.hops) {
		e.release(r, q, n)
		return false
	}
	if e.quick {
		e.cur.nHops += q.hops * len(r.hops)
	} else {
		e.countHops(r, q.mult)
	}
	return true
}

// give returns what take reserved.
func (e *engine) give(r *route, q *rate) {
	if r.kind >= topo.PathDIS {
		return
	}
	e.release(r, q, len(r.hops))
	if e.quick {
		e.cur.nHops -= q.hops * len(r.hops)
	} else {
		e.countHops(r, -q.mult)
	}
}

// countHops adds to the hop count; NCCL adds in float32 and truncates, which
// shows only where mult is a fraction (search.cc:157).
func (e *engine) countHops(r *route, mult float32) {
	e.cur.nHops = int(float32(e.cur.nHops) + float32(mult*float32(len(r.hops))))
}

// release gives back the first n hops.
func (e *engine) release(r *route, q *rate, n int) {
	if !e.quick {
		e.takeExact(r, q, n, -1)
		return
	}
	if r.plain {
		for i := range r.hops[:n] {
			e.left[r.hops[i].link] += q.milli
		}
		return
	}
	for i := range r.hops[:n] {
		h := &r.hops[i]
		c := q.milli
		if h.pci && r.surcharge {
			c = q.pciM
		}
		e.left[h.link] += c
		switch h.share {
		case shareEighth:
			e.left[h.rev] += c / 8
		case shareAll:
			e.left[h.rev] += c
		}
	}
}

// takePlain reserves c thousandths on each link and returns how many hops it
// went: all, or up to the first link without enough.
func (e *engine) takePlain(r *route, c int32) int {
	for i := range r.hops {
		l := r.hops[i].link
		if e.left[l] < c {
			return i
		}
		e.left[l] -= c
	}
	return len(r.hops)
}

// takeMilli is takePlain with surcharge and charges against reverse links.
func (e *engine) takeMilli(r *route, q *rate) int {
	for i := range r.hops {
		h := &r.hops[i]
		c := q.milli
		if h.pci && r.surcharge {
			c = q.pciM
		}
		var back int32
		switch h.share {
		case shareEighth:
			back = c / 8
		case shareAll:
			back = c
		}
		if e.left[h.link] < c || back != 0 && e.left[h.rev] < back {
			return i
		}
		e.left[h.link] -= c
		if back != 0 {
			e.left[h.rev] -= back
		}
	}
	return len(r.hops)
}

// takeExact is takeMilli in NCCL's own arithmetic (search.cc:76); sign -1 gives
// back.
func (e *engine) takeExact(r *route, q *rate, n int, sign float32) int {
	bw, pci := float32(sign*q.bw), float32(sign*q.bw)
	if r.surcharge {
		pci = float32(sign * q.pci)
	}
	for i := range r.hops[:n] {
		h := &r.hops[i]
		c := bw
		if h.pci {
			c = pci
		}
		var back float32
		switch h.share {
		case shareEighth:
			back = c / 8
		case shareAll:
			back = c
		}
		if e.linkBW[h.link] < c || back != 0 && e.linkBW[h.rev] < back {
			return i
		}
		e.linkBW[h.link] = round3(e.linkBW[h.link] - c)
		if back != 0 {
			e.linkBW[h.rev] = round3(e.linkBW[h.rev] - back)
		}
	}
	return n
}

// uplinkGBps is the remaining bandwidth between a GPU and its PCI parent, in whole GB/s,
// -1 without one (search.cc:167).
func (e *engine) uplinkGBps(g int32) int32 {
	u := e.uplinks[g]
	if u.up < 0 {
		return -1
	}
	if e.quick {
		return min(e.left[u.up], e.left[u.down]) / 1000
	}
	return int32(min(e.linkBW[u.up], e.linkBW[u.down]))
}
