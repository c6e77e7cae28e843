package job

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// planned is a distinct operation on a shape of communicator, with its plan and its simulated time.
type planned struct {
	op     comm.Op
	plan   *plan.Plan
	choice tuning.Choice
	alone  sim.Alone
	ends   []units.Time // alone.Ends, by rank of the workload's communicator
	slack  []units.Time
	sms    int32
	// receive is the time of a message's receiver once all data have arrived; 0 if the connection's buffers
	// cannot hold the message.
	receive units.Time
	// both is the time of a message whose ranks also exchange one in the opposite direction through the same
	// blocks.
	both units.Time
	// group: the kernel executes several calls; only op.Func is valid.
	group bool
}

// opKey identifies a planned operation: equal ones are simulated once.
type opKey struct {
	shape string
	comm  int32 // the communicator, where its place in the cluster matters; else -1
	op    comm.Op
	order string // order of ranks, where it is not NCCL's
	group string // key of a kernel of several calls
}

// costing computes the Costs of a program's calls.
type costing struct {
	m       *Machine
	p       *workload.Program
	issued  *workload.Program // the program p before the calls of a group were fused into kernels
	opt     *Options
	comms   []*communicator
	known   map[opKey]*planned
	calls   []*planned       // by call; nil if it launches no kernel
	links   map[string]int32 // index of a resource by its name
	names   []string
	caps    []units.GBps
	loads   [][]load             // by call
	plain   [][]float64          // by call: the part of each link's need that the bytes alone explain
	ask     sim.Ask              // results of a simulation that the program needs
	grouped bool                 // the program has groups of calls
	rings   map[opKey]units.Time // see exchange
	session *sim.Session         // of fidelity step
	network *Network             // nil unless Options.Observe
	fused   []*joint             // kernels of several calls: the last calls of p
	part    [][]int32            // by list and step: the step that launches its kernel; -1: none
}

// load is the bytes that a call moves over a resource.
type load struct {
	link  int32
	bytes units.Bytes
}

func newCosting(m *Machine, p *workload.Program, opt *Options) (*costing, error) {
	c := &costing{m: m, p: p, issued: p, opt: opt, comms: make([]*communicator, len(p.Comms)),
		known: map[opKey]*planned{}, calls: make([]*planned, len(p.Calls)),
		links: map[string]int32{}, loads: make([][]load, len(p.Calls)),
		plain: make([][]float64, len(p.Calls))}
	m.recall()
	for i := range p.Comms {
		if err := c.communicator(int32(i)); err != nil {
			return nil, err
		}
	}
	c.ask = asks(p, opt)
	c.rings = map[opKey]units.Time{}
	for i := range p.Lists {
		c.grouped = c.grouped || slices.ContainsFunc(p.Lists[i].Steps, func(s workload.Step) bool {
			return s.Kind == workload.GroupStart
		})
	}
	return c, c.fuse()
}

// communicator makes communicator i of the program, after the one whose resources it shares.
func (c *costing) communicator(i int32) (err error) {
	if c.comms[i] != nil {
		return nil
	}
	var top *communicator
	if root := c.p.Resources(i); root != i {
		if err := c.communicator(root); err != nil {
			return err
		}
		top = c.comms[root]
	}
	c.comms[i], err = c.m.communicator(i, &c.p.Comms[i], c.p.Ranks(), top)
	return err
}

// asks returns which simulations of a call the program needs: at half the speed of its links where calls can
// overlap, with slowed kernels where compute runs at the same time.
func asks(p *workload.Program, opt *Options) sim.Ask {
	ask := sim.Ask{}
	for i := range p.Comms {
		ask.Half = ask.Half || p.Resources(int32(i)) != p.Resources(0)
	}
	for i := range p.Calls {
		ask.Half = ask.Half || message(p.Calls[i].Func)
	}
	for i := range p.Lists {
		for k := range p.Lists[i].Steps {
			s := &p.Lists[i].Steps[k]
			ask.Slowed = ask.Slowed || !opt.Apart && s.Kind == workload.Compute && !workload.OnHost(s.Stream)
		}
	}
	return ask
}

// find plans every call and returns the Costs by call.
func (c *costing) find(ctx context.Context) ([]streams.Cost, error) {
	costs := make([]streams.Cost, len(c.p.Calls))
	ops, err := c.ops()
	if err != nil {
		return nil, err
	}
	for i := range c.p.Calls {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		call := &c.p.Calls[i]
		if ops[i].Count == 0 && !message(call.Func) { // NCCL returns without a launch
			costs[i].Empty = true
			continue
		}
		if int(call.Comm) < len(c.opt.Free) && c.opt.Free[call.Comm] {
			costs[i] = atOnce(call.Func)
			continue
		}
		x, err := c.plannedCall(ctx, i, ops[i])
		if err != nil {
			return nil, fmt.Errorf("%s of %d elements on %s: %w", call.Func.TestName(), ops[i].Count,
				c.p.Comms[call.Comm].Name, err)
		}
		c.calls[i] = x
		if costs[i], err = c.cost(ctx, i, x); err != nil {
			return nil, err
		}
	}
	return costs, c.partly(ctx, costs)
}

// atOnce returns the Cost of a call that takes no time: one picosecond, because a timeline assigns waiting to
// spans of positive length.
func atOnce(f coll.Func) streams.Cost {
	return streams.Cost{Time: 1, Buffered: message(f), Receive: 1}
}

func message(f coll.Func) bool { return f == coll.Send || f == coll.Recv }

// ops returns the operations of the calls, with ranks in NCCL's order.
func (c *costing) ops() ([]comm.Op, error) {
	out := make([]comm.Op, len(c.p.Calls))
	for i := range c.p.Calls {
		call := &c.p.Calls[i]
		at := c.comms[call.Comm]
		out[i] = comm.Op{Func: call.Func, Count: call.Count, Type: call.Type, RedOp: call.RedOp,
			InPlace: call.InPlace}
		if call.Func.Rooted() {
			out[i].Root = at.rankOf[call.Root]
		}
	}
	c.messageOps(out)
	c.unequal(out)
	return out, nil
}

// messageOps sets the two ranks of sends and receives; each is a call of one rank (ownMessages).
func (c *costing) messageOps(out []comm.Op) {
	seen := make([]bool, len(c.p.Calls))
	for r := range c.issued.Of {
		for i := range c.issued.Lists[c.issued.Of[r]].Steps {
			s := &c.issued.Lists[c.issued.Of[r]].Steps[i]
			if s.Kind != workload.Issue || seen[s.Call] {
				continue
			}
			seen[s.Call] = true
			call := &c.p.Calls[s.Call]
			if !message(call.Func) {
				continue
			}
			at := c.comms[call.Comm]
			me, _ := slices.BinarySearch(at.ranks, int32(r))
			o := &out[s.Call]
			o.Func, o.Type, o.Count = coll.Send, coll.Int8, int64(call.Bytes())
			o.Root, o.Peer = int32(me), at.rankOf[call.Peer]
			if call.Func == coll.Recv {
				o.Root, o.Peer = o.Peer, o.Root
			}
			if at.layout.NRanks == 1 {
				o.Func = coll.SendRecv
			}
		}
	}
}

// unequal replaces the variable counts of an alltoall by the count of an equal alltoall that moves as many
// bytes at the busiest rank. The k-th call of each member belongs to one operation.
func (c *costing) unequal(out []comm.Op) {
	type member struct{ sent, received int64 }
	type opOf struct{ comm, k int32 }
	sums := map[opOf][]member{}
	calls := map[opOf][]int32{}
	var order []opOf
	for r := range c.p.Of {
		count := map[int32]int32{}
		for i := range c.p.Lists[c.p.Of[r]].Steps {
			s := &c.p.Lists[c.p.Of[r]].Steps[i]
			if s.Kind != workload.Issue || c.p.Calls[s.Call].Splits == nil {
				continue
			}
			call := &c.p.Calls[s.Call]
			at := c.comms[call.Comm]
			me, _ := slices.BinarySearch(at.ranks, int32(r))
			key := opOf{call.Comm, count[call.Comm]}
			count[call.Comm]++
			if sums[key] == nil {
				sums[key] = make([]member, len(at.ranks))
				order = append(order, key)
			}
			calls[key] = append(calls[key], s.Call)
			for peer, n := range call.Splits {
				if to := at.rankOf[peer]; int(to) != me {
					sums[key][me].sent += n
					sums[key][to].received += n
				}
			}
		}
	}
	for _, key := range order {
		most := int64(0)
		for _, s := range sums[key] {
			most = max(most, s.sent, s.received)
		}
		others := int64(max(1, len(sums[key])-1))
		for _, i := range calls[key] {
			out[i].Count = max(out[i].Count, (most+others-1)/others)
		}
	}
}

// plannedCall plans a call of the fused program.
func (c *costing) plannedCall(ctx context.Context, i int, op comm.Op) (*planned, error) {
	at := c.comms[c.p.Calls[i].Comm]
	if t := c.isFused(i); t != nil {
		return c.kernel(ctx, at, t)
	}
	if k := c.p.Calls[i].Kernel; k.Name != "" {
		if x, err := c.byKernel(ctx, at, op, k); x != nil || err != nil {
			return x, err
		}
	}
	if p, err := at.comm.DDA(op); p != nil || err != nil {
		return c.byKernel(ctx, at, op, workload.Kernel{Name: tuning.DDA})
	}
	return c.planned(ctx, at, op)
}

// planned returns an operation with its plan, made now or before.
func (c *costing) planned(ctx context.Context, at *communicator, op comm.Op) (*planned, error) {
	key := opKey{shape: at.key, comm: -1, op: op}
	if c.m.Sim.Fabric != nil || len(c.m.Sim.Faults) > 0 {
		key.comm = at.id
	}
	if !slices.IsSorted(at.rankOf) {
		key.order = fmt.Sprint(at.rankOf)
	}
	if x, ok := c.known[key]; ok {
		return x, nil
	}
	memo := memoKey{key, c.ask, c.opt.Fidelity, c.grouped}
	if x, ok := c.m.memo[memo]; ok && key.comm < 0 {
		c.known[key] = x
		return x, nil
	}
	pl, choice, err := at.comm.Plan(op)
	if err != nil {
		return nil, err
	}
	x := &planned{op: op, plan: pl, choice: choice, sms: channels(pl)}
	switch c.opt.Fidelity {
	case Alpha:
		if err := x.formula(at.layout.NRanks); err != nil {
			return nil, err
		}
	case Share:
		if err := c.simulate(ctx, at, x); err != nil {
			return nil, err
		}
	}
	c.known[key] = x
	if key.comm < 0 {
		c.m.memo[memo] = x
	}
	return x, nil
}

// memoKey identifies a simulated operation that a Machine keeps for its next jobs.
type memoKey struct {
	op       opKey
	ask      sim.Ask
	fidelity Fidelity
	grouped  bool
}

// maxMemo bounds the operations that a Machine keeps.
const maxMemo = 1 << 9

// recall clears the memory of a Machine if quantities of its class have changed that the time of a single
// operation depends on (that is, other than those of sharing).
func (m *Machine) recall() {
	now := m.Sim.Quantities()
	if m.memo == nil || len(m.memo) > maxMemo || !slices.Equal(now, m.memoOf) {
		m.memo, m.memoOf = map[memoKey]*planned{}, now
	}
}

// channels returns the largest number of channels of a rank's kernel.
func channels(p *plan.Plan) int32 {
	if n := p.Split.NChannels; n > 0 {
		return int32(n)
	}
	n := int32(0)
	for _, r := range []int32{0, p.Req.Root, p.Req.Peer} {
		last := int32(-1)
		count := int32(0)
		for _, pr := range p.Programs(r) {
			if pr.Channel != last {
				count++
				last = pr.Channel
			}
		}
		n = max(n, count)
	}
	return n
}

// located returns a plan made for a shape, placed on one communicator of that shape.
func located(p *plan.Plan, at *communicator) *plan.Plan {
	own := *p
	own.Comm = at.layout
	return &own
}

// simulate simulates an operation alone and sets its times.
func (c *costing) simulate(ctx context.Context, at *communicator, x *planned) error {
	cfg := c.located(at)
	e, err := sim.New(cfg)
	if err != nil {
		return err
	}
	if x.alone, err = e.Alone(ctx, located(x.plan, at), c.ask); err != nil {
		return err
	}
	if x.op.Func == coll.Send && x.op.Root != x.op.Peer {
		if x.both, err = c.exchange(ctx, e, at, x); err != nil {
			return err
		}
		if x.receive, err = receive(ctx, cfg, located(x.plan, at), x.alone.Time); err != nil {
			return err
		}
	}
	x.order(at)
	return nil
}

// exchange returns the time of a message where every rank sends one and receives one: both belong to one
// round, and share the blocks of its channels (sendrecv.h:94). 0 if the program has no groups.
func (c *costing) exchange(ctx context.Context, e *sim.Executor, at *communicator, x *planned) (units.Time,
	error) {
	if at.layout.NRanks < 2 || x.op.Count == 0 || !c.grouped {
		return 0, nil
	}
	op := x.op
	op.Func, op.Root, op.Peer = coll.SendRecv, 0, 0
	key := opKey{shape: at.key, comm: -1, op: op}
	if t, ok := c.rings[key]; ok {
		return t, nil
	}
	pl, _, err := at.comm.Plan(op)
	if err != nil {
		return 0, err
	}
	a, err := e.Alone(ctx, located(pl, at), sim.Ask{})
	if err != nil {
		return 0, err
	}
	c.rings[key] = a.Time
	return a.Time, nil
}

// receive returns the time of a message's receiver that begins after the sender has ended; 0 if the sender
// waits for the receiver.
func receive(ctx context.Context, cfg sim.Config, p *plan.Plan, alone units.Time) (units.Time, error) {
	ranks := make([]int32, p.Comm.NRanks)
	for i := range ranks {
		ranks[i] = int32(i)
	}
	s := sim.NewSession(ctx, len(ranks))
	k, err := s.Declare(cfg, p, ranks)
	if err != nil {
		return 0, err
	}
	s.Seal()
	op, err := s.Open(k)
	if err != nil {
		return 0, err
	}
	ends := map[int32]units.Time{}
	play := func() error {
		for {
			at, ok := s.Next()
			if !ok {
				return nil
			}
			if err := s.Advance(at, func(_, rank int32) { ends[rank] = at }); err != nil {
				return err
			}
		}
	}
	s.Start(op, p.Req.Root, 0)
	if err := play(); err != nil || ends[p.Req.Root] == 0 {
		return 0, err
	}
	begin := 2 * max(alone, ends[p.Req.Root])
	s.Start(op, p.Req.Peer, begin)
	err = play()
	return max(1, ends[p.Req.Peer]-begin), err
}

// least is a share of an operation's time: ends of ranks that differ by less count as equal.
const least = 0.02

// order sets when members end and how much later they may begin (slack), by rank of the workload. A member
// that ends later than the period of back-to-back operations must have begun later by the difference;
// otherwise the operations could not follow each other at that period.
func (x *planned) order(at *communicator) {
	if x.op.Func == coll.Send {
		x.ends = []units.Time{x.alone.Ends[x.op.Root], x.alone.Ends[x.op.Peer]}
		return
	}
	even, late := true, false
	ends, slack := make([]units.Time, len(at.of)), make([]units.Time, len(at.of))
	for r, end := range x.alone.Ends {
		i := at.of[r]
		ends[i] = end
		even = even && end == x.alone.Time
		if more := end - x.alone.Again; float64(more) > least*float64(x.alone.Time) {
			slack[i], late = more, true
		}
	}
	if !even {
		x.ends = ends
	}
	if late {
		x.slack = slack
	}
}

// formula sets the operation's time to NCCL's own estimate (fidelity alpha).
func (x *planned) formula(n int) error {
	x.alone.Time = units.FromMicros(float64(x.choice.TimeUs))
	if x.alone.Time <= 0 {
		return &exec.NotImplementedError{Feature: "fidelity alpha for " + x.op.Func.TestName(),
			Missing: fmt.Sprintf("NCCL has no formula for it on %d ranks; write share or step", n)}
	}
	return nil
}

func (c *costing) cost(ctx context.Context, i int, x *planned) (streams.Cost, error) {
	out := streams.Cost{Time: x.alone.Time, Ends: x.ends, Slack: x.slack, SMs: x.sms,
		Buffered: x.receive > 0, Receive: x.receive}
	if c.opt.Fidelity != Share || x.alone.Time <= 0 {
		return out, nil
	}
	at := c.comms[c.p.Calls[i].Comm]
	full := x.fullest()
	x.used(func(l *exec.LinkLoad, share float64) {
		id := c.link(at, l)
		c.loads[i] = append(c.loads[i], load{id, l.Bytes})
		if share >= negligible {
			out.Needs = append(out.Needs, streams.Need{Resource: id, Share: share})
			c.plain[i] = append(c.plain[i], share/full)
		}
	})
	if x.both > 0 {
		share := math.Min(1, float64(x.both)/float64(x.alone.Time)/2)
		n := int32(at.layout.NRanks)
		round := (x.op.Peer - x.op.Root + n) % n
		for _, r := range []int32{x.op.Root, x.op.Peer} {
			name := fmt.Sprintf("rank%d messages of round %d of communicator %d", at.ranks[r], round, at.id)
			out.Needs = append(out.Needs, streams.Need{Resource: c.resource(name, 0), Share: share})
		}
	}
	for _, s := range x.alone.Slowed {
		alone := float64(x.alone.Time)
		out.Slowed = append(out.Slowed, streams.Slowed{Kernels: s.Kernels,
			Takes: math.Max(1, float64(s.Time)/alone), Waits: math.Max(0, float64(s.Wait)/alone)})
	}
	return out, ctx.Err()
}

// negligible is a share of a link: smaller needs are ignored.
const negligible = 0.01

// used calls do for each link that an operation uses, with the share of the link that it needs.
func (x *planned) used(do func(l *exec.LinkLoad, share float64)) {
	full, total := x.fullest(), float64(x.moving())
	for k := range x.alone.Links {
		if l := &x.alone.Links[k]; l.Bytes > 0 {
			do(l, math.Min(1, float64(l.Ideal())*full/total))
		}
	}
}

// moving returns how long an operation moves data. A message that its connection's buffers hold moves until
// its sender ends.
func (x *planned) moving() units.Time {
	if x.receive > 0 {
		return x.ends[0]
	}
	return x.alone.Time
}

// link returns the resource of a communicator's link.
func (c *costing) link(at *communicator, l *exec.LinkLoad) int32 {
	name := l.Name
	if c.m.Sim.Fabric == nil && len(c.m.Sim.Faults) == 0 {
		name = at.resolve(name)
	}
	return c.resource(name, l.Capacity)
}

// resource returns the resource with a name, and adds it if it is new.
func (c *costing) resource(name string, capacity units.GBps) int32 {
	id, ok := c.links[name]
	if !ok {
		id = int32(len(c.names))
		c.links[name] = id
		c.names, c.caps = append(c.names, name), append(c.caps, capacity)
	}
	c.caps[id] = max(c.caps[id], capacity)
	return id
}
