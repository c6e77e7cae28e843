package rebuild

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/simccl/simccl/workload/kineto"
)

// rank is the reconstruction of one recording.
type rank struct {
	t     *kineto.Trace
	rank  int
	notes []string

	begin, end int64 // the reconstructed span, ns
	ops        []gpuOp
	points     []point
	streams    map[int32]*stream
	threads    map[int32]*thread
	records    []record
	pending    []pendingWait
	shift      int64 // of the clock
	latency    int64 // of a launch, ns
	gap        int64 // between kernels that are queued, ns
}

// note adds a note for users, once.
func (r *rank) note(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(r.notes, s) {
		r.notes = append(r.notes, s)
	}
}

// gpuOp is an operation of the GPU, in order of launch.
type gpuOp struct {
	op     *kineto.Op
	call   *kineto.Call
	comms  []commCall
	deps   []int32 // indices of gpuOps
	before int32   // the one before it on its stream; -1 none
	point  int32   // index of its launch in points
	alone  int64   // ns, time without concurrent work
	graph  bool    // launched by a graph
}

func (g *gpuOp) start() int64 { return g.op.Start }
func (g *gpuOp) end() int64   { return g.op.Start + g.op.Dur }

// pointKind is the kind of a point in a thread's history.
type pointKind uint8

const (
	launchPoint pointKind = iota
	syncPoint             // waits for the GPU
	stepPoint             // an iteration begins
	endPoint              // end of the reconstructed span
)

// point is a place in the host's time, in order.
type point struct {
	kind pointKind
	at   int64 // ns
	ops  []int32
	deps []int32 // of syncPoint: operations that are waited for
	// resume is the earliest time at which a thread continues: the time of syncPoint up to here is the GPU's.
	resume int64
	name   string
}

// stream is the operations of a stream in order of launch.
type stream struct{ ops []int32 }

// thread is the state of a host thread: its last launches and its last cudaEventRecord, on which its next
// call may depend.
type thread struct {
	last    int32 // operation that it launched last, -1
	compute int32 // stream that it launched on last but for NCCL's, -1
	record  int   // index+1 of the record that is its last call, 0 when it is none
}

type record struct {
	call     *kineto.Call
	last     int32 // operation that the thread launched last
	source   int32 // last operation of the stream that the thread computes on
	adjacent bool  // its wait follows directly
}

// pendingWait is a wait between streams whose source is found later.
type pendingWait struct {
	call   *kineto.Call
	sync   *kineto.Sync
	record int   // index+1 of the record before it
	stream int32 // that waits
	at     int32 // number of operations launched before
	target int32 // next operation on the stream; -1 none
}

// launches orders what the threads did: launches, records, waits, synchronisation.
func (r *rank) launches() {
	r.window()
	byCorr := map[uint32][]int32{}
	for i := range r.t.Ops {
		if c := r.t.Ops[i].Corr; c != 0 {
			byCorr[c] = append(byCorr[c], int32(i))
		}
	}
	syncs := map[uint32]*kineto.Sync{}
	for i := range r.t.Syncs {
		syncs[r.t.Syncs[i].Corr] = &r.t.Syncs[i]
	}
	calls := make([]*kineto.Call, 0, len(r.t.Calls))
	for i := range r.t.Calls {
		if c := &r.t.Calls[i]; c.Kind != kineto.Query && c.Kind != kineto.OtherCall && c.Start >= r.begin &&
			c.Start < r.end {
			calls = append(calls, c)
		}
	}
	slices.SortStableFunc(calls, func(a, b *kineto.Call) int { return cmp.Compare(a.Start, b.Start) })
	launched := 0
	steps := r.t.Steps
	for _, c := range calls {
		for len(steps) > 0 && steps[0].Start <= c.Start {
			r.points = append(r.points, point{kind: stepPoint, at: steps[0].Start, name: steps[0].Name})
			steps = steps[1:]
		}
		launched += r.callOf(c, byCorr[c.Corr], syncs[c.Corr])
	}
	r.points = append(r.points, point{kind: endPoint, at: r.end})
	if lost := len(r.t.Ops) - launched; lost > 0 && len(r.t.Steps) == 0 {
		r.note("%d of %d operations have no launch and were left out", lost, len(r.t.Ops))
	}
}

// window finds the time that is rebuilt: the recorded steps, or everything.
func (r *rank) window() {
	t := r.t
	if n := len(t.Steps); n > 0 {
		r.begin = t.Steps[0].Start
		for _, s := range t.Steps {
			r.end = max(r.end, s.Start+s.Dur)
		}
		return
	}
	first := true
	span := func(start, dur int64) {
		if first {
			r.begin, r.end, first = start, start, false
		}
		r.begin, r.end = min(r.begin, start), max(r.end, start+dur+1)
	}
	for i := range t.Calls {
		span(t.Calls[i].Start, t.Calls[i].Dur)
	}
	for i := range t.Ops {
		span(t.Ops[i].Start, t.Ops[i].Dur)
	}
}

func (r *rank) thread(id int32) *thread {
	t := r.threads[id]
	if t == nil {
		t = &thread{last: -1, compute: -1}
		r.threads[id] = t
	}
	return t
}

// callOf processes one runtime call and returns the number of operations that it launched.
func (r *rank) callOf(c *kineto.Call, ops []int32, s *kineto.Sync) int {
	th := r.thread(c.Thread)
	switch c.Kind {
	case kineto.Launch, kineto.GraphLaunch:
		if len(ops) == 0 {
			return 0
		}
		r.launch(c, th, ops)
		th.record = 0
		return len(ops)
	case kineto.Record:
		r.records = append(r.records, record{call: c, last: th.last, source: r.lastOn(r.computeOf(th))})
		th.record = len(r.records)
	case kineto.WaitEvent:
		if s == nil && len(r.t.Syncs) > 0 {
			return 0 // the driver dropped it: the event had happened
		}
		w := pendingWait{call: c, sync: s, stream: -1, at: int32(len(r.ops)), target: -1}
		if th.record > 0 && r.within(c) == r.within(r.records[th.record-1].call) {
			w.record = th.record
		}
		th.record = 0
		if s != nil {
			w.stream = s.Stream
		}
		r.pending = append(r.pending, w)
	case kineto.SyncDevice, kineto.SyncStream, kineto.SyncEvent:
		r.syncCall(c, th, s)
	}
	return 0
}

// within returns the index + 1 of the process-group call during which a runtime call was made; 0 if there is
// none.
func (r *rank) within(c *kineto.Call) int {
	comms := r.t.Comms
	at, _ := slices.BinarySearchFunc(comms, c.Start, func(k kineto.Comm, t int64) int {
		return cmp.Compare(k.Start, t)
	})
	for i := at - 1; i >= max(at-16, 0); i-- {
		if comms[i].Thread == c.Thread && c.Start < comms[i].Start+comms[i].Dur {
			return i + 1
		}
	}
	return 0
}

// computeOf returns the stream that a thread computes on; for a thread without a launch, that of the last
// computation of any thread.
func (r *rank) computeOf(th *thread) int32 {
	if th.compute >= 0 {
		return th.compute
	}
	for i := len(r.ops) - 1; i >= 0; i-- {
		if r.ops[i].op.Class != kineto.NCCL {
			return r.ops[i].op.Stream
		}
	}
	return -1
}

// lastOn returns the last operation launched on a stream, -1 none.
func (r *rank) lastOn(stream int32) int32 {
	if s := r.streams[stream]; s != nil && len(s.ops) > 0 {
		return s.ops[len(s.ops)-1]
	}
	return -1
}

// launch adds the operations of one launch; a graph launch has several.
func (r *rank) launch(c *kineto.Call, th *thread, ops []int32) {
	p := point{kind: launchPoint, at: c.Start}
	first := int32(len(r.ops))
	for _, i := range ops {
		op := &r.t.Ops[i]
		s := r.streams[op.Stream]
		if s == nil {
			s = &stream{}
			r.streams[op.Stream] = s
		}
		g := gpuOp{op: op, call: c, before: r.lastOn(op.Stream), point: int32(len(r.points)), alone: op.Dur,
			graph: c.Kind == kineto.GraphLaunch}
		at := int32(len(r.ops))
		if g.graph {
			g.deps = r.graphDeps(first, op)
		}
		s.ops = append(s.ops, at)
		p.ops = append(p.ops, at)
		r.ops = append(r.ops, g)
		th.last = at
		if op.Class != kineto.NCCL {
			th.compute = op.Stream
		}
	}
	r.points = append(r.points, p)
	if op := &r.t.Ops[ops[0]]; op.Class == kineto.Memcpy && op.Start+op.Dur <= c.Start+c.Dur {
		// The call came back after the copy had ended: it waited for it.
		r.points = append(r.points, point{kind: syncPoint, at: c.Start, deps: []int32{first},
			resume: op.Start + op.Dur})
	}
}

// graphDeps returns the dependency of a graph's operation besides its stream: among the graph's operations on
// other streams, the last that ended before it began.
func (r *rank) graphDeps(first int32, op *kineto.Op) []int32 {
	best := int32(-1)
	for i := first; i < int32(len(r.ops)); i++ {
		g := &r.ops[i]
		if g.op.Stream != op.Stream && g.end() <= op.Start && (best < 0 || g.end() > r.ops[best].end()) {
			best = i
		}
	}
	if before := r.lastOn(op.Stream); best < 0 || before >= first &&
		r.ops[before].end() >= r.ops[best].end() {
		return nil
	}
	return []int32{best}
}

// syncCall processes a runtime call that waits for the GPU.
func (r *rank) syncCall(c *kineto.Call, th *thread, s *kineto.Sync) {
	p := point{kind: syncPoint, at: c.Start}
	switch {
	case c.Kind == kineto.SyncDevice:
		for _, s := range r.streamOrder() {
			p.deps = append(p.deps, r.lastOn(s))
		}
	case c.Kind == kineto.SyncStream && s != nil && s.Stream >= 0 && r.streams[s.Stream] != nil:
		p.deps = append(p.deps, r.lastOn(s.Stream))
	case c.Kind == kineto.SyncStream:
		if i := r.lastOn(r.computeOf(th)); i >= 0 {
			p.deps = append(p.deps, i)
		}
	default:
		// Of an event: the operation that ended last before the call came back.
		best := int32(-1)
		for i := max(0, len(r.ops)-200); i < len(r.ops); i++ {
			if e := r.ops[i].end(); e <= c.Start+c.Dur+1000 && (best < 0 || e > r.ops[best].end()) {
				best = int32(i)
			}
		}
		if best >= 0 {
			p.deps = append(p.deps, best)
		}
	}
	for _, d := range p.deps {
		if e := r.ops[d].end(); e <= c.Start+c.Dur+1000 {
			p.resume = max(p.resume, e)
		}
	}
	if len(p.deps) > 0 {
		r.points = append(r.points, p)
	}
}

// streamOrder returns the numbers of the streams, sorted.
func (r *rank) streamOrder() []int32 { return slices.Sorted(maps.Keys(r.streams)) }
