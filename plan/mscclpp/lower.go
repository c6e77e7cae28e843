package mscclpp

import (
	"slices"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/schedule"
)

// lowering converts one-sided operations to programs. Data that a thread block puts into another GPU's memory
// goes over a connection to a helper program there, which stores it in order. To read another GPU's memory,
// it asks a helper program of the owner. Signals and waits become edges between programs: if data are still
// on the way to that GPU, the edge goes through the helper that stores them.
type lowering struct {
	s       *body
	p       *schedule.Programs
	grain   int64 // bytes: a group of thread blocks divides data at multiples of it
	lands   map[[3]int]*helper
	serves  map[[3]int]*helper
	signals map[[3]int]*counter // by waiting GPU, kind and number of its channel
	sems    map[[2]int]*counter // by GPU and number
	bars    map[[2]int][][]site
	order   []*counter
	barKeys [][2]int
	writes  []packets
	reads   []packets
	err     error
}

// helper is a program that executes stores or loads for a thread block of another GPU.
type helper struct {
	block     int
	ask, data int32 // connections: to the helper; from or to it, with data
}

// counter pairs the signals that raise a semaphore's count with the waits that lower it.
type counter struct {
	initial   int
	ups, down []site
	gpu       int // the GPU that waits
}

// site is a point of a program with the element it comes from, for errors.
type site struct {
	at    schedule.Element
	point schedule.Point
}

// packets is a range of a GPU's scratch memory that is written or read as packets.
type packets struct {
	site
	gpu      int
	from, to int64
}

// running is a thread block while it is converted.
type running struct {
	gpu, block int
	el         schedule.Element
	dirty      []int // GPUs to which it has put data that may not be stored yet
	busy       *schedule.Element
	waited     *schedule.Element
}

// Lower implements schedule.Body.
func (s *body) Lower(p *schedule.Programs, proof bool) error {
	l := &lowering{s: s, p: p, grain: p.Elem, lands: map[[3]int]*helper{}, serves: map[[3]int]*helper{},
		signals: map[[3]int]*counter{}, sems: map[[2]int]*counter{}, bars: map[[2]int][][]site{}}
	if p.Chunk%s.align == 0 && s.align%p.Elem == 0 {
		l.grain = s.align
	}
	if p.Part = p.FIFO(1); proof {
		p.Cell = l.grain
	}
	p.Blocks = make([][][]schedule.Op, len(s.gpus))
	for i := range s.gpus {
		p.Blocks[i] = make([][]schedule.Op, len(s.gpus[i].blocks))
	}
	for i := range s.gpus {
		for b, ops := range s.gpus[i].blocks {
			k := &running{gpu: i, block: b}
			for j := range ops {
				k.el = schedule.Element{GPU: i, Block: b, Step: j, Pos: ops[j].pos}
				l.op(k, &ops[j], 0, p.Chunk*schedule.MaxChunks, proof)
				if p.Ops > schedule.MaxSteps {
					return &plan.UnsupportedError{What: s.File, Why: "too many ops; take a smaller size"}
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

func (l *lowering) fail(at schedule.Element, format string, args ...any) {
	if l.err == nil {
		l.err = l.s.Fault(at, format, args...)
	}
}

// anchor adds an empty op: edges into it (waits) and out of it (signals) are at different points of the
// program.
func (l *lowering) anchor(k *running) { l.emit(k, schedule.Op{}) }

func (l *lowering) site(k *running) site { return site{k.el, l.p.Here(k.gpu, k.block)} }

// emit adds an op to the program of the block; emitAt adds one to a helper program.
func (l *lowering) emit(k *running, op schedule.Op) { l.emitAt(k, k.gpu, k.block, op) }

func (l *lowering) emitAt(k *running, gpu, block int, op schedule.Op) {
	op.At = k.el
	l.p.Add(gpu, block, op)
}

func (l *lowering) helperOf(table map[[3]int]*helper, k *running, gpu int) *helper {
	key := [3]int{k.gpu, k.block, gpu}
	h := table[key]
	if h == nil {
		h = &helper{block: len(l.p.Blocks[gpu]), ask: l.p.Connect(k.gpu, gpu), data: -1}
		l.p.Blocks[gpu] = append(l.p.Blocks[gpu], nil)
		table[key] = h
	}
	return h
}

// op converts one operation; of a pipeline's operation, only the unit bytes of each region that begin at off.
func (l *lowering) op(k *running, op *operation, off, unit int64, proof bool) {
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

// threads checks that the threads of a block have synchronized (nop) where one thread acts for all: signals
// and waits are executed by single threads, data movement by all.
func (l *lowering) threads(k *running, op *operation) {
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
				k.waited.Step)
		}
		at := k.el
		k.busy = &at
	case single && op.kind == portChannel:
	case (isSignal(op.name) || op.name == "sem_release") && k.busy != nil:
		l.fail(k.el, "%s before all threads have ended op %d; put a nop between", op.name, k.busy.Step)
	case isWait(op.name) || op.name == "sem_acquire":
		at := k.el
		k.waited = &at
	}
}

func (l *lowering) pipeline(k *running, op *operation, proof bool) {
	unit := op.unit
	if proof {
		unit = max(l.p.Chunk/2/l.grain*l.grain, l.grain)
	}
	size := op.chunks * l.p.Chunk
	for off := int64(0); off < size && l.err == nil && l.p.Ops <= schedule.MaxSteps; off += unit {
		for i := range op.inner {
			k.el.Pos = op.inner[i].pos
			l.op(k, &op.inner[i], off, unit, proof)
		}
	}
}

// spanOf returns the part of a region that the thread block processes: its share among op.tbs blocks, from
// off on, at most unit bytes.
func (l *lowering) spanOf(op *operation, r *region, off, unit int64) span {
	at, size := split(int64(r.size)*l.p.Chunk, l.grain, op.tb, op.tbs)
	at += int64(r.index) * l.p.Chunk
	size -= off
	return span{r.buf, at + off, max(min(size, unit), 0)}
}

func (l *lowering) ref(s span, done int64) plan.Ref { return l.p.Ref(s.buf, s.off+done) }

// pieces calls do for each part of a size that a connection carries in one op.
func (l *lowering) pieces(size int64, do func(done, n int64)) {
	for done := int64(0); done < size; done += l.p.Part {
		do(done, min(l.p.Part, size-done))
	}
}

// put sends a span to the memory of another GPU; asPackets records that it will be read as packets.
func (l *lowering) put(k *running, src span, gpu int, dst span, asPackets bool) {
	h := l.helperOf(l.lands, k, gpu)
	l.pieces(src.size, func(done, n int64) {
		l.emit(k, schedule.Op{Do: plan.Send, To: []int32{h.ask}, Src: l.ref(src, done), Bytes: n})
		l.emitAt(k, gpu, h.block, schedule.Op{Do: plan.Recv | plan.Copy, From: []int32{h.ask},
			Dst: l.ref(dst, done), Bytes: n})
	})
	switch {
	case asPackets:
		l.written(k, gpu, h.block, dst)
	case dst.size > 0 && !slices.Contains(k.dirty, gpu):
		k.dirty = append(k.dirty, gpu)
	}
}

// written records that a program has written a span of its GPU's scratch as packets.
func (l *lowering) written(k *running, gpu, block int, dst span) {
	l.writes = append(l.writes, packets{site{k.el, l.p.Here(gpu, block)}, gpu, dst.off, dst.off + dst.size})
}

// store copies a span to another place on the same GPU.
func (l *lowering) store(k *running, src, dst span) {
	l.pieces(src.size, func(done, n int64) {
		l.emit(k, schedule.Op{Do: plan.Copy, Src: l.ref(src, done), Dst: l.ref(dst, done), Bytes: n})
	})
}

// addTo adds a span to another one on the same GPU.
func (l *lowering) addTo(k *running, src, dst span) {
	l.pieces(src.size, func(done, n int64) {
		l.emit(k, schedule.Op{Do: plan.Reduce | plan.Copy | plan.Accum, Src: l.ref(src, done),
			Dst: l.ref(dst, done), Bytes: n})
	})
}

// fetch reads a span of another GPU into dst; if with is not nil, dst becomes the sum of that span and with.
func (l *lowering) fetch(k *running, gpu int, src, dst span, with *span) {
	if src.size == 0 {
		return
	}
	h := l.helperOf(l.serves, k, gpu)
	if h.data < 0 {
		h.data = l.p.Connect(gpu, k.gpu)
	}
	l.emit(k, schedule.Op{Do: plan.Send, To: []int32{h.ask}, Src: plan.Ref{Buf: plan.Input}})
	l.emitAt(k, gpu, h.block, schedule.Op{Do: plan.Recv, From: []int32{h.ask}})
	l.pieces(src.size, func(done, n int64) {
		l.emitAt(k, gpu, h.block, schedule.Op{Do: plan.Send, To: []int32{h.data}, Src: l.ref(src, done),
			Bytes: n})
		t := schedule.Op{Do: plan.Recv | plan.Copy, From: []int32{h.data}, Dst: l.ref(dst, done), Bytes: n}
		if with != nil {
			t.Do |= plan.Reduce
			t.Src = l.ref(*with, done)
		}
		l.emit(k, t)
	})
}

// await records that a span of this GPU's scratch is read as packets.
func (l *lowering) await(k *running, s span) {
	if s.size > 0 {
		l.reads = append(l.reads, packets{l.site(k), k.gpu, s.off, s.off + s.size})
	}
}

// move converts an operation with data: it reads src[0], adds the other sources, writes dst[0], and copies
// the result to the other destinations.
func (l *lowering) move(k *running, op *operation, off, unit int64) {
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
			l.written(k, k.gpu, k.block, dst[i])
		}
	}
}

// sum writes the sum of the sources to dst and returns the place of the result. A source that already lies in
// dst is taken first.
func (l *lowering) sum(k *running, op *operation, src []span, dst span) span {
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

// fetchAll converts a reduction by the switch: the sum of a span over all GPUs, stored to all.
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

// spread converts a store by the switch into all GPUs.
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
			l.written(k, k.gpu, k.block, dst)
		}
	}
}

// fence waits until all data that the block has put is stored.
func (l *lowering) fence(k *running) {
	var came []schedule.Point
	for _, gpu := range k.dirty {
		came = append(came, l.through(k, gpu))
	}
	for _, p := range came {
		l.p.Order(p, l.p.Here(k.gpu, k.block))
	}
	k.dirty = k.dirty[:0]
	if len(came) > 0 {
		l.anchor(k)
	}
}

// through sends an empty message after the data that the block has put into a GPU, and returns the point at
// which it has arrived there.
func (l *lowering) through(k *running, gpu int) schedule.Point {
	h := l.helperOf(l.lands, k, gpu)
	l.emit(k, schedule.Op{Do: plan.Send, To: []int32{h.ask}, Src: plan.Ref{Buf: plan.Input}})
	l.emitAt(k, gpu, h.block, schedule.Op{Do: plan.Recv, From: []int32{h.ask}})
	return l.p.Here(gpu, h.block)
}

// signal raises the counts at the other ends of channels, after all data that the block has put is stored: a
// signal is a fence.
func (l *lowering) signal(k *running, kind int, channels []int) {
	for _, id := range channels {
		peer, back := l.s.paired(k.gpu, kind, id)
		if back < 0 {
			l.fail(k.el, "signals gpu %d over a %s channel that has no other end there", peer,
				channelWords[kind])
			return
		}
		if len(k.dirty) > 1 || len(k.dirty) == 1 && k.dirty[0] != peer {
			l.fence(k)
		}
		at := l.p.Here(k.gpu, k.block)
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

func (l *lowering) semaphores(k *running, op *operation) {
	if op.name == "sem_release" {
		l.fence(k)
	}
	for _, id := range op.sems {
		key := [2]int{k.gpu, id}
		c := l.sems[key]
		if c == nil {
			c = &counter{gpu: k.gpu, initial: l.s.gpus[k.gpu].sems[id]}
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

// match makes edges from counts: the n-th wait is for the n-th signal.
func (l *lowering) match() {
	for _, c := range l.order {
		for _, list := range [][]site{c.ups, c.down} {
			for _, x := range list {
				if x.at.Block != list[0].at.Block || x.at.GPU != list[0].at.GPU {
					l.fail(x.at, "signals or waits where tb %d op %d of gpu %d does: which wait is for "+
						"which signal is not said; give each thread block a channel or semaphore of its own",
						list[0].at.Block, list[0].at.Step, list[0].at.GPU)
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
				l.p.Order(c.ups[i].point, d.point)
			}
		}
	}
}

// arrive records that a block reaches its next barrier.
func (l *lowering) arrive(key [2]int, blocks int, x site) {
	rounds, n := l.bars[key], 0
	for _, r := range rounds {
		if slices.ContainsFunc(r, func(o site) bool { return o.point.Block == x.point.Block }) {
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

// barriers makes the edges of every barrier: from all blocks to the first one that arrives, and back.
func (l *lowering) barriers() {
	for _, key := range l.barKeys {
		for _, r := range l.bars[key] {
			hub := r[0]
			if want := l.barrierSize(hub.at); len(r) < want {
				l.fail(hub.at, "is a barrier of %d thread blocks, of which %d come: it would hang", want,
					len(r))
			}
			after := hub.point
			after.Pos++
			for _, o := range r[1:] {
				l.p.Order(o.point, hub.point)
				l.p.Order(after, o.point)
			}
		}
	}
}

func (l *lowering) barrierSize(at schedule.Element) int {
	op := &l.s.gpus[at.GPU].blocks[at.Block][at.Step]
	for i := range op.inner {
		if op.inner[i].pos == at.Pos {
			op = &op.inner[i]
		}
	}
	return op.tbs
}

// packets makes edges from the writers of packets to their readers.
func (l *lowering) packets() {
	for i, w := range l.writes {
		for _, o := range l.writes[:i] {
			if o.gpu == w.gpu && o.from < w.to && w.from < o.to {
				l.fail(w.at, "writes packets into gpu %d where gpu %d tb %d op %d does too: who reads them "+
					"cannot distinguish the two", w.gpu, o.at.GPU, o.at.Block, o.at.Step)
				return
			}
		}
	}
	for _, r := range l.reads {
		covered := int64(0)
		for _, w := range l.writes {
			if w.gpu == r.gpu && w.from < r.to && r.from < w.to {
				covered += min(w.to, r.to) - max(w.from, r.from)
				l.p.Order(w.point, r.point)
			}
		}
		if covered < r.to-r.from {
			l.fail(r.at, "reads packets of chunks %d to %d of s, not all of which are written: it would hang",
				r.from/l.p.Chunk, (r.to-1)/l.p.Chunk)
		}
	}
}
