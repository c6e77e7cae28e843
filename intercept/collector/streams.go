package collector

import (
	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload/calls"
)

// stream is a CUDA stream of a device.
type stream struct {
	streams.Stream[*op]
	dev     *device
	id      uint64
	capture *graph
	failed  bool // an operation of it was ended by an error that was not reported yet
}

// Handles of streams hold these bits; cudart.c makes them.
const (
	streamMark  = 0x51
	nonBlocking = 1 << 39
	perThread   = 2 // cudaStreamPerThread
)

// opKind is what an operation does.
type opKind uint8

const (
	nothing opKind = iota
	launch         // a kernel of a communicator
	copyBytes
	setBytes
	function
	segment // of a real stream: it takes what the GPU has taken
)

// op is an operation of a stream, whose order and times streams.Clock keeps.
type op struct {
	streams.Operation[*op]
	kind   opKind
	st     *stream
	unit   *unit
	a      [3]int64
	took   int64 // ps, of a segment
	timed  bool
	calls  int // launches of its GPU before a segment
	record int // of its GPU's events, -1 for none
}

// event is a CUDA event, as it was recorded last.
type event struct {
	op *op
	r  *rank // whose events have its record, nil for none
	at int
}

// graph is a CUDA graph: the operations that one stream, and those that waited for it, captured.
type graph struct {
	items []item
	from  *stream
}

// item is a captured launch, or another operation.
type item struct {
	ops  []wireOp
	kind opKind
	a    [3]int64
}

func (d *device) stream(id uint64) *stream {
	if id == 1 {
		id = 0
	}
	s, ok := d.streams[id]
	if !ok {
		s = &stream{dev: d, id: id}
		s.Legacy = id == 0
		s.Joins = id != 0 && (id>>40 != streamMark || id&nonBlocking == 0)
		d.streams[id] = s
		d.order = append(d.order, &s.Stream)
	}
	return s
}

// newOp appends an operation to a stream, called by the host at a time in ps; it waits for others, too.
func (c *Core) newOp(called int64, s *stream, kind opKind, behind ...*streams.Operation[*op]) *op {
	o := &op{kind: kind, st: s}
	o.Of = o
	s.dev.order.Enqueue(&s.Stream, &o.Operation, units.Time(called), behind...)
	return o
}

// finish ends an operation at a time in ps, once.
func (c *Core) finish(o *op, at int64) {
	if !c.clock.Finish(&o.Operation, units.Time(at)) {
		return
	}
	c.changed = true
	if o.unit != nil {
		c.over(o.unit)
		c.carried(o.unit)
	}
}

// arrive carries out an operation that waits for nothing more. Kernels, host functions and segments end
// later.
func (c *Core) arrive(o *op) {
	switch o.kind {
	case launch:
		if o.unit.dropped {
			c.finish(o, int64(o.Ready))
			return
		}
		c.arrived(o.unit)
		return
	case copyBytes, setBytes:
		c.move(o)
	case segment:
		if !o.timed {
			return
		}
		c.segmentEnds(o)
		return
	case function:
		p := o.st.dev.p
		p.queue = append(p.queue, o)
		c.changed = true
		return
	}
	c.finish(o, int64(o.Ready))
}

// tails returns the last operations that a host waits for with a stream, or, if id is below 0, with the
// device.
func (d *device) tails(id int64) []*streams.Operation[*op] {
	if id < 0 {
		return d.order.Tails(nil)
	}
	return d.order.Tails(&d.stream(uint64(id)).Stream)
}

// jump moves a thread's clock on to the end of what it waited for. The wait is not its own time (see host).
func (t *thread) jump(to int64) {
	if to > t.now {
		t.waited += to - t.now
		t.now = to
	}
}

// sync is cudaStreamSynchronize, cudaEventSynchronize or cudaDeviceSynchronize: ok is false while an
// operation has not ended. A failed operation is reported once.
func (c *Core) sync(t *thread, d *device, id int64, list []*streams.Operation[*op]) (reply, bool) {
	at, ok := streams.LastEnd(list)
	if !ok {
		return reply{}, false
	}
	c.recordSync(t, d, id)
	t.jump(int64(at))
	for _, o := range list {
		if st := o.Of.st; st.failed {
			st.failed = false
			return reply{status: cudaLaunchFailure}, true
		}
	}
	return reply{}, true
}

// query is cudaStreamQuery or cudaEventQuery. On a virtual clock a loop of polls takes no time and would
// never end, so the second poll of an operation whose end is known, with no other request in between, waits
// for that end.
func (c *Core) query(t *thread, list []*streams.Operation[*op]) reply {
	end, ok := streams.LastEnd(list)
	at := int64(end)
	switch {
	case ok && (at <= t.now || !t.worked && at <= t.p.latest):
		return reply{}
	case ok && t.worked && t.polled[list[0].Of]:
		delete(t.polled, list[0].Of)
		t.jump(at)
		return reply{}
	case ok && t.worked:
		if t.polled == nil {
			t.polled = map[*op]bool{}
		}
		t.polled[list[0].Of] = true
	}
	return reply{status: cudaNotReady}
}

// streamRequest carries out a request about streams; ok is false where it has to
// wait.
func (c *Core) streamRequest(t *thread, q *request) (reply, bool) {
	p := t.p
	if q.kind != reqQuery && q.kind != reqEventQuery {
		t.polled, t.worked = nil, true
	}
	switch q.kind {
	case reqSync:
		d := p.device(int(q.a[0]))
		return c.sync(t, d, q.a[1], d.tails(q.a[1]))
	case reqQuery:
		return c.query(t, p.device(int(q.a[0])).tails(q.a[1])), true
	case reqEventSync, reqEventQuery, reqElapsed:
		return c.eventRequest(t, q)
	case reqFunctionDone:
		if o := p.running[q.a[0]]; o != nil {
			delete(p.running, q.a[0])
			c.finish(o, max(int64(o.Ready), t.now))
			c.clock.Settle()
		}
		return reply{}, true
	case reqStreamEnd: // what it has goes on
		return reply{}, true
	}
	d := p.device(int(q.a[0]))
	return c.enqueue(t, d.stream(uint64(q.a[1])), q), true
}

func (c *Core) eventRequest(t *thread, q *request) (reply, bool) {
	e := t.p.events[uint64(q.a[0])]
	if e == nil { // it was never recorded
		if q.kind == reqElapsed {
			return reply{status: cudaInvalidHandle}, true
		}
		return reply{}, true
	}
	if q.kind == reqEventQuery {
		return c.query(t, []*streams.Operation[*op]{&e.op.Operation}), true
	}
	if q.kind == reqEventSync {
		return c.sync(t, e.op.st.dev, int64(e.op.st.id), []*streams.Operation[*op]{&e.op.Operation})
	}
	f := t.p.events[uint64(q.a[1])]
	if f == nil {
		return reply{status: cudaInvalidHandle}, true
	}
	if !e.op.Ended || !f.op.Ended {
		return reply{status: cudaNotReady}, true
	}
	timed(e, f)
	return reply{a: [4]int64{int64(f.op.End - e.op.End)}}, true
}

// timed notes that a program has asked for the time from an event to another one.
func timed(from, to *event) {
	for _, x := range []*event{from, to} {
		if x.r != nil {
			x.r.events[x.at].Timed = true
		}
	}
	if from.r == nil || from.r != to.r || from.at >= to.at || to.r.events[to.at].Since > 0 {
		return
	}
	marks := 0
	for i := from.at; i < to.at; i++ {
		if to.r.events[i].Kind == calls.Mark {
			marks++
		}
	}
	to.r.events[to.at].Since = marks
}

// enqueue puts an operation on a stream, or in the graph that it captures.
func (c *Core) enqueue(t *thread, s *stream, q *request) reply {
	p := t.p
	switch q.kind {
	case reqEventRecord:
		e := &event{}
		if s.capture != nil { // what is captured is in order, and needs no event
			e.op = &op{st: s}
			e.op.Of, e.op.Ended = e.op, true
			p.events[uint64(q.a[2])] = e
			return reply{}
		}
		e.op = c.newOp(t.now, s, nothing)
		p.events[uint64(q.a[2])] = e
		e.r, e.at = c.recordEvent(t, s, calls.Mark, uint64(q.a[2]))
		c.clock.Begin(&e.op.Operation)
	case reqEventWait:
		e := p.events[uint64(q.a[2])]
		if e == nil {
			return reply{}
		}
		if g := e.op.st.capture; g != nil {
			s.capture = g
			return reply{}
		}
		c.recordEvent(t, s, calls.Wait, uint64(q.a[2]))
		c.clock.Begin(&c.newOp(t.now, s, nothing, &e.op.Operation).Operation)
	case reqCopy, reqSet, reqFunction, reqKernel:
		kinds := map[uint32]opKind{reqCopy: copyBytes, reqSet: setBytes, reqFunction: function,
			reqKernel: nothing}
		c.put(t, s, item{kind: kinds[q.kind], a: [3]int64{q.a[2], q.a[3], q.a[4]}})
	case reqCapture:
		if s.capture != nil {
			return reply{status: cudaInvalidValue}
		}
		s.capture = &graph{from: s}
	case reqCapturing:
		if s.capture != nil {
			return reply{a: [4]int64{1}}
		}
	case reqCaptureEnd:
		return c.endCapture(s)
	case reqGraph:
		return c.replay(t, s, q.a[2])
	default:
		return refuse(cudaNotSupported, "request %d is not known", q.kind)
	}
	return reply{}
}

// put appends an operation to a stream, or, while that captures, to its graph.
func (c *Core) put(t *thread, s *stream, i item) {
	if s.capture != nil {
		s.capture.items = append(s.capture.items, i)
		return
	}
	o := c.newOp(t.now, s, i.kind)
	o.a = i.a
	c.clock.Begin(&o.Operation)
}

func (c *Core) endCapture(s *stream) reply {
	g := s.capture
	if g == nil || g.from != s {
		return reply{status: cudaInvalidValue}
	}
	for _, other := range s.dev.p.devices { //lint:sorted each by itself
		for _, x := range other.streams { //lint:sorted each by itself
			if x.capture == g {
				x.capture = nil
			}
		}
	}
	c.graphs = append(c.graphs, g)
	return reply{a: [4]int64{int64(len(c.graphs))}}
}

// replay launches a graph: what was captured, one after the other, without the host's
// time.
func (c *Core) replay(t *thread, s *stream, number int64) reply {
	if number < 1 || number > int64(len(c.graphs)) {
		return reply{status: cudaInvalidHandle}
	}
	for _, i := range c.graphs[number-1].items {
		if i.ops == nil {
			c.put(t, s, i)
			continue
		}
		ops := append([]wireOp(nil), i.ops...)
		for k := range ops {
			ops[k].stream = s.id
		}
		if r := c.post(t, ops, 0, false); r.status != 0 {
			return reply{status: cudaLaunchFailure}
		}
	}
	return reply{}
}
