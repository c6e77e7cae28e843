package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/fluid"
	"github.com/simccl/simccl/sim/internal/fold"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/internal/packets"
	"github.com/simccl/simccl/sim/internal/route"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/topo/machine/datasheet"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Launch is how operations reach the GPU.
type Launch uint8

// Launch modes.
const (
	Eager Launch = iota // asynchronous launches, one process a GPU
	Graph               // CUDA-graph replay: no host cost
)

// timed is how many operations nccl-tests times together.
const timed = 20

// Config is the input of a simulation other than the plan.
type Config struct {
	Comm *connect.Layout
	// Systems are the topologies by node (Comm.NodeOf); equal nodes share one.
	Systems []*topo.System
	// Class is the machine's parameters; nil takes the class that fits the
	// first System (ClassOf).
	Class  *gpu.Class
	Launch Launch
	// PerThread counts the GPUs that one host thread launches for, 0 for 1; it
	// matters to eager launches.
	PerThread int
	// Kernels is how many operations are simulated back to back, of which the
	// period is taken; 0 means 3, and fewer for plans of many steps.
	Kernels int
	// Late is by rank how much later its first kernel is launched; nil for no rank.
	Late []units.Time
	// Seed starts the jitter's streams. NoJitter switches it off; beyond
	// JitterRanks ranks it is always off. Beyond 16 ranks equivalent ones share it where
	// there is much to draw (docs/adr/0018): that depends on the operation alone, not on
	// NoSkip, Fold or a trace.
	Seed     uint64
	NoJitter bool
	// NoSkip simulates every period of a steady state, for comparison: results are
	// equal to the picosecond, but for windows (docs/adr/0018), which it has none of.
	NoSkip bool
	// Cores is how many processors one run may use, 0 for 1; no result depends on it. More
	// than one help where nodes share nothing but the network, and no period of a steady state
	// is skipped (docs/adr/0019).
	Cores int
	// Windows keeps the parts of operations that were simulated for longer ones, for
	// all runs of the same Config; nil: each run has its own.
	Windows *Windows
	// Fold says whether equal ranks and channels are simulated once.
	Fold Folding
	// Budget is what a run may take of a processor by forecast, 0 for a minute: what would take more is
	// refused, but by FoldExact and Unfolded.
	Budget units.Time
	// Fabric is the network between the hosts; nil: ports share max-min, and
	// switches do not block.
	Fabric *fabric.Fabric
	// QPs are the queue pairs of a connection (NCCL_IB_QPS_PER_CONNECTION), 0
	// for 1. They take steps in rotation, or each a part of every step with
	// SplitData (NCCL_IB_SPLIT_DATA_ON_QPS).
	QPs       int
	SplitData bool
	// TwoWrites are the bytes above which a message is a write and an empty one
	// with the immediate, as adaptive routing needs it (NCCL_IB_AR_THRESHOLD,
	// net_ib.cc:2100): unset for 8192, below 0 for never. Only traces show it.
	TwoWrites units.Opt[units.Bytes]
	// Sockets are how connections over TCP are split.
	Sockets Sockets
	// Faults are stragglers, slow and lossy ports, and ranks and ports that are down.
	Faults []Fault
	// RC is how lost packets are repeated.
	RC Reliability
	// Progress, where set, is called periodically with the part of a run that is done.
	Progress func(part float64)
	// Packets, where set, carries what hosts send each other frame by frame; it needs
	// a Fabric and RDMA, and simulates every rank by itself.
	Packets *Packets
	// Wire makes the model of links that a run uses, without links yet; nil for
	// fluid.New, which shares them max-min.
	Wire func() wire.Model
	// Place is where the communicator is in the cluster whose names its links have.
	Place Place
	// Set is how many bytes a rank's buffers have that are used again and again, of which
	// one operation's are a part: what L2 holds of them; 0: those of the operation.
	Set int64
	// Trace chooses what is reported to a sink; the zero Options are collectives
	// only, DetailStep is all of a step.
	Trace TraceOptions
}

// Packets are the settings of a network that is simulated frame by frame.
type Packets = packets.Settings

// Place says where a communicator over a part of a cluster is in it.
type Place = route.Place

// JitterRanks is the largest communicator that is simulated with jitter: in a
// longer pipeline its effect on the whole falls as 1/ranks.
const JitterRanks = host.JitterRanks

// Executor simulates plans of one communicator. It may run several plans, one
// after the other.
type Executor struct {
	cfg       Config
	class     gpu.Class
	windows   *Windows
	whole     units.Time // of a processor: what costs more is shortened where it can be
	chains    bool       // all nodes of a chain are simulated
	flowsOnly bool       // a run of Packets ends with errNeedsFrames once frames are needed
	share     int64      // what has more pieces than that shares its jitter; below 0 for mostToDraw
	parts     int        // most that a run was handled in
	afford    units.Time // of a processor: what costs more is refused
}

var _ exec.Executor = (*Executor)(nil)

// New checks a Config and makes an Executor of it.
func New(cfg Config) (*Executor, error) {
	if cfg.Comm == nil || cfg.Comm.NRanks < 1 {
		return nil, &ConfigError{"Comm", "has no ranks; give a joined communicator"}
	}
	if err := cfg.checkSystems(); err != nil {
		return nil, err
	}
	if cfg.QPs < 0 || cfg.QPs > host.MaxQPs {
		return nil, &ConfigError{"QPs", fmt.Sprintf("%d queue pairs of a connection; from 1 to %d", cfg.QPs,
			host.MaxQPs)}
	}
	if err := cfg.checkFaults(); err != nil {
		return nil, err
	}
	if cfg.Packets != nil && cfg.Fabric == nil {
		return nil, &ConfigError{"Packets", "needs a Fabric, whose cables carry the frames"}
	}
	cfg.Systems = merged(cfg.Systems)
	x := &Executor{cfg: cfg, windows: cfg.Windows, whole: wholeTime, share: -1,
		afford: cmp.Or(cfg.Budget, mostTime)}
	if x.windows == nil {
		x.windows = new(Windows)
	}
	if cfg.Class != nil {
		x.class = *cfg.Class
	} else {
		x.class = ClassOf(cfg.Systems[0])
	}
	if arch := cfg.Systems[0].Arch(); arch != "" && x.class.Name == "" {
		return nil, &plan.UnsupportedError{What: "times of " + arch, Why: "it has no machine class; " +
			"--machine-class FILE gives one"}
	}
	return x, nil
}

// checkSystems refuses what is not one System a node with a GPU for each rank.
func (c *Config) checkSystems() error {
	if len(c.Systems) != c.Comm.NNodes {
		return &ConfigError{"Systems", fmt.Sprintf("%d systems for %d nodes; give one a node", len(c.Systems),
			c.Comm.NNodes)}
	}
	for i, s := range c.Systems {
		if gpus := len(s.Of(topo.GPU)); len(c.Comm.NodeRanks[i]) > gpus {
			return &ConfigError{"Systems", fmt.Sprintf("node %d has %d GPUs for %d ranks", i, gpus,
				len(c.Comm.NodeRanks[i]))}
		}
	}
	return nil
}

// merged takes equal Systems for one, so that hosts that were read one by one are as
// equivalent as those of one file.
func merged(systems []*topo.System) []*topo.System {
	if !slices.ContainsFunc(systems, func(s *topo.System) bool { return s != systems[0] }) {
		return systems
	}
	out, kinds := slices.Clone(systems), map[*topo.System]*topo.System{}
	var distinct []*topo.System
	for i, s := range systems {
		if kinds[s] == nil {
			k := slices.IndexFunc(distinct, func(d *topo.System) bool { return reflect.DeepEqual(d, s) })
			if k < 0 {
				k, distinct = len(distinct), append(distinct, s)
			}
			kinds[s] = distinct[k]
		}
		out[i] = kinds[s]
	}
	return out
}

// Class returns the machine class that the executor uses.
func (x *Executor) Class() gpu.Class { return x.class }

// ClassOf returns the class of machine that a topology belongs to, without a name where GPUs of an
// architecture of AMD have none.
func ClassOf(s *topo.System) gpu.Class {
	if arch := s.Arch(); arch != "" {
		return gpu.ClassForArch(arch, s.Nodes[s.Of(topo.GPU)[0]].GPU.CU)
	}
	sm := 0
	for _, id := range s.Of(topo.GPU) {
		sm = max(sm, s.Nodes[id].GPU.SM)
	}
	nvlink, c2c := false, false
	for i := range s.Links {
		nvlink = nvlink || s.Links[i].Kind == topo.LinkNVL
		c2c = c2c || s.Links[i].Kind == topo.LinkC2C
	}
	for _, id := range s.Of(topo.CPU) { // older releases do not read C2C, nor do all files have it
		c2c = c2c || sm >= 90 && s.Nodes[id].CPU.Arch == topo.ArchARM && (nvlink || !s.Rules.Topo.C2CLinks)
	}
	class := gpu.ClassFor(sm, nvlink, len(s.Of(topo.NVS)) > 0, c2c)
	id := s.Nodes[s.Of(topo.GPU)[0]].GPU.Device
	if g, ok := datasheet.Device(id>>48, id>>32&0xffff); ok {
		class = class.Of(g.Name)
	}
	return class
}

// Run implements exec.Executor. Times in the trace are those of the last
// simulated operation, shifted to begin at zero.
func (x *Executor) Run(ctx context.Context, job exec.Job, sink trace.Sink) (exec.Result, error) {
	p, err := job.Single("the simulator")
	if err != nil {
		return exec.Result{Wrong: -1}, err
	}
	if p.Comm != x.cfg.Comm {
		return exec.Result{}, &ConfigError{"Comm", "the plan is of another communicator"}
	}
	sink = trace.OrDiscard(sink)
	if s := x.cfg.Packets; s != nil && s.Hybrid {
		return x.hybrid(ctx, p, sink)
	}
	return x.single(ctx, p, sink)
}

// single simulates one operation on one model of the network.
func (x *Executor) single(ctx context.Context, p *plan.Plan, sink trace.Sink) (exec.Result, error) {
	m, err := x.decide(ctx, p, sink)
	if err != nil {
		return exec.Result{Wrong: -1}, err
	}
	res, err := x.execute(ctx, m, sink)
	if errors.Is(err, errDrifts) {
		y := *x
		y.chains, y.windows = true, new(Windows)
		return y.single(ctx, p, sink)
	}
	return res, err
}

// errDrifts ends a run that showed that a chain has to be simulated with all of its nodes.
var errDrifts = errors.New("nodes of a chain differ")

// run starts an engine and runs it to its end; progress may be nil.
func (x *Executor) run(ctx context.Context, e *engine.Engine, progress func(part float64)) error {
	if !x.cfg.NoSkip {
		e.Skip()
	}
	e.Cores = x.cfg.Cores
	e.Start()
	if progress != nil {
		e.Progress, e.Ops = progress, e.CountOps()
	}
	if x.flowsOnly {
		stopWhenFramed(e)
	}
	defer func() { x.parts = max(x.parts, e.Parts()) }()
	return e.Run(ctx)
}

// tally is what a finished run came to, of all its operations.
type tally struct {
	kernels     int             // operations that ran back to back
	finish      []units.Time    // by rank: the end of the first operation
	first, last units.Time      // when the first and the last operation ended on every rank
	links       []exec.LinkLoad // of one operation, in the order of the model's
	events      int64
	jitters     bool
	account     exec.Account
	drift       units.Time // of a chain, how long its middle takes where that is not known well
}

// drifted widens the margin of a chain whose middle takes another time than its head says; errDrifts where
// that does not give the time of all of it.
func (x *Executor) drifted(t *tally) error {
	if t.drift == 0 {
		return nil
	}
	margin, tooMuch := fold.DriftMargin(t.drift, t.first)
	if tooMuch && x.cfg.Fold != FoldNear {
		return errDrifts
	}
	least, _ := fold.DriftMargin(0, t.first)
	t.account.Margin += margin - least
	return nil
}

// tallyOf reads a finished run.
func (x *Executor) tallyOf(e *engine.Engine, fold *fold.Quotient) (*tally, error) {
	t := &tally{kernels: int(e.Jobs[0].Kernels), finish: make([]units.Time, len(e.Devices)), events: e.Events,
		jitters: e.Jitter != (gpu.JitterCost{})}
	for i := range e.Devices {
		ends := e.Devices[i].Ends
		t.finish[i] = ends[0]
		t.first, t.last = max(t.first, ends[0]), max(t.last, ends[t.kernels-1])
	}
	if fold != nil {
		var first, last units.Time
		t.finish, first, last = fold.Finish(t.finish, t.kernels)
		t.first, t.last, t.drift = t.first+first, t.last+last, fold.Drift()
	}
	t.account = account(e, fold)
	for _, l := range e.Wire.Loads() { // of all simulated operations
		t.links = append(t.links,
			exec.LinkLoad{Name: l.Name, Capacity: units.GBps(float64(l.Capacity) * 1e-6),
				Bytes: l.Bytes / units.Bytes(t.kernels), Busy: l.Busy / units.Time(t.kernels)})
	}
	e.Net.Queues(t.links, t.last)
	if m, ok := e.Wire.(wire.Messages); ok {
		t.congested(m.Congestion())
	}
	return t, nil
}

// congested adds what happened to frames, of one operation.
func (t *tally) congested(all []wire.Congestion) {
	k := int64(t.kernels)
	for i := range all {
		c := &all[i]
		x := &exec.Congestion{Inputs: c.Inputs, QueuePairs: c.QueuePairs, Peak: c.Peak,
			Paused: c.Paused / units.Time(k),
			Pauses: (c.Pauses + k - 1) / k, Marks: (c.Marks + k - 1) / k, Drops: (c.Drops + k - 1) / k,
			Trims: (c.Trims + k - 1) / k, Resent: (c.Resent + k - 1) / k, Watchdogs: (c.Watchdogs + k - 1) /
				k, First: c.First, Credits: c.Credits}
		if c.Behind >= 0 {
			x.Behind = t.links[c.Behind].Name
		}
		for _, s := range c.From {
			x.From = append(x.From, exec.Stream{From: s.From, To: s.To, Bytes: s.Bytes / units.Bytes(k)})
		}
		for _, h := range c.Held {
			x.Held = append(x.Held, exec.Held{From: h.From, To: h.To, Behind: h.Behind,
				Time: h.Time / units.Time(k)})
		}
		for _, d := range c.Deadlocks {
			x.Deadlocks = append(x.Deadlocks, exec.Deadlock(d))
		}
		t.links[c.Link].Net = x
	}
}

// result is what a tally of a plan says of one operation.
func (x *Executor) result(p *plan.Plan, t *tally) exec.Result {
	r := exec.Result{Finish: t.finish, Links: t.links, Events: t.events, Wrong: -1}
	first := t.first
	var need units.Time // of the fullest link
	for i := range r.Links {
		load := &r.Links[i]
		if t.jitters {
			// Some pieces are short and others long; the rest of that over an
			// operation does not make a link faster than it is.
			load.Busy = max(load.Busy, load.Ideal())
			first = max(first, load.Ideal())
		}
		need = max(need, load.Ideal())
	}
	r.Elapsed = first
	if k := units.Time(t.kernels); k > 1 {
		// Operations overlap at their edges, and few of them can seem to follow
		// each other faster than their bytes do.
		period := max((t.last-first)/(k-1), need)
		r.Elapsed = (first + (timed-1)*period) / timed
	}
	if x.cfg.Launch == Eager {
		// The host runs ahead of the device or holds it up; the other of the two
		// shows once in all timed operations.
		host := HostTime(&x.class, p, x.cfg.PerThread)
		r.Elapsed = max(r.Elapsed, host) + min(r.Elapsed, host)/timed
	}
	req := &p.Req
	bytes := float64(req.Count) * float64(req.Type.Size())
	switch req.Func {
	case coll.AllGather, coll.ReduceScatter, coll.AllToAll, coll.Gather, coll.Scatter:
		bytes *= float64(p.Comm.NRanks)
	}
	if r.Elapsed > 0 {
		r.AlgBW = bytes / (float64(r.Elapsed) * 1e-3)
	}
	r.BusBW = r.AlgBW * req.Func.BusFactor(p.Comm.NRanks)
	return r
}

func (c *Config) network() host.Settings {
	return host.Settings{Fabric: c.Fabric, QPs: c.QPs, Split: c.SplitData, TwoWrites: c.TwoWrites.Or(8192),
		Faults: c.Faults, RC: c.RC, Sockets: c.Sockets}
}

// model returns a model of links for one run.
func (x *Executor) model() wire.Model {
	if x.cfg.Wire != nil {
		return x.cfg.Wire()
	}
	if x.cfg.Packets != nil {
		return packets.New(*x.cfg.Packets)
	}
	return fluid.New()
}

// folded makes the engine of a run, and lays out representatives where ranks fold, as those of
// so many times as many iterations do. A trace reports each rank, and jitter of their own makes them
// different.
func (x *Executor) folded(ctx context.Context, p, whole *plan.Plan, sink trace.Sink,
	jitter jitter, times float64) (e *engine.Engine, q *fold.Quotient, err error) {
	o := engine.Options{Class: &x.class, Systems: x.cfg.Systems, Model: x.model(), Network: x.cfg.network(),
		Seed: x.cfg.Seed, Slow: x.cfg.slowness(),
		Down: x.cfg.down(), Kernels: x.cfg.Kernels, Late: x.cfg.Late, Place: x.cfg.Place, Whole: whole,
		Set: x.cfg.Set, Graph: x.cfg.Launch == Graph}
	if jitter != noJitter {
		o.Jitter = x.class.Jitter
	}
	mode := x.cfg.Fold
	if jitter == equalShare {
		o.Jitter.Channel = 0
		rings := mode == FoldAuto && p.Req.Algo == coll.Ring && !p.Req.Func.IsP2P() // of which some are near
		switch {
		case rings && whole != nil && p != whole: // parts of a window fold as their ranks draw
			mode = sameDraws
		case rings || sink != trace.Discard || mode == Unfolded || mode == FoldExact:
			c, err := x.classesOf(ctx, p, whole)
			if err != nil {
				return nil, nil, err
			}
			o.Like = c.like()
		}
	}
	e = engine.New(&o, p)
	e.Cancelled = ctx.Err
	if sink == trace.Discard && x.cfg.Packets == nil &&
		(jitter != eachDraws || e.Jitter == (gpu.JitterCost{})) {
		q, err = x.quotient(e, mode, times)
	}
	return e, q, err
}

// lay lays out what is simulated to its end, unless that costs too much.
func (x *Executor) lay(e *engine.Engine, q *fold.Quotient) error {
	if err := x.layOut(e, q); err != nil {
		return err
	}
	return x.affordable(e.Jobs[0].Plan, costLaid(e))
}

// layOut lays out all ranks where none folds, and closes the engine's links.
func (x *Executor) layOut(e *engine.Engine, q *fold.Quotient) error {
	if q == nil {
		if err := x.fits(e.Jobs[0].Plan); err != nil {
			return err
		}
		if err := x.framed(e.Jobs[0].Plan, int64(e.Jobs[0].Kernels)); err != nil {
			return err
		}
		if err := e.LayAll(e.Jobs[0]); err != nil {
			return err
		}
	}
	e.LayHeads()
	e.Wire.Seal()
	if m, ok := e.Wire.(*packets.Model); ok && m.Err() != nil {
		return m.Err()
	}
	return nil
}

// jitters says with what jitter a plan is simulated rank by rank.
func (x *Executor) jitters(p *plan.Plan) jitter {
	if x.cfg.NoJitter || x.class.Jitter == (gpu.JitterCost{}) || p.Comm.NRanks > JitterRanks {
		return noJitter
	}
	return eachDraws
}

// account reports how a run's times came about.
func account(e *engine.Engine, fold *fold.Quotient) exec.Account {
	a := exec.Account{Programs: len(e.Groups)}
	if fold != nil {
		a = fold.Account()
	}
	a.Periods, a.Skipped = e.Periods, e.Skipped
	a.Reduction.Ranks = a.Method
	return a
}

// Ports lists how many nets each host of a communicator has, as
// fabric.Network.Bind needs them.
func Ports(cl *fabric.Cluster) []int {
	out := make([]int, cl.NHosts())
	for h := range out {
		out[h] = int(cl.PortOf(h, 0))
	}
	for h := range out {
		end := cl.NPorts()
		if h+1 < len(out) {
			end = out[h+1]
		}
		out[h] = end - out[h]
	}
	return out
}

// HostTime is the host's time for one asynchronous operation on a machine of a
// class, whose threads launch for so many GPUs each (Config.PerThread).
func HostTime(c *gpu.Class, p *plan.Plan, perThread int) units.Time {
	one := &c.One
	switch kind := p.OneRank(); {
	case kind == plan.DeviceCopy:
		return units.FromMicros(one.CopyLaunch)
	case kind == plan.NoLaunch && p.Req.Func != coll.SendRecv: // whose group is made and dropped
		return units.FromMicros(one.Call)
	}
	return units.FromMicros(c.Launch(perThread))
}
