package sim

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/internal/chance"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/internal/route"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/sim/wire/fluid"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccltrace"
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

// Config is what a simulation needs beside the plan.
type Config struct {
	Comm *connect.Comm
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
	// Seed starts the jitter's streams. NoJitter switches it off; beyond
	// JitterRanks ranks it is always off.
	Seed     uint64
	NoJitter bool
	// Fold says whether equal ranks and channels are simulated once.
	Fold Folding
	// Fabric is the network between the hosts; nil: ports share max-min, and
	// switches do not block.
	Fabric *fabric.Fabric
	// QPs are the queue pairs of a connection (NCCL_IB_QPS_PER_CONNECTION), 0
	// for 1. They take steps in turn, or each a part of every step with
	// SplitData (NCCL_IB_SPLIT_DATA_ON_QPS).
	QPs       int
	SplitData bool
	// TwoWrites are the bytes above which a message is a write and an empty one
	// with the immediate, as adaptive routing needs it (NCCL_IB_AR_THRESHOLD,
	// net_ib.cc:2100): unset for 8192, below 0 for never. Only traces show it.
	TwoWrites units.Opt[units.Bytes]
	// Sockets are how connections over TCP are split.
	Sockets Sockets
	// Faults are stragglers, slow and lossy ports, and what is gone.
	Faults []Fault
	// RC is how lost packets are repeated.
	RC Reliability
	// Progress, where set, hears now and then which part of a run is done.
	Progress func(part float64)
	// Wire makes the model of links that a run uses, without links yet; nil for
	// fluid.New, which shares them max-min.
	Wire func() wire.Model
	// Trace chooses what is told to a sink; the zero Options are collectives
	// only, nccltrace.DetailStep is all of a step.
	Trace nccltrace.Options
}

// JitterRanks is the largest communicator that is simulated with jitter: in a
// longer pipeline its effect on the whole falls as 1/ranks.
const JitterRanks = 72

// Executor simulates plans of one communicator. It may run several plans, one
// after the other.
type Executor struct {
	cfg   Config
	class gpu.Class
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
		return nil, &ConfigError{"QPs", fmt.Sprintf("%d queue pairs of a connection; from 1 to %d", cfg.QPs, host.MaxQPs)}
	}
	if err := cfg.checkFaults(); err != nil {
		return nil, err
	}
	x := &Executor{cfg: cfg}
	if cfg.Class != nil {
		x.class = *cfg.Class
	} else {
		x.class = ClassOf(cfg.Systems[0])
	}
	return x, nil
}

// checkSystems refuses what is not one System a node with a GPU for each rank.
func (c *Config) checkSystems() error {
	if len(c.Systems) != c.Comm.NNodes {
		return &ConfigError{"Systems", fmt.Sprintf("%d systems for %d nodes; give one a node", len(c.Systems), c.Comm.NNodes)}
	}
	for i, s := range c.Systems {
		if gpus := len(s.Of(topo.GPU)); len(c.Comm.NodeRanks[i]) > gpus {
			return &ConfigError{"Systems", fmt.Sprintf("node %d has %d GPUs for %d ranks", i, gpus, len(c.Comm.NodeRanks[i]))}
		}
	}
	return nil
}

// Class returns the machine class that the executor uses.
func (x *Executor) Class() gpu.Class { return x.class }

// ClassOf returns the class of machine that a topology belongs to.
func ClassOf(s *topo.System) gpu.Class {
	sm := 0
	for _, id := range s.Of(topo.GPU) {
		sm = max(sm, s.Nodes[id].GPU.SM)
	}
	nvlink, c2c := false, false
	for i := range s.Links {
		nvlink = nvlink || s.Links[i].Kind == topo.LinkNVL
		c2c = c2c || s.Links[i].Kind == topo.LinkC2C
	}
	return gpu.ClassFor(sm, nvlink, len(s.Of(topo.NVS)) > 0, c2c)
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
	e, err := x.build(p, sink)
	if err != nil {
		return exec.Result{}, err
	}
	t := newTracer(e, sink, x.cfg.Trace)
	e.start()
	if x.cfg.Progress != nil {
		e.tell, e.ops = x.cfg.Progress, e.countOps()
	}
	if err := e.run(ctx); err != nil {
		if t != nil {
			t.cut()
		}
		return exec.Result{Wrong: -1}, err
	}
	res := x.result(e)
	if t != nil {
		t.finish(&res)
	}
	return res, nil
}

// result sums up a finished run.
func (x *Executor) result(e *engine) exec.Result {
	k := int(e.kernels)
	r := exec.Result{Finish: make([]units.Time, len(e.devs)), Events: e.handled, Wrong: -1, Account: e.account()}
	var first, last units.Time
	for i := range e.devs {
		ends := e.devs[i].ends
		r.Finish[i] = ends[0]
		first, last = max(first, ends[0]), max(last, ends[k-1])
	}
	if e.quotient != nil {
		var later, again units.Time
		r.Finish, later, again = e.quotient.finish(r.Finish)
		first, last = first+later, last+later+again*units.Time(k-1)
	}
	var need units.Time               // of the fullest link for one operation
	for _, l := range e.net.Loads() { // of all simulated operations
		load := exec.LinkLoad{Name: l.Name, Capacity: units.GBps(float64(l.Capacity) * 1e-6),
			Bytes: l.Bytes / units.Bytes(k), Busy: l.Busy / units.Time(k)}
		if jitters := e.jitter != (gpu.JitterCost{}); jitters {
			// Some pieces are short and others long; what is left of that over an
			// operation does not make a link faster than it is.
			load.Busy = max(load.Busy, load.Ideal())
			first = max(first, load.Ideal())
		}
		r.Links = append(r.Links, load)
		need = max(need, load.Ideal())
	}
	e.nw.Queues(r.Links, last)
	r.Elapsed = first
	if k > 1 {
		// Operations overlap at their edges, and few of them can seem to follow
		// each other faster than their bytes do.
		period := max((last-first)/units.Time(k-1), need)
		r.Elapsed = (first + (timed-1)*period) / timed
	}
	if x.cfg.Launch == Eager {
		// The host runs ahead of the device or holds it up; the other of the two
		// shows once in all timed operations.
		host := HostTime(&x.class, e.plan, x.cfg.PerThread)
		r.Elapsed = max(r.Elapsed, host) + min(r.Elapsed, host)/timed
	}
	req := &e.plan.Req
	bytes := float64(req.Count) * float64(req.Type.Size())
	switch req.Func {
	case coll.AllGather, coll.ReduceScatter, coll.AllToAll, coll.Gather, coll.Scatter:
		bytes *= float64(e.plan.Comm.NRanks)
	}
	if r.Elapsed > 0 {
		r.AlgBW = bytes / (float64(r.Elapsed) * 1e-3)
	}
	r.BusBW = r.AlgBW * req.Func.BusFactor(e.plan.Comm.NRanks)
	return r
}

// network is what a Config says of the network.
func (c *Config) network() host.Settings {
	return host.Settings{Fabric: c.Fabric, QPs: c.QPs, Split: c.SplitData, TwoWrites: c.TwoWrites.Or(8192), Faults: c.Faults, RC: c.RC, Sockets: c.Sockets}
}

// model returns a model of links for one run.
func (x *Executor) model() wire.Model {
	if x.cfg.Wire != nil {
		return x.cfg.Wire()
	}
	return fluid.New()
}

// build lays out one run.
func (x *Executor) build(p *plan.Plan, sink trace.Sink) (*engine, error) {
	e := &engine{class: &x.class, cost: costsOf(&x.class), plan: p, net: x.model(), seed: x.cfg.Seed}
	w := route.New(p.Comm, x.cfg.Systems, e.class, e.net)
	e.slow, e.gone = x.cfg.slowness(), x.cfg.gone()
	e.nw = host.New(&host.Options{Class: e.class, Table: w, Model: e.net, Queue: &e.queue, Kernels: e, Plan: p, Seed: e.seed, Down: e.gone, Settings: x.cfg.network()})
	if !x.cfg.NoJitter && p.Comm.NRanks <= JitterRanks {
		e.jitter = x.class.Jitter
	}
	if p.OneRank() != plan.NotOneRank {
		e.layMemory(w)
	}
	if err := x.lay(e, w, sink); err != nil {
		return nil, err
	}
	e.layHeads()
	e.net.Seal()
	l := p.Layout(int32(p.Comm.NRanks - 1))
	e.miss = x.class.Miss(int64(l.Input + l.Output))
	e.kernels = e.kernelsFor(x.cfg.Kernels)
	if err := x.affordable(e); err != nil {
		return nil, err
	}
	return e, nil
}

// start begins the first kernel of every device.
func (e *engine) start() {
	e.running = int32(len(e.devs))
	for i := range e.devs {
		if e.gone != nil && e.gone[i] {
			e.running--
			continue
		}
		e.startKernel(int32(i), e.gap)
	}
}

// layGroups lists the programs of every rank as groups, multiprocessors and
// devices.
func (e *engine) layGroups() {
	n := int32(e.plan.Comm.NRanks)
	e.devs = make([]device, n)
	var progs []plan.Program
	for r := range n {
		progs = e.plan.AppendPrograms(progs[:0], r)
		d := &e.devs[r]
		d.first = int32(len(e.sms))
		channel := int32(-1)
		for i := range progs {
			pr := &progs[i]
			if i == 0 || pr.Channel != channel {
				channel = pr.Channel
				e.sms = append(e.sms, multiprocessor{first: int32(len(e.groups))})
				d.n++
			}
			sm := &e.sms[len(e.sms)-1]
			sm.n++
			e.gap = max(e.gap, e.gapOf(pr))
			e.groups = append(e.groups, newGroup(e, pr, r, int32(len(e.sms)-1)))
		}
	}
	switch {
	case e.plan.OneRank() != plan.NotOneRank:
		e.gap = e.oneRankGap()
	case e.gap == 0:
		e.gap = units.FromMicros(e.class.KernelGap[coll.LL])
	}
}

// gapOf is what a kernel costs beside the program's transfers.
func (e *engine) gapOf(pr *plan.Program) units.Time {
	f := e.plan.Req.Func
	if f >= coll.NumCollFuncs {
		return units.FromMicros(e.class.P2PGap)
	}
	reduces := f == coll.AllReduce || f == coll.ReduceScatter || f == coll.Reduce
	return units.FromMicros(e.class.Gap(pr.Proto, reduces, 32*e.plan.Req.Warps))
}

// newGroup makes the group of a program on a device and multiprocessor.
func newGroup(e *engine, pr *plan.Program, dev, sm int32) group {
	g := group{pr: *pr, rank: dev, sm: sm, wake: -1, joint: -1, spread: max(1, e.plan.Turn(pr))}
	if e.jitter.Channel > 0 {
		g.drift = e.jitter.Channel * chance.Normal(e.seed, uint64(dev), uint64(pr.Channel), 1<<40)
	}
	return g
}

// layConns finds both ends of every connection and its route.
func (e *engine) layConns(w *route.Table) error {
	e.conns = make([]conn, e.plan.NumConns())
	for i := range e.conns {
		e.conns[i] = conn{snd: -1, rcv: -1, net: -1}
	}
	var op plan.Op
	var cur plan.Cursor
	for gi := range e.groups {
		g := &e.groups[gi]
		e.plan.OpenInto(&cur, &g.pr)
		// A program uses the same connections throughout, save that the first and
		// last ops may lack some; PAT and NVLS vary.
		for cur.Next(&op) {
			if err := e.joinConns(w, int32(gi), &op); err != nil {
				return err
			}
			if g.pr.Role <= plan.RoleTreeRoot && op.Seq > 1 {
				break
			}
		}
	}
	return e.nw.JoinRails()
}

func (e *engine) joinConns(w *route.Table, gi int32, op *plan.Op) error {
	pr := &e.groups[gi].pr
	for _, id := range op.To {
		c := &e.conns[id]
		if c.snd >= 0 {
			continue
		}
		pc := e.plan.Conn(id)
		r, err := w.Between(&pc)
		if err != nil {
			return err
		}
		c.snd, c.route, c.depth = gi, r, plan.FIFOSteps/int64(max(1, pr.SliceSteps))
		c.host = e.inHost(&pc)
		if c.far = e.farOf(&pc); c.far > 0 {
			w.Stage(&pc, e.onTheirWay(op))
		}
		c.net, err = e.nw.Connect(&pc, id, pr)
		if err != nil {
			return err
		}
	}
	for _, id := range op.From {
		c := &e.conns[id]
		c.rcv = gi
		if c.net >= 0 {
			continue
		}
		if pc := e.plan.Conn(id); host.Reduces(&pc) { // no rank is at its other end
			var err error
			if c.net, err = e.nw.Connect(&pc, id, pr); err != nil {
				return err
			}
		}
	}
	return nil
}

// farOf is what a connection's flags take longer than between GPUs: where it
// goes through host memory.
func (e *engine) farOf(pc *plan.Conn) units.Time {
	if pc.Route.Transport == connect.SHM {
		return units.FromMicros(e.class.HostHop)
	}
	return 0
}

// inHost tells whether a kernel loads a connection's data over PCIe from host
// memory, where another GPU or a thread put it.
func (e *engine) inHost(pc *plan.Conn) bool {
	if pc.Route.Transport == connect.NET && pc.Kind != connect.NVLSRoute && !host.Reduces(pc) {
		_, _, tcp := e.nw.OverTCP(pc)
		return tcp
	}
	return pc.Route.Transport == connect.SHM
}

// onTheirWay is what a connection may hold of such operations: one of a
// collective, whose ranks wait for each other, and as many as fit of a send.
func (e *engine) onTheirWay(op *plan.Op) units.Bytes {
	if e.plan.Req.Func >= coll.NumCollFuncs {
		return op.Bytes * plan.FIFOSteps
	}
	return op.Bytes
}

// layJoint gives ops that reach several peers, or work through the switch,
// their route, once all connections have theirs.
func (e *engine) layJoint(w *route.Table) error {
	var op plan.Op
	var cur plan.Cursor
	for gi := range e.groups {
		g := &e.groups[gi]
		e.plan.OpenInto(&cur, &g.pr)
		if !cur.Next(&op) || !e.hasJoint(&g.pr, &op) {
			continue
		}
		w.Uses = w.Uses[:0]
		if err := w.Joint(&op, e.plan.Conn); err != nil {
			return err
		}
		g.joint = w.Intern()
	}
	return nil
}

// kernelsFor decides how many operations to simulate: the period of long ones
// is their own time.
func (e *engine) kernelsFor(asked int) int32 {
	if asked > 0 {
		return int32(asked)
	}
	l := e.plan.Layout(0)
	switch n := max(l.Input, l.Output); {
	case n >= 512<<20:
		return 1
	case n >= 64<<20:
		return 2
	}
	return 3
}

// Ports lists how many nets each host of a communicator has, as
// fabric.Network.Bind asks for them.
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
