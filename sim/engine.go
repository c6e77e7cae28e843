package sim

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/event"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// Kinds of events.
const (
	evTry  uint8 = iota // ID: a group may be able to start
	evJoin              // ID: a group's overhead is over, its bytes begin to move
	evDone              // ID: a piece without bytes is over
	evEnd               // ID: a cut-through op ends, its last data having come
)

// conn is a FIFO under simulation. Its unit is the piece: a slice of Simple,
// a step of LL and LL128.
type conn struct {
	snd, rcv int32 // groups, -1 while unknown
	route    wire.RouteID
	net      int32      // index of the network side, -1 for memory
	depth    int64      // pieces that fit
	far      units.Time // what flags take longer than between GPUs
	host     bool       // what is received lies in host memory
	posted   int64      // pieces whose data (or whose first data) is under way
	taken    int64      // pieces read
	sent     int64      // pieces begun by the sender
	credited int64      // pieces whose room came back
	tails    int64      // pieces whose last data is under way
	head     [plan.FIFOSteps]units.Time
	tail     [plan.FIFOSteps]units.Time
	credit   [plan.FIFOSteps]units.Time
}

// group is a thread group walking its program.
type group struct {
	job            *job
	pr             plan.Program
	cur            plan.Cursor
	op             plan.Op
	rank           int32
	sm             int32
	state          state
	slice          int32 // within the op
	slices         int32
	size           units.Bytes // of a full slice
	pass           gpu.Pass
	pack           int64
	free           units.Time // when the group can start its next piece
	flow           wire.FlowID
	rest           float64 // nano-bytes that the flow under way leaves to flows after it
	route          wire.RouteID
	joint          wire.RouteID // of ops with several peers, -1 where there are none
	spread         int32        // ops that one primitive of NCCL was cut into
	heads          []int32      // connections of its turn over the heads
	turn           []turnEnd    // pieces of a turn over the heads that wait for its end
	bytes          units.Bytes  // of the piece under way
	count          uint32       // pieces so far, for the jitter's stream
	ins, outs      []int32      // of a quotient: all connections that it reads and writes
	fromBuf, toBuf []int32      // and those of one op, where they vary
	drift          float64      // static share of this channel
	held           heldSlice
	posted         bool       // the last slice's flag goes up behind a fence
	streams        bool       // the piece under way began without a pause after such a slice
	since          units.Time // when the wait for the piece began
	wake           units.Time // time of the pending evTry, -1 without one
}

type state uint8

const (
	idle    state = iota // between ops, or before a later phase
	waiting              // for data or room
	opening              // its overhead runs
	moving               // its bytes move
	closing              // cut-through: waits for the last data
	ended
)

// multiprocessor is what the groups of one rank's channel share.
type multiprocessor struct {
	first, n int32 // its groups
	active   int32 // threads that move bytes
	threads  int32 // of the phase's groups
	phase    int32
	left     int32 // groups of the phase that run
}

// device is a rank's kernel.
type device struct {
	job      *job
	first, n int32 // its multiprocessors
	left     int32
	done     int32 // kernels finished
	begin    units.Time
	ends     []units.Time
}

// job is one operation of a run: a plan that all ranks of its communicator run so
// many times back to back. Its connections are numbered as the plan's, or as those
// that represent them where it is folded.
type job struct {
	plan    *plan.Plan
	fold    folding // nil where every rank runs
	kernels int32   // to run back to back
	gap     units.Time
	miss    float64      // share of its buffers that the L2 cache does not hold
	memory  wire.RouteID // of the GPU's memory, where there is one rank; else 0
}

// folding is what an engine asks of a job of which representatives run.
type folding interface {
	// Ends replaces an op's connections of the plan by those of the engine.
	Ends(g *group, op *plan.Op)
	// Describe returns the plan's connection behind one of the engine's.
	Describe(conn int32) plan.Conn
}

// engine is one run: a list of jobs, today of one. Every group and device knows
// its job.
type engine struct {
	class   *gpu.Class
	cost    costs
	jobs    []*job
	queue   event.Queue
	net     wire.Model
	conns   []conn
	groups  []group
	sms     []multiprocessor
	devs    []device
	running int32 // devices that have kernels left
	jitter  gpu.JitterCost
	seed    uint64
	gone    []bool    // by rank, nil where none is
	slow    []float64 // by rank, nil where no rank is a straggler
	done    []int32
	err     error
	handled int64 // events until the last device was done
	nw      *host.Network
	obs     Observer           // nil: nobody listens
	tell    func(part float64) // nil where nobody asks
	fetched int64              // ops taken up
	ops     int64              // in all, where tell is set
}

// costs are the class's times in picoseconds.
type costs struct {
	hop, credit   [coll.NumProtocols]units.Time
	ll128Op, llOp units.Time
	llTrip, drain units.Time
}

func costsOf(c *gpu.Class) costs {
	us := units.FromMicros
	var k costs
	k.hop = [3]units.Time{us(c.LL.Hop), us(c.LL128.Hop), us(c.Flag + c.Simple.Post)}
	k.credit = [3]units.Time{us(c.Flag), us(c.Flag), us(c.Flag + c.Simple.Post/2)}
	k.llOp, k.ll128Op = us(c.LL.Op), us(c.LL128.Op)
	k.drain = us(c.Simple.Drain)
	k.llTrip = us(c.LL.Trip.Base + c.LL.Trip.Recv)
	return k
}

// cancelEvery is how many events pass between looks at the context.
const cancelEvery = 1 << 14

// lastTime is how far simulated time goes, 26 days: a quarter of what int64
// holds of picoseconds, so that no sum of times overflows.
const lastTime = units.Time(1) << 61

// run handles events until all kernels are done.
func (e *engine) run(ctx context.Context) error {
	var ev event.Event
	for i := 0; (e.running > 0 || e.obs != nil && e.obs.Waits()) && e.err == nil; i++ {
		if i%cancelEvery == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if e.tell != nil {
				e.tell(float64(e.fetched) / float64(e.ops))
			}
		}
		if e.queue.Now >= lastTime {
			return &exec.NotImplementedError{Feature: fmt.Sprintf("%v of %d elements that takes more than 26 days", e.jobs[0].plan.Req.Func, e.jobs[0].plan.Req.Count),
				Missing: "simulated time ends there; look at the speeds of links and ports, or take a smaller size"}
		}
		at, ok := e.queue.Next()
		// Rates are found when an instant is over: no flow ends within the instant
		// that changes its rate.
		if !ok || at > e.queue.Now {
			if end, flows := e.net.Next(); flows && (!ok || end <= at) {
				e.advance(end)
				continue
			}
		}
		if !e.queue.Pop(&ev) {
			return e.deadlock()
		}
		e.queue.Now = ev.At
		e.handle(&ev)
	}
	if e.err == nil && e.gone != nil {
		return e.hangs()
	}
	return e.err
}

// countOps returns how many ops the run takes up, at least 1.
func (e *engine) countOps() int64 {
	n := int64(0)
	for i := range e.groups {
		g := &e.groups[i]
		n += g.job.plan.NumOps(&g.pr) * int64(g.job.kernels)
	}
	return max(1, n)
}

// advance ends the flows that are through at a time.
func (e *engine) advance(end units.Time) {
	e.queue.Now = end
	e.done = e.net.Advance(end, e.done[:0])
	for _, tok := range e.done {
		if tok >= 0 {
			e.groups[tok].flow = -1
		}
	}
	for _, tok := range e.done {
		e.flowDone(tok)
	}
}

func (e *engine) handle(ev *event.Event) {
	switch ev.Kind {
	case evTry:
		g := &e.groups[ev.ID]
		if g.wake == ev.At {
			g.wake = -1
		}
		e.try(ev.ID)
	case evJoin:
		e.join(ev.ID)
	case evDone:
		e.finish(ev.ID)
	case evEnd:
		e.complete(ev.ID)
	default:
		e.nw.Handle(ev)
	}
}

// flowDone routes a completed flow: groups have tokens from 0, network
// messages below.
func (e *engine) flowDone(tok int32) {
	if tok < 0 {
		e.nw.FlowDone(^tok)
		return
	}
	e.finish(tok)
}

// wakeAt lets a group try at time t.
func (e *engine) wakeAt(gi int32, t units.Time) {
	g := &e.groups[gi]
	t = max(t, e.queue.Now)
	if g.wake >= 0 && g.wake <= t {
		return
	}
	g.wake = t
	e.queue.Push(t, event.Try, evTry, gi, 0)
}

func (e *engine) deadlock() error {
	if e.gone != nil {
		return e.hangs()
	}
	if err := e.nw.Stuck(); err != nil {
		return err
	}
	d := &DeadlockError{}
	for i := range e.groups {
		if g := &e.groups[i]; g.state == waiting {
			if d.Waiting == 0 {
				d.Rank, d.Channel, d.Seq = g.rank, g.pr.Channel, g.op.Seq
			}
			d.Waiting++
		}
	}
	return d
}

// startKernel begins the next kernel of a device.
func (e *engine) startKernel(di int32, at units.Time) {
	d := &e.devs[di]
	d.begin = at
	if e.obs != nil {
		e.obs.Kernel(d.done, at-d.job.gap)
	}
	d.left = d.n
	for s := d.first; s < d.first+d.n; s++ {
		e.sms[s].phase = -1
		e.nextPhase(s, at)
	}
	if d.n == 0 {
		e.kernelDone(di, at)
	}
}

// nextPhase starts the groups of a multiprocessor's next phase, or ends its
// part of the kernel.
func (e *engine) nextPhase(si int32, at units.Time) {
	sm := &e.sms[si]
	next := int32(-1)
	for i := sm.first; i < sm.first+sm.n; i++ {
		if p := e.groups[i].pr.Phase; p > sm.phase && (next < 0 || p < next) {
			next = p
		}
	}
	if next < 0 {
		if e.obs != nil {
			e.obs.Block(si, at)
		}
		d := &e.devs[e.groups[sm.first].rank]
		if d.left--; d.left == 0 {
			e.kernelDone(e.groups[sm.first].rank, at)
		}
		return
	}
	sm.phase, sm.left, sm.threads = next, 0, 0
	for i := sm.first; i < sm.first+sm.n; i++ {
		if e.groups[i].pr.Phase == next {
			sm.left++
			sm.threads += e.groups[i].pr.Workers
		}
	}
	for i := sm.first; i < sm.first+sm.n; i++ {
		if g := &e.groups[i]; g.pr.Phase == next {
			g.job.plan.OpenInto(&g.cur, &g.pr)
			g.free, g.since, g.posted = at, at, false
			g.state = idle
			e.wakeAt(i, at)
		}
	}
}

// programEnd notes that a group's program is over.
func (e *engine) programEnd(gi int32) {
	g := &e.groups[gi]
	g.state = ended
	sm := &e.sms[g.sm]
	if sm.left--; sm.left == 0 {
		if e.obs != nil {
			e.obs.Phase(gi)
		}
		e.nextPhase(g.sm, e.queue.Now)
	}
}

func (e *engine) kernelDone(di int32, at units.Time) {
	d := &e.devs[di]
	d.ends = append(d.ends, at)
	d.done++
	if d.done < d.job.kernels {
		e.startKernel(di, at+d.job.gap)
		return
	}
	if e.running--; e.running == 0 {
		e.handled = e.queue.Handled()
	}
}
