package engine

import (
	"cmp"
	"context"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/variates"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/internal/event"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/internal/route"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// Kinds of events.
const (
	evStart uint8 = iota // ID: a group may be able to start
	evJoin               // ID: a group's overhead is over, its bytes begin to move
	evDone               // ID: a piece without bytes is over
	evEnd                // ID: a cut-through op ends, its last data having come
)

// Conn is a FIFO under simulation. Its unit is the piece: a slice of Simple,
// a step of LL and LL128. It is four lines of a cache, of which the first one says what
// is in it.
type Conn struct {
	Snd, Rcv int32 // groups, -1 while unknown
	Route    wire.RouteID
	Net      int32 // index of the network side, -1 for memory
	posted   int64 // pieces whose data (or whose first data) is in progress
	Taken    int64 // pieces read
	sent     int64 // pieces begun by the sender
	credited int64 // pieces whose room came back
	tails    int64 // pieces whose last data is in progress
	Depth    int8  // pieces that fit
	FromHost bool  // what is received lies in host memory
	Staged   bool  // through host memory: its flags take longer than between GPUs
	Read     bool  // Simple's buffer is the sender's, from which the receiver reads over NVLink
	Slots    [plan.FIFOSteps]Slot
}

// address is the exchange of a registered buffer's address: a sender needs its receiver's for each kernel
// that it begins (prims_simple.h, setDataPtrs). given of those wanted are there, the last one from a time on.
type address struct {
	wanted, given int64
	at            units.Time
}

// Slot has the times of every eighth piece of a FIFO: when its first and its last data
// arrives, and when its room is free again.
type Slot struct{ Head, tail, credit units.Time }

// slot returns the slot of the k-th piece: a FIFO reuses plan.FIFOSteps of them.
func (c *Conn) slot(k int64) *Slot { return &c.Slots[uint64(k)%plan.FIFOSteps] }

// Group is a thread group walking its program. What is asked for together lies in one
// line of a cache, of 64 bytes: TestGroupLines.
type Group struct {
	state   state // what neighbours on the SM ask for comes first
	idle    bool  // the op only waits: what it receives is in place
	posted  bool  // the last slice's flag goes up behind a fence
	streams bool  // the piece in progress began without a pause after such a slice
	proto   coll.Protocol
	kind    int8 // of its slices of Simple, -1 before the first and of other protocols
	known   bool // last says all that an op's pieces depend on, beside their size
	rounds  bool // its ops come in rounds over the heads
	flow    wire.FlowID
	Sm      int32
	Rank    int32
	slice   int32 // within the op
	slices  int32
	count   uint32     // pieces so far, for the jitter's stream
	Free    units.Time // when the group can start its next piece
	wake    units.Time // time of the pending evStart, -1 without one
	// Of the connections that the next piece waits for so many are ready, from a time on: before any is,
	// from when the piece in progress began.
	metAt units.Time
	met   int32
	Route wire.RouteID

	Since units.Time  // when the wait for the piece began
	Bytes units.Bytes // of the piece in progress
	size  units.Bytes // of a full slice
	left  float64     // nano-bytes that the flow in progress leaves to flows after it
	peers [4]int32    // the op's connections, where they fit
	Op    plan.Op     // its Do, From and To share a line

	cur   plan.Cursor
	last  opShape    // of the op before
	Plan  *plan.Plan // of its operation: the job's, or one of its members
	Job   *Job
	taken int64 // ops of the program that were taken up

	pass gpu.Pass
	pack int64

	sized    units.Bytes // of the last piece, below 0 where what follows is not known:
	load     float64     // what the links carry for it, flags included, in nano-bytes
	bound    wire.Rate   // and its rate, of LL and LL128
	Program  plan.Program
	Joint    wire.RouteID // of ops with several peers, -1 where there are none
	perRound int32        // ops that one primitive of NCCL was cut into
	held     heldSlice
	drift    float64         // static share of this channel
	draws    variates.Stream // of the jitter of its pieces
	heads    []int32         // connections of its round over the heads
	round    []roundPiece    // pieces of a round over the heads that wait for its end
	folded   *Folded         // nil where every rank runs
	local    wire.RouteID    // of what stays in its device's memory
	_        [4]byte
}

// Folded are the connections of a group of a quotient: all that it reads and writes, and
// those of one op where they vary.
type Folded struct{ Ins, Outs, From, To []int32 }

// Folded returns a group's connections in a quotient, which it makes at the first call.
func (g *Group) Folded() *Folded {
	if g.folded == nil {
		g.folded = new(Folded)
	}
	return g.folded
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

// SM is what the groups of one rank's channel share.
type SM struct {
	First, Groups int32      // its groups, in the order of their phases
	from, to      int32      // the groups of the phase
	active        int32      // threads that move bytes
	threads       int32      // of the phase's groups
	left          int32      // groups of the phase that run
	End           units.Time // of its part of the first kernel
}

// Device is a rank's kernel.
type Device struct {
	Job        *Job
	First, SMs int32 // its multiprocessors
	left       int32
	Done       int32 // kernels finished
	Begin      units.Time
	Ends       []units.Time
}

// Job is one operation of a run: a plan that all ranks of its communicator run so
// many times back to back. Its connections are numbered as the plan's, or as those
// that represent them where it is folded.
type Job struct {
	Plan    *plan.Plan
	Fold    Folding // nil where every rank runs
	Kernels int32   // to run back to back
	Gap     units.Time
	miss    float64      // share of its buffers that the L2 cache does not hold
	crowded float64      // miss, in proportion to how many thread blocks load at once
	memory  wire.RouteID // of the GPU's memory, where there is one rank; else 0
}

// Folding is what an engine needs of a job of which representatives run.
type Folding interface {
	// Ends replaces an op's connections of the plan by those of the engine.
	Ends(g *Group, op *plan.Op)
	// Describe returns the plan's connection behind one of the engine's.
	Describe(conn int32) plan.Conn
}

// Engine is one run. Jobs has one entry; groups and devices refer to it, so that several need no other
// layout.
type Engine struct {
	Class   *gpu.Class
	Cost    costs
	Jobs    []*Job
	Queue   event.Queue
	kinds   []kind
	Wire    wire.Model
	Conns   []Conn
	Groups  []Group
	SMs     []SM
	Devices []Device
	running int32 // devices that have kernels left
	Jitter  gpu.JitterCost
	like    func(pr *plan.Program) *Group
	seed    uint64
	down    []bool // by rank, nil where none is
	late    []units.Time
	Slow    []float64 // by rank, nil where no rank is a straggler
	done    []int32
	err     error
	Events  int64          // events before the instant in which the last device was done
	before  int64          // events before the present instant
	locals  []wire.RouteID // by device
	// Cores is how many processors the run may use, 0 for 1.
	Cores int
	apart *apart // nil: one part
	tail  []mark // of the instants since the last device was done
	Net   *host.Network
	// addresses are the connections by group over which the addresses of registered
	// buffers go; nil where there are none.
	addresses []ends
	given     []address          // by connection
	described plan.Conn          // that is laid out
	Observer  Observer           // nil: none
	Progress  func(part float64) // nil without a listener
	// Cancelled is polled while groups and connections are laid out; its error ends
	// that. nil: nothing does.
	Cancelled func() error
	fetched   int64 // ops taken up
	Ops       int64 // in all, where report is set
	// Ended, if not nil, is called where a device's last kernel ends.
	Ended func(device int32, at units.Time)
	// Skipped is the time of the periods of a steady state that were counted in
	// place of being simulated, and Periods how many those are.
	Skipped       units.Time
	Periods       int64
	skippedEvents int64
	steady        steady
}

// Options are what a run needs beside its plan: the machine, the model of its links, faults and jitter.
type Options struct {
	Class   *gpu.Class
	Systems []*topo.System // by node
	Model   wire.Model
	Network host.Settings
	Seed    uint64
	Slow    []float64 // by rank: how much slower it is; nil where no rank is a straggler
	Down    []bool    // by rank: its process has ended; nil where none has
	Jitter  gpu.JitterCost
	Like    func(pr *plan.Program) *Group // whose jitter the pieces of a program have; nil: each its own
	Kernels int                           // to run back to back, 0: as many as the period takes
	// by rank: how much later its first kernel is launched; nil for no rank
	Late []units.Time
	// Place is where the communicator is in a cluster.
	Place route.Place
	// Whole is what the plan is a part of, nil for nothing: its size says what caches
	// hold, and how often it runs.
	Whole *plan.Plan
	// Graph: the kernels are those of a CUDA graph.
	Graph bool
	// Set is how many bytes a rank touches again and again, 0: those of the plan.
	Set int64
}

// New makes an engine of one job, without groups and connections yet.
func New(o *Options, p *plan.Plan) *Engine {
	whole := cmp.Or(o.Whole, p)
	l := whole.Layout(int32(whole.Comm.NRanks - 1))
	j := &Job{Plan: p, miss: o.Class.Miss(max(o.Set, int64(l.Input+l.Output))),
		Kernels: KernelsFor(whole, o.Kernels)}
	j.crowded = gpu.CrowdedMiss(j.miss, blocksOf(whole))
	e := &Engine{Class: o.Class, Cost: costsOf(o.Class), Jobs: []*Job{j}, Wire: o.Model, seed: o.Seed,
		Slow: o.Slow, down: o.Down, late: o.Late, Jitter: o.Jitter, like: o.Like}
	table := route.New(p.Comm, o.Systems, e.Class, e.Wire)
	table.Place = o.Place
	e.Net = host.New(&host.Options{Class: e.Class, Table: table, Model: e.Wire, Queue: &e.Queue,
		Kernels: e, Plan: p, Seed: e.seed, Down: e.down, Settings: o.Network})
	if p.OneRank() != plan.NotOneRank {
		e.layMemory(j, o.Graph)
	}
	return e
}

// costs are the times of a machine class (gpu.Class) in picoseconds, converted once a run.
type costs struct {
	Hop, credit   [coll.NumProtocols]units.Time
	ll128Op, llOp units.Time
	llTrip, drain units.Time
	batch, work   units.Time
	blockTurn     units.Time
	ll128Both     units.Time
	host          units.Time // what flags take longer through host memory
}

func costsOf(c *gpu.Class) costs {
	us := units.FromMicros
	var k costs
	k.Hop = [3]units.Time{us(c.LL.Hop), us(c.LL128.Hop), us(c.Flag + c.Simple.Post)}
	k.credit = [3]units.Time{us(c.Flag), us(c.Flag), us(c.Flag + c.Simple.Post/2)}
	k.ll128Both = us(c.LL128.Both)
	k.llOp, k.ll128Op = us(c.LL.Op), us(c.LL128.Op)
	k.drain, k.blockTurn = us(c.Simple.Drain), us(c.Simple.BlockTurn)
	k.batch, k.work = us(c.Works.Batch), us(c.Works.Work)
	k.llTrip = us(c.LL.Trip.Base + c.LL.Trip.Recv)
	k.host = us(c.HostHop)
	return k
}

// cancelEvery is how many events pass between two checks of the context.
const cancelEvery = 1 << 14

// lastTime is how far simulated time goes, 26 days: a quarter of what int64
// holds of picoseconds, so that no sum of times overflows.
const lastTime = units.Time(1) << 61

// Run handles events until all kernels are done.
func (e *Engine) Run(ctx context.Context) error {
	var ev event.Event
	if !e.steady.on && e.divide() {
		return e.apart.all(ctx)
	}
	for i := 0; (e.running > 0 || e.Observer != nil && e.Observer.Waits()) && e.err == nil; i++ {
		if i%cancelEvery == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if e.Progress != nil {
				e.Progress(float64(e.fetched) / float64(e.Ops))
			}
		}
		if e.Queue.PopNow(&ev) {
			e.comes()
			e.handle(&ev)
			continue
		}
		if e.Queue.Now+e.Skipped >= lastTime {
			return e.tooLong()
		}
		at, ok := e.Queue.Next()
		// Rates are found when an instant is over: no flow ends within the instant
		// that changes its rate.
		if !ok || at > e.Queue.Now {
			end, flows := e.Wire.Next()
			if e.steady.due && ok && (!flows || end > e.Queue.Now) {
				e.repeat(at, end, flows)
				if e.steady.hopeless(e) && e.divide() {
					return e.apart.all(ctx)
				}
			}
			if flows && (!ok || end <= at) {
				e.advance(end)
				continue
			}
		}
		if !e.Queue.Pop(&ev) {
			return e.deadlock()
		}
		e.begins(ev.At, e.Queue.Handled()-1)
		e.handle(&ev)
	}
	if e.err == nil && e.down != nil {
		return e.hang()
	}
	return e.err
}

// begins moves the clock to an instant, if it is a new one; events is the count of those handled before it.
func (e *Engine) begins(at units.Time, events int64) {
	if at > e.Queue.Now {
		e.Queue.Now, e.before = at, events
	}
}

// Stop ends a run with an error before its next event.
func (e *Engine) Stop(err error) { e.err = err }

// CountOps returns how many ops the run takes up, at least 1.
func (e *Engine) CountOps() int64 {
	n := int64(0)
	for i := range e.Groups {
		g := &e.Groups[i]
		n += g.Job.Plan.NumOps(&g.Program) * int64(g.Job.Kernels)
	}
	return max(1, n)
}

// advance goes on to a time, and handles the flows that end at it.
func (e *Engine) advance(end units.Time) {
	e.begins(end, e.Queue.Handled())
	e.done = e.Wire.Advance(end, e.done[:0])
	for _, tok := range e.done {
		if tok >= 0 {
			e.Groups[tok].flow = -1
		}
	}
	for i, tok := range e.done {
		if i+groupsAhead < len(e.done) {
			if a := e.done[i+groupsAhead]; a >= 0 {
				fetchGroup(&e.Groups[a])
			}
			if a := e.done[i+connsAhead]; a >= 0 {
				e.connsOf(&e.Groups[a])
			}
		}
		e.flowDone(tok)
	}
}

func (e *Engine) handle(ev *event.Event) {
	switch ev.Kind() {
	case evStart:
		g := &e.Groups[ev.ID]
		if g.wake == ev.At {
			g.wake = -1
		}
		if e.tryStart(ev.ID) {
			// All that is done in this instant came before the attempts to start, so
			// that the next event would be this one.
			e.Queue.Skip()
			e.join(ev.ID)
		}
	case evJoin:
		e.join(ev.ID)
	case evDone:
		e.finish(ev.ID)
	case evEnd:
		e.complete(ev.ID)
	default:
		e.Net.Handle(ev)
	}
}

// flowDone routes a completed flow: groups have tokens from 0, network
// messages below.
func (e *Engine) flowDone(tok int32) {
	if tok < 0 {
		e.Net.FlowDone(^tok)
		return
	}
	e.finish(tok)
}

// wakeAt lets a group try at time t.
func (e *Engine) wakeAt(gi int32, t units.Time) {
	g := &e.Groups[gi]
	t = max(t, e.Queue.Now)
	if g.wake >= 0 && g.wake <= t {
		return
	}
	g.wake = t
	e.Queue.Push(t, event.Try, evStart, gi, 0)
}

// startKernel begins the next kernel of a device.
func (e *Engine) startKernel(di int32, at units.Time) {
	d := &e.Devices[di]
	d.Begin = at
	if e.Observer != nil {
		e.Observer.Kernel(d.Done, at-d.Job.Gap)
	}
	d.left = d.SMs
	for s := d.First; s < d.First+d.SMs; s++ {
		e.SMs[s].to = e.SMs[s].First
		e.nextPhase(s, at)
	}
	if d.SMs == 0 {
		e.kernelDone(di, at)
	}
}

// nextPhase starts the groups of a multiprocessor's next phase, or ends its
// part of the kernel.
func (e *Engine) nextPhase(si int32, at units.Time) {
	sm := &e.SMs[si]
	end := sm.First + sm.Groups
	sm.from, sm.left, sm.threads = sm.to, 0, 0
	for sm.to < end && e.Groups[sm.to].Program.Phase == e.Groups[sm.from].Program.Phase {
		sm.left++
		sm.threads += e.Groups[sm.to].Program.Workers
		sm.to++
	}
	if sm.left == 0 {
		if e.Observer != nil {
			e.Observer.Block(si, at)
		}
		d := &e.Devices[e.Groups[sm.First].Rank]
		if d.Done == 0 {
			sm.End = at + e.Skipped
		}
		if d.left--; d.left == 0 {
			e.kernelDone(e.Groups[sm.First].Rank, at)
		}
		return
	}
	if first := &e.Groups[sm.from]; sm.from > sm.First && first.Job.Plan.Members() != nil {
		at += e.between(&first.Program)
	}
	for i := sm.from; i < sm.to; i++ {
		g := &e.Groups[i]
		g.Job.Plan.OpenInto(&g.cur, &g.Program)
		g.Free, g.Since, g.posted, g.taken = at, at, false, 0
		g.state = idle
		e.wakeAt(i, at)
	}
	if e.addresses != nil {
		e.exchange(sm, at)
	}
}

// exchange has the groups of a phase give the addresses of their buffers to those that
// send to them, which wait for them (prims_simple.h:744-775, setDataPtrs).
func (e *Engine) exchange(sm *SM, at units.Time) {
	for i := sm.from; i < sm.to; i++ {
		for _, id := range e.addresses[i].out {
			e.given[id].wanted++
		}
		for _, id := range e.addresses[i].in {
			a := &e.given[id]
			a.given, a.at = a.given+1, at+e.Cost.Hop[coll.LL]
			e.wake(e.Conns[id].Snd, a.at)
		}
	}
}

// ends are the connections of a group over which addresses go.
type ends struct{ in, out []int32 }

// layAddresses finds the connections over which kernels exchange addresses of registered buffers.
func (e *Engine) layAddresses() {
	if !e.anyDirect() {
		return
	}
	e.addresses, e.given = make([]ends, len(e.Groups)), make([]address, len(e.Conns))
	for id := range e.Conns {
		c := &e.Conns[id]
		if c.Snd < 0 || c.Rcv < 0 || c.Net >= 0 || c.FromHost || !e.Groups[c.Snd].givesAddresses() {
			continue
		}
		e.addresses[c.Snd].out = append(e.addresses[c.Snd].out, int32(id))
		e.addresses[c.Rcv].in = append(e.addresses[c.Rcv].in, int32(id))
	}
}

func (e *Engine) anyDirect() bool {
	for i := range e.Groups {
		if e.Groups[i].givesAddresses() {
			return true
		}
	}
	return false
}

// givesAddresses reports whether the group's operation has registered buffers whose
// addresses do not come with the kernel.
func (g *Group) givesAddresses() bool {
	r := &g.Plan.Req
	return r.Direct && (r.Func.IsP2P() || !r.Algo.IsNVLS()) && g.Program.Proto == coll.Simple
}

// between is the time before a later phase of a kernel of several operations: its works
// are loaded, or are there with those of the phase before.
func (e *Engine) between(pr *plan.Program) units.Time {
	if pr.Fused {
		return e.Cost.work
	}
	return e.Cost.batch
}

// programEnd notes that a group's program is over.
func (e *Engine) programEnd(gi int32) {
	g := &e.Groups[gi]
	g.state = ended
	sm := &e.SMs[g.Sm]
	if sm.left--; sm.left == 0 {
		if e.Observer != nil {
			e.Observer.Phase(gi)
		}
		e.nextPhase(g.Sm, e.Queue.Now)
	}
}

func (e *Engine) kernelDone(di int32, at units.Time) {
	d := &e.Devices[di]
	d.Ends = append(d.Ends, at+e.Skipped)
	d.Done++
	if d.Done < d.Job.Kernels {
		e.startKernel(di, at+d.Job.Gap)
		return
	}
	if e.Ended != nil {
		e.Ended(di, at)
	}
	if e.running--; e.running == 0 {
		e.Events = e.before + e.skippedEvents
		e.tail = append(e.tail, mark{e.Queue.Now, e.before})
	}
}
