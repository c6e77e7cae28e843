package streams

import (
	"context"
	"math"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// run is the state of a running job: nodes, tasks, operations and GPUs at the time now.
type run struct {
	in     *Input
	p      *workload.Program
	graphs []*graph
	left   [][]int32 // by rank, node: number of unfinished predecessors; through once it has ended
	spans  [][]Span
	done   []int64 // by rank: number of nodes that have ended
	finish []units.Time
	gpus   []gpu
	ready  []place
	tasks  []task
	idle   []int32 // unused entries of tasks
	timers timers
	fluid  fluid
	now    units.Time
	vacant []int32 // ranks whose GPUs have SMs to hand out
	grade  []int32 // ranks whose GPUs are to be regraded
	graded []bool

	kernels   []kernelRun
	freeKern  []int32
	ops       []operation
	freeOps   []int32
	byComm    []window // collectives in progress, by communicator
	messages  map[messageKey]int32
	remote    map[int32]int32 // operation of the backend → index in ops
	members   []memberIndex
	shapes    map[shapeKey]*shape
	shapeOf   []*shape          // by call
	needs     [][]Need          // by call, see pruned
	behind    map[int32][]int32 // by communicator of Behind: communicators whose calls wait behind it
	active    []int32           // by communicator of Behind: number of collectives in progress
	events    int64
	completed int64 // number of operations that have ended
	err       error
	tiled     []tiled
	freeTile  []int32
}

// place is a node of a rank's graph.
type place struct{ rank, node int32 }

type taskKind uint8

const (
	opTask taskKind = iota
	computeTask
	hostTask
	tileTask // a group of clusters of a tiled kernel
)

// task is an activity that takes time.
type task struct {
	kind     taskKind
	running  bool
	changed  bool
	stamp    int32
	rank     int32 // of a compute task
	node     int32
	op       int32 // of a tiled kernel: index in run.tiled; of a tileTask: the kernel's task
	tiles    bool
	fill     int32 // number of SMs that its blocks fill
	held     int32
	waves    int32
	at       units.Time // time of the value progress
	progress float64    // in ps of its time when it runs alone
	target   float64
	total    float64
	rate     float64
	bound    float64 // its own bound on the rate
	most     float64 // its largest need of a full resource, while rates are found
	work     *workload.Work
	needs    []Need
	places   []int32
}

// kernelRun is a running kernel of a rank: of a collective, or of messages.
type kernelRun struct {
	place
	sms   int32
	early int32 // SMs that its first blocks took before it began; part of sms
	left  int32 // operations that have not ended
}

// window holds the collectives of a communicator that are in progress, in order.
type window struct {
	first int32 // number of ops[0] on the communicator
	ops   []int32
}

// messageKey names the k-th message between two ranks of a communicator.
type messageKey struct{ comm, src, dst, k int32 }

func newRun(in *Input) *run {
	p := in.Program
	n := p.Ranks()
	r := &run{in: in, p: p, graphs: make([]*graph, len(p.Lists)), left: make([][]int32, n),
		spans: make([][]Span, n), done: make([]int64, n),
		finish: make([]units.Time, n), gpus: make([]gpu, n), graded: make([]bool, n),
		byComm:   make([]window, len(p.Comms)),
		messages: map[messageKey]int32{}, remote: map[int32]int32{}, shapes: map[shapeKey]*shape{}}
	r.fluid.r = r
	r.fluid.resources = make([]resource, in.Resources)
	r.fluid.filling.Eps = rounding
	for i := range p.Lists {
		r.graphs[i] = newGraph(p, i, in.Part)
	}
	for rank := range n {
		g := r.graphs[p.Of[rank]]
		r.left[rank] = make([]int32, len(g.nodes))
		r.spans[rank] = make([]Span, len(g.nodes))
		for i := range g.nodes {
			r.left[rank][i] = g.nodes[i].in
		}
		r.gpus[rank].slow = own
		if r.shared(int32(rank)) {
			r.gpus[rank].free = in.GPUs[rank].SMs
		}
	}
	r.members = make([]memberIndex, len(p.Comms))
	for i := range p.Comms {
		r.members[i] = newMembers(&p.Comms[i])
	}
	r.shapeOf = make([]*shape, len(p.Calls))
	for i := range p.Calls {
		c := &p.Calls[i]
		size := p.Comms[c.Comm].Size(n)
		if messageHalf(c.Func) {
			size = 2
		}
		r.shapeOf[i] = r.shape(&in.Costs[i], size)
	}
	r.needs, r.behind = r.pruned(), r.waiters()
	r.active = make([]int32, len(p.Comms))
	return r
}

// messageHalf reports whether an operation is a send or receive.
func messageHalf(f coll.Func) bool { return f == coll.Send || f == coll.Recv }

// pollEvery is the number of events between two checks of the context.
const pollEvery = 1 << 12

// play handles events until none is left.
func (r *run) play(ctx context.Context) error {
	for rank := range r.left {
		for i := range r.graphs[r.p.Of[rank]].nodes {
			if r.graphs[r.p.Of[rank]].nodes[i].first {
				r.ready = append(r.ready, place{int32(rank), int32(i)})
			}
		}
	}
	r.settle()
	for i := 0; r.err == nil; i++ {
		if i%pollEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		at, ok := r.next()
		if !ok {
			break
		}
		r.now = at
		for len(r.timers.list) > 0 && r.timers.list[0].due <= at {
			r.events++
			r.expire(r.timers.list[0].task)
		}
		if b := r.in.Backend; b != nil {
			if t, ok := b.Next(); ok && t <= at {
				if err := b.Advance(at, r.ended); err != nil {
					return err
				}
			}
		}
		r.settle()
	}
	if r.err != nil {
		return r.err
	}
	return r.deadlock()
}

// next returns the time of the next event; ok is false if there is none.
func (r *run) next() (at units.Time, ok bool) {
	if len(r.timers.list) > 0 {
		at, ok = r.timers.list[0].due, true
	}
	if r.in.Backend != nil {
		if t, more := r.in.Backend.Next(); more && (!ok || t < at) {
			return t, true
		}
	}
	return at, ok
}

// settle handles everything that happens at the present instant, and computes the new rates.
func (r *run) settle() {
	for i := 0; i < len(r.ready) || len(r.vacant) > 0; {
		for _, rank := range r.vacant {
			r.grant(rank)
			r.admit(rank)
		}
		if r.vacant = r.vacant[:0]; i < len(r.ready) {
			r.begin(r.ready[i])
			i++
		}
	}
	r.ready = r.ready[:0]
	for _, rank := range r.grade {
		r.graded[rank] = false
		r.regrade(rank)
	}
	r.grade = r.grade[:0]
	r.fluid.refill()
}

// touch schedules a GPU to be regraded at the end of the instant.
func (r *run) touch(rank int32) {
	if !r.graded[rank] {
		r.graded[rank] = true
		r.grade = append(r.grade, rank)
	}
}

// begin starts a node whose predecessors have ended.
func (r *run) begin(p place) {
	g := r.graphs[r.p.Of[p.rank]]
	n := &g.nodes[p.node]
	s := &r.spans[p.rank][p.node]
	s.Issued, s.Begin = r.now, r.now
	switch n.kind {
	case compute, host:
		r.startCompute(p, n.kind)
	case kernel, message:
		r.launch(p, n)
	default:
		if g.alias != nil && g.alias[p.node] >= 0 { // executed by a kernel that has ended
			*s = r.spans[p.rank][g.alias[p.node]]
		}
		r.complete(p)
	}
}

// complete ends a node and makes the nodes ready whose last predecessor it was.
func (r *run) complete(p place) {
	g := r.graphs[r.p.Of[p.rank]]
	n := &g.nodes[p.node]
	r.spans[p.rank][p.node].End = r.now
	r.finish[p.rank] = max(r.finish[p.rank], r.now)
	r.done[p.rank]++
	left := r.left[p.rank]
	left[p.node] = through
	for _, to := range g.edges[n.from:n.to] {
		if left[to]--; left[to] == 0 {
			r.ready = append(r.ready, place{p.rank, to})
		}
	}
}

// newTask returns a task without a timer.
func (r *run) newTask(kind taskKind) int32 {
	var t int32
	if n := len(r.idle); n > 0 {
		t = r.idle[n-1]
		r.idle = r.idle[:n-1]
	} else {
		t = int32(len(r.tasks))
		r.tasks, r.timers.at = append(r.tasks, task{}), append(r.timers.at, -1)
	}
	r.tasks[t] = task{kind: kind, at: r.now, bound: 1, places: r.tasks[t].places[:0]}
	return t
}

// endTask stops a task and makes its entry available.
func (r *run) endTask(t int32) {
	r.timers.drop(t)
	r.tasks[t].running = false
	r.idle = append(r.idle, t)
}

// startCompute starts a compute step, or puts it into its GPU's queue.
func (r *run) startCompute(p place, kind nodeKind) {
	s := &r.p.Lists[r.p.Of[p.rank]].Steps[p.node]
	total := float64(s.Time)
	if f := r.p.FactorOf(int(p.rank)); f != 1 {
		total = math.Round(total * f)
	}
	if total == 0 {
		r.complete(p)
		return
	}
	t := r.newTask(computeTask)
	x := &r.tasks[t]
	x.rank, x.node, x.total, x.target = p.rank, p.node, total, total
	if kind == host || !r.shared(p.rank) {
		x.kind = hostTask
		x.rate = 1
		r.timers.schedule(t, r.now+units.Time(total))
		return
	}
	if s.Work > 0 {
		x.work = &r.p.Works[s.Work-1]
		x.fill, x.waves = demand(x.work, r.in.GPUs[p.rank].SMs)
	}
	if x.fill == 0 {
		r.beginCompute(t)
		return
	}
	least := int32(1)
	if k, ok := r.tiles(x); ok {
		x.tiles, x.op, least = true, r.newTiled(k), k.cluster
	}
	r.arrive(p.rank, arrival{id: t, waiting: least})
}

// beginCompute starts a compute kernel on the free SMs.
func (r *run) beginCompute(t int32) {
	x := &r.tasks[t]
	g := &r.gpus[x.rank]
	g.compute = append(g.compute, t)
	r.spans[x.rank][x.node].Begin = r.now
	x.running, x.at = true, r.now
	r.touch(x.rank)
	if x.tiles {
		r.beginTiles(t)
		return
	}
	x.held = min(x.fill, g.free)
	g.free -= x.held
	r.setRate(t, 1)
	r.fluid.change(t)
}

// setRate changes a task's rate, and its timer accordingly. The rate stays above 0, so that its end has
// a time.
func (r *run) setRate(t int32, rate float64) {
	x := &r.tasks[t]
	rate = math.Max(rate, 1e-9)
	if rate == x.rate && r.timers.at[t] >= 0 {
		return
	}
	r.retarget(t, rate)
}

// expire handles a task whose timer has expired.
func (r *run) expire(t int32) {
	x := &r.tasks[t]
	if x.kind == tileTask {
		r.endTile(t)
		return
	}
	x.progress, x.at = x.target, r.now
	p := place{x.rank, x.node}
	switch x.kind {
	case hostTask:
		r.endTask(t)
		r.complete(p)
	case computeTask:
		r.endCompute(t)
	default:
		r.timers.drop(t)
		r.proceed(x.op)
	}
}

// endCompute ends a compute kernel and frees its SMs.
func (r *run) endCompute(t int32) {
	x := &r.tasks[t]
	p := place{x.rank, x.node}
	g := &r.gpus[x.rank]
	g.free += x.held
	g.compute = without(g.compute, t)
	r.endTask(t)
	r.freed(p.rank)
	r.complete(p)
}

// freed has settle hand out SMs that became free on a GPU: after all ends of the instant, so that their order
// does not matter.
func (r *run) freed(rank int32) {
	r.vacant = append(r.vacant, rank)
	r.touch(rank)
}

// without removes the first occurrence of a value from a list, in place, and keeps the order.
func without(list []int32, t int32) []int32 {
	for i, x := range list {
		if x == t {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// result returns the outcome of a finished job.
func (r *run) result() *Result {
	out := &Result{Finish: r.finish, Spans: r.spans, Alone: make([]units.Time, len(r.in.Costs)),
		Operations: r.completed, Events: r.events}
	for i := range r.in.Costs {
		out.Alone[i] = r.in.Costs[i].Time
	}
	return out
}
