package msccl

import (
	"slices"

	"github.com/simccl/simccl/plan"
)

// lowering makes programs of one-sided operations. What a thread block puts into another
// GPU goes over a connection to a program there that stores it, in order; what it reads
// it asks a program of the owner for. Signals and waits become edges between the
// programs: through the storing program, where data are on their way to that GPU.
type lowering struct {
	g       *generator
	p       *plus
	grain   int64 // bytes: a group of thread blocks cuts at multiples of it
	lands   map[[3]int]*helper
	serves  map[[3]int]*helper
	signals map[[3]int]*counter // by gpu that waits, kind and number of its channel
	sems    map[[2]int]*counter // by gpu and number
	bars    map[[2]int][][]site
	order   []*counter
	barKeys [][2]int
	writes  []packets
	reads   []packets
	err     error
}

// helper is a program that a thread block of another GPU uses.
type helper struct {
	block     int
	ask, data int32 // connections: to it, from or to it
}

// counter is what a semaphore's count goes up and down by.
type counter struct {
	initial   int
	ups, down []site
	gpu       int // that waits
}

// site is a point with its element.
type site struct {
	at    element
	point point
}

// packets is scratch memory of a GPU that is written or read as packets.
type packets struct {
	site
	gpu      int
	from, to int64
}

// running is a thread block as it is lowered.
type running struct {
	gpu, block int
	el         element
	dirty      []int // GPUs into which it has put, not yet known to be stored
	busy       *element
	waited     *element
}

func (g *generator) lowerPlus(elem int64, proof bool) error {
	l := &lowering{g: g, p: g.s.plus, grain: elem, lands: map[[3]int]*helper{}, serves: map[[3]int]*helper{},
		signals: map[[3]int]*counter{}, sems: map[[2]int]*counter{}, bars: map[[2]int][][]site{}}
	if g.chunk%l.p.align == 0 && l.p.align%elem == 0 {
		l.grain = l.p.align
	}
	g.cell = l.grain
	if !proof {
		g.cell = max(g.chunk, 1)
	}
	g.blocks = make([][]program, len(l.p.gpus))
	for i := range l.p.gpus {
		g.blocks[i] = make([]program, len(l.p.gpus[i].blocks))
	}
	for i := range l.p.gpus {
		for b, ops := range l.p.gpus[i].blocks {
			k := &running{gpu: i, block: b}
			for j := range ops {
				k.el = element{i, b, j, ops[j].pos}
				l.op(k, &ops[j], 0, g.chunk*maxChunks, proof)
				if g.ops > maxSteps {
					return &plan.UnsupportedError{What: g.s.File, Why: "too many ops; take a smaller size"}
				}
				if l.err != nil {
					return l.err
				}
			}
		}
	}
	l.match()
	l.barriers()
	l.packets()
	return l.err
}

func (l *lowering) fail(at element, format string, args ...any) {
	if l.err == nil {
		l.err = l.g.s.faultAt(at, format, args...)
	}
}

func (l *lowering) here(gpu, block int) point {
	return point{gpu, block, len(l.g.blocks[gpu][block].ops)}
}

// anchor parts what is waited for before it from whom is informed behind it.
func (l *lowering) anchor(k *running) { l.emit(k.gpu, k.block, k.el, template{}) }

func (l *lowering) site(k *running) site { return site{k.el, l.here(k.gpu, k.block)} }

func (l *lowering) emit(gpu, block int, at element, t template) {
	t.at = at
	l.g.add(gpu, block, t)
}

func (l *lowering) helperOf(table map[[3]int]*helper, k *running, gpu int) *helper {
	key := [3]int{k.gpu, k.block, gpu}
	h := table[key]
	if h == nil {
		h = &helper{block: len(l.g.blocks[gpu]), ask: l.g.connect(k.gpu, gpu), data: -1}
		l.g.blocks[gpu] = append(l.g.blocks[gpu], program{})
		table[key] = h
	}
	return h
}

// op lowers one operation, of a pipeline those bytes of each place that begin at off.
func (l *lowering) op(k *running, op *plusOp, off, unit int64, proof bool) {
	l.threads(k, op)
	switch {
	case op.name == "pipeline":
		l.pipeline(k, op, proof)
	case isSignal(op.name):
		l.signal(k, op.kind, op.channels)
	case isWait(op.name):
		for _, id := range op.channels {
			c := l.counter([3]int{k.gpu, op.kind, id}, k.gpu)
			c.down = append(c.down, l.site(k))
		}
		l.anchor(k)
	case op.name == "barrier":
		l.fence(k)
		key := [2]int{k.gpu, op.barrier}
		if l.bars[key] == nil {
			l.barKeys = append(l.barKeys, key)
		}
		l.arrive(key, op.tbs, l.site(k))
		l.anchor(k)
	case op.name == "sem_release" || op.name == "sem_acquire":
		l.semaphores(k, op)
	case op.name == "nop" || op.name == "flush":
	default:
		l.move(k, op, off, unit)
	}
}

// threads checks that the threads of a block have met (nop) where one of them acts for
// all: signals and waits are of single threads, data of all.
func (l *lowering) threads(k *running, op *plusOp) {
	_, moves := shapes[op.name]
	single := isSignal(op.name) || isWait(op.name)
	switch {
	case op.name == "nop" || op.name == "barrier" || op.name == "pipeline":
		if op.name != "pipeline" {
			k.busy, k.waited = nil, nil
		}
	case moves && op.kind != portChannel:
		if k.waited != nil {
			l.fail(k.el, "begins on threads that do not know of the wait of op %d; put a nop between",
				k.waited.step)
		}
		at := k.el
		k.busy = &at
	case single && op.kind == portChannel:
	case (isSignal(op.name) || op.name == "sem_release") && k.busy != nil:
		l.fail(k.el, "%s before all threads have ended op %d; put a nop between", op.name, k.busy.step)
	case isWait(op.name) || op.name == "sem_acquire":
		at := k.el
		k.waited = &at
	}
}

func (l *lowering) pipeline(k *running, op *plusOp, proof bool) {
	unit := op.unit
	if proof {
		unit = max(l.g.chunk/2/l.grain*l.grain, l.grain)
	}
	for off := int64(0); off < op.chunks*l.g.chunk && l.err == nil && l.g.ops <= maxSteps; off += unit {
		for i := range op.inner {
			k.el.pos = op.inner[i].pos
			l.op(k, &op.inner[i], off, unit, proof)
		}
	}
}

// spans cuts a region to what the operation does of it.
func (l *lowering) spanOf(op *plusOp, r *region, off, unit int64) span {
	at, size := split(int64(r.size)*l.g.chunk, l.grain, op.tb, op.tbs)
	at += int64(r.index) * l.g.chunk
	size -= off
	return span{r.buf, at + off, max(min(size, unit), 0)}
}

func (l *lowering) ref(s span, done int64) plan.Ref { return l.g.ref(s.buf, s.off+done) }

// pieces calls do for each part of a size that a connection takes at once.
func (l *lowering) pieces(size int64, do func(done, n int64)) {
	for done := int64(0); done < size; done += l.g.part {
		do(done, min(l.g.part, size-done))
	}
}

// put sends a span to places of another GPU; asPackets notes that it is read as such.
func (l *lowering) put(k *running, src span, gpu int, dst span, asPackets bool) {
	h := l.helperOf(l.lands, k, gpu)
	l.pieces(src.size, func(done, n int64) {
		l.emit(k.gpu, k.block, k.el, template{do: plan.Send, to: []int32{h.ask}, src: l.ref(src, done),
			bytes: n})
		l.land(k, h, gpu, dst, done, n)
	})
	l.landed(k, h, gpu, dst, asPackets)
}

func (l *lowering) land(k *running, h *helper, gpu int, dst span, done, n int64) {
	l.emit(gpu, h.block, k.el, template{do: plan.Recv | plan.Copy, from: []int32{h.ask},
		dst: l.ref(dst, done), bytes: n})
}

func (l *lowering) landed(k *running, h *helper, gpu int, dst span, asPackets bool) {
	if asPackets {
		l.writes = append(l.writes, packets{site{k.el, l.here(gpu, h.block)}, gpu, dst.off, dst.off +
			dst.size})
	} else if dst.size > 0 && !slices.Contains(k.dirty, gpu) {
		k.dirty = append(k.dirty, gpu)
	}
}

// store copies a span within the GPU.
func (l *lowering) store(k *running, src, dst span) {
	l.pieces(src.size, func(done, n int64) {
		l.emit(k.gpu, k.block, k.el, template{do: plan.Copy, src: l.ref(src, done), dst: l.ref(dst, done),
			bytes: n})
	})
}

// addTo adds a span to another of the GPU.
func (l *lowering) addTo(k *running, src, dst span) {
	l.pieces(src.size, func(done, n int64) {
		l.emit(k.gpu, k.block, k.el, template{do: plan.Reduce | plan.Copy | plan.Accum, src: l.ref(src, done),
			dst: l.ref(dst, done), bytes: n})
	})
}

// fetch reads a span of another GPU into dst, or adds it to what with holds.
func (l *lowering) fetch(k *running, gpu int, src, dst span, with *span) {
	if src.size == 0 {
		return
	}
	h := l.helperOf(l.serves, k, gpu)
	if h.data < 0 {
		h.data = l.g.connect(gpu, k.gpu)
	}
	l.emit(k.gpu, k.block, k.el, template{do: plan.Send, to: []int32{h.ask}, src: plan.Ref{Buf: plan.Input}})
	l.emit(gpu, h.block, k.el, template{do: plan.Recv, from: []int32{h.ask}})
	l.pieces(src.size, func(done, n int64) {
		l.emit(gpu, h.block, k.el, template{do: plan.Send, to: []int32{h.data}, src: l.ref(src, done),
			bytes: n})
		t := template{do: plan.Recv | plan.Copy, from: []int32{h.data}, dst: l.ref(dst, done), bytes: n}
		if with != nil {
			t.do |= plan.Reduce
			t.src = l.ref(*with, done)
		}
		l.emit(k.gpu, k.block, k.el, t)
	})
}

// await notes that a span of this GPU's scratch is read as packets.
func (l *lowering) await(k *running, s span) {
	if s.size > 0 {
		l.reads = append(l.reads, packets{l.site(k), k.gpu, s.off, s.off + s.size})
	}
}

// move lowers an operation with data: it reads src[0], adds the others, writes dst[0],
// and gives the result to the other places.
func (l *lowering) move(k *running, op *plusOp, off, unit int64) {
	cut := func(list []region) (out []span) {
		for i := range list {
			out = append(out, l.spanOf(op, &list[i], off, unit))
		}
		return out
	}
	src, dst, sh := cut(op.src), cut(op.dst), shapes[op.name]
	packetsIn, packetsOut := op.name == "rppkt" || op.name == "upkt" || op.name == "gstorepkt",
		op.name == "gstorepkt"
	switch op.name {
	case "get":
		for i := range src {
			l.fetch(k, op.src[i].rank, src[i], dst[i], nil)
		}
		return
	case "put", "pws", "pwsf", "ppkt", "rppkt":
		for i := range dst {
			from := src[0]
			if i < len(src) {
				from = src[i]
			}
			if packetsIn {
				l.await(k, from)
			}
			l.put(k, from, op.dst[i].rank, dst[i], sh.dst == "q*")
		}
		if op.name != "put" && op.kind == portChannel && len(op.channels) > 0 && sh.dst == "r*" {
			l.signal(k, portChannel, op.channels)
		}
		return
	case "glres":
		l.fetchAll(k, op.src[0].group, src[0], dst[0], op.dst[0].group)
		return
	case "gstore", "gstorepkt":
		if packetsIn {
			l.await(k, src[0])
		}
		l.spread(k, op.dst[0].group, src[0], dst[0], packetsOut)
		return
	}
	if packetsIn {
		l.await(k, src[0])
	}
	result := l.sum(k, op, src, dst[0])
	for i := range dst {
		switch {
		case op.dst[i].rank >= 0:
			l.put(k, result, op.dst[i].rank, dst[i], sh.dst == "lq*" || sh.dst == "lpq*")
		case i > 0:
			l.store(k, result, dst[i])
		}
		if op.dst[i].rank < 0 && (op.name == "cpkt" || i == 1 && (sh.dst == "lp" || sh.dst == "lpq*")) {
			l.writes = append(l.writes, packets{l.site(k), k.gpu, dst[i].off, dst[i].off + dst[i].size})
		}
	}
}

// sum writes the sum of the sources to dst and returns that place. A source that lies in
// dst already is the first.
func (l *lowering) sum(k *running, op *plusOp, src []span, dst span) span {
	local := func(i int) bool { return op.src[i].rank < 0 }
	first := 0
	for i := range src {
		if local(i) && src[i] == dst {
			first = i
			break
		}
	}
	for i := range src {
		if i > 0 && shapes[op.name].src == "lp*" {
			l.await(k, src[i])
		}
	}
	at := src[first]
	for i := range src {
		switch {
		case i == first:
		case !local(i):
			l.fetch(k, op.src[i].rank, src[i], dst, &at)
			at = dst
		default:
			if at != dst {
				l.store(k, at, dst)
				at = dst
			}
			l.addTo(k, src[i], dst)
		}
	}
	if at != dst {
		l.store(k, at, dst)
	}
	return dst
}

// fetchAll is a reduction by the switch: the sum of a span of all GPUs, for all.
func (l *lowering) fetchAll(k *running, from []int, src, dst span, to []int) {
	at := src
	for _, gpu := range from {
		if gpu != k.gpu {
			l.fetch(k, gpu, src, dst, &at)
			at = dst
		}
	}
	if at != dst {
		l.store(k, at, dst)
	}
	for _, gpu := range to {
		if gpu != k.gpu {
			l.put(k, dst, gpu, dst, false)
		}
	}
}

// spread is a store by the switch into all GPUs.
func (l *lowering) spread(k *running, to []int, src, dst span, asPackets bool) {
	for _, gpu := range to {
		if gpu != k.gpu {
			l.put(k, src, gpu, dst, asPackets)
			continue
		}
		if src != dst {
			l.store(k, src, dst)
		}
		if asPackets && src != dst {
			l.writes = append(l.writes, packets{l.site(k), k.gpu, dst.off, dst.off + dst.size})
		}
	}
}

// fence waits until all that the block has put is stored.
func (l *lowering) fence(k *running) {
	var came []point
	for _, gpu := range k.dirty {
		came = append(came, l.through(k, gpu))
	}
	for _, p := range came {
		l.g.edges = append(l.g.edges, edge{p, l.here(k.gpu, k.block)})
	}
	k.dirty = k.dirty[:0]
	if len(came) > 0 {
		l.anchor(k)
	}
}

// through sends an empty message behind what the block has put into a GPU and returns
// the point where it has come.
func (l *lowering) through(k *running, gpu int) point {
	h := l.helperOf(l.lands, k, gpu)
	l.emit(k.gpu, k.block, k.el, template{do: plan.Send, to: []int32{h.ask}, src: plan.Ref{Buf: plan.Input}})
	l.emit(gpu, h.block, k.el, template{do: plan.Recv, from: []int32{h.ask}})
	return l.here(gpu, h.block)
}

// signal raises the counts at the other ends of channels, after all that the block has
// put: a signal is a fence.
func (l *lowering) signal(k *running, kind int, channels []int) {
	for _, id := range channels {
		peer, back := l.p.paired(k.gpu, kind, id)
		if back < 0 {
			l.fail(k.el, "signals gpu %d over a %s channel that has no other end there", peer,
				channelWords[kind])
			return
		}
		if len(k.dirty) > 1 || len(k.dirty) == 1 && k.dirty[0] != peer {
			l.fence(k)
		}
		at := l.here(k.gpu, k.block)
		if len(k.dirty) == 1 {
			at = l.through(k, peer)
		}
		c := l.counter([3]int{peer, kind, back}, peer)
		c.ups = append(c.ups, site{k.el, at})
	}
}

func (l *lowering) counter(key [3]int, gpu int) *counter {
	c := l.signals[key]
	if c == nil {
		c = &counter{gpu: gpu}
		l.signals[key] = c
		l.order = append(l.order, c)
	}
	return c
}

func (l *lowering) semaphores(k *running, op *plusOp) {
	if op.name == "sem_release" {
		l.fence(k)
	}
	for _, id := range op.sems {
		key := [2]int{k.gpu, id}
		c := l.sems[key]
		if c == nil {
			c = &counter{gpu: k.gpu, initial: l.p.gpus[k.gpu].sems[id]}
			l.sems[key] = c
			l.order = append(l.order, c)
		}
		if op.name == "sem_release" {
			c.ups = append(c.ups, l.site(k))
		} else {
			c.down = append(c.down, l.site(k))
		}
	}
	l.anchor(k)
}

// match makes edges of counts: the n-th wait is for the n-th signal.
func (l *lowering) match() {
	for _, c := range l.order {
		for _, list := range [][]site{c.ups, c.down} {
			for _, x := range list {
				if x.at.block != list[0].at.block || x.at.gpu != list[0].at.gpu {
					l.fail(x.at, "signals or waits where tb %d op %d of gpu %d does: which wait is for "+
						"which signal is not said; give each thread block a channel or semaphore of its own",
						list[0].at.block, list[0].at.step, list[0].at.gpu)
				}
			}
		}
		switch {
		case len(c.down) > len(c.ups)+c.initial:
			l.fail(c.down[len(c.ups)+c.initial].at,
				"waits for a signal that no operation gives: it would hang")
		case len(c.ups) > len(c.down):
			l.fail(c.ups[len(c.down)].at,
				"signals gpu %d once more than it waits: its next run would not wait", c.gpu)
		case len(c.down) > len(c.ups):
			l.fail(c.down[len(c.ups)].at,
				"takes more of a semaphore than is given back: its next run would hang")
		}
		for i, d := range c.down[min(c.initial, len(c.down)):] {
			if i < len(c.ups) {
				l.g.edges = append(l.g.edges, edge{c.ups[i].point, d.point})
			}
		}
	}
}

// arrive notes that a block comes to its next barrier.
func (l *lowering) arrive(key [2]int, blocks int, x site) {
	rounds, n := l.bars[key], 0
	for _, r := range rounds {
		if slices.ContainsFunc(r, func(o site) bool { return o.point.block == x.point.block }) {
			n++
		}
	}
	if n == len(rounds) {
		rounds = append(rounds, nil)
	}
	rounds[n] = append(rounds[n], x)
	if l.bars[key] = rounds; len(rounds[n]) > blocks {
		l.fail(x.at, "is a barrier of %d thread blocks, and the %dth comes", blocks, len(rounds[n]))
	}
}

// barriers makes edges of every barrier: all to the first block that comes, and back.
func (l *lowering) barriers() {
	for _, key := range l.barKeys {
		for _, r := range l.bars[key] {
			hub := r[0]
			if want := l.barrierSize(hub.at); len(r) < want {
				l.fail(hub.at, "is a barrier of %d thread blocks, of which %d come: it would hang", want,
					len(r))
			}
			after := hub.point
			after.pos++
			for _, o := range r[1:] {
				l.g.edges = append(l.g.edges, edge{o.point, hub.point}, edge{after, o.point})
			}
		}
	}
}

func (l *lowering) barrierSize(at element) int {
	op := &l.p.gpus[at.gpu].blocks[at.block][at.step]
	for i := range op.inner {
		if op.inner[i].pos == at.pos {
			op = &op.inner[i]
		}
	}
	return op.tbs
}

// packets lets each who reads packets wait for those that write them.
func (l *lowering) packets() {
	for i, w := range l.writes {
		for _, o := range l.writes[:i] {
			if o.gpu == w.gpu && o.from < w.to && w.from < o.to {
				l.fail(w.at, "writes packets into gpu %d where gpu %d tb %d op %d does too: who reads them "+
					"cannot distinguish the two", w.gpu, o.at.gpu, o.at.block, o.at.step)
				return
			}
		}
	}
	for _, r := range l.reads {
		covered := int64(0)
		for _, w := range l.writes {
			if w.gpu == r.gpu && w.from < r.to && r.from < w.to {
				covered += min(w.to, r.to) - max(w.from, r.from)
				l.g.edges = append(l.g.edges, edge{w.point, r.point})
			}
		}
		if covered < r.to-r.from {
			l.fail(r.at, "reads packets of chunks %d to %d of s, not all of which are written: it would hang",
				r.from/l.g.chunk, (r.to-1)/l.g.chunk)
		}
	}
}
