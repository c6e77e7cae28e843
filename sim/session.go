package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/fluid"
	"github.com/simccl/simccl/sim/internal/packets"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// Session runs operations of several communicators at once, step by step, on links
// that all of them share. Links with equal names are one; a communicator over a
// part of a cluster has Config.Place for that.
//
// Plans are declared first. Then operations are opened and their kernels started,
// rank by rank; Advance reports the kernels that end. Each operation has its own
// connections: those of NCCL's communicators are empty between operations.
type Session struct {
	ctx    context.Context
	model  wire.Model
	sealed bool
	links  map[string]wire.LinkID
	shown  []bool // by link: not an operation's own bound
	routes map[string]wire.RouteID
	kinds  []kind
	live   []*operation // in progress
	ops    []*operation // by number; nil where it is over
	tokens []token      // by token of the model
	free   []int32
	done   []int32
	slow   []float64 // by rank of the job
	wait   []float64 // the same, of what kernels wait for
	starts []start
	err    error
	// Frame by frame: links that are cables, and queue pairs.
	cabled map[wire.LinkID]bool
	pairs  map[wire.QueueKey]wire.QueueID
}

// kind is a plan that was declared.
type kind struct {
	x     *Executor
	plan  *plan.Plan
	ranks []int32 // of the job, by rank of the communicator
	// queue is how long a word of another operation waits behind it (see queue).
	queue units.Time
}

// token says whose flow one of the model's is.
type token struct {
	op    *operation
	local int32
}

// operation is one run of a plan.
type operation struct {
	id     int32
	kind   int32
	e      *engine.Engine
	landed []int32
	ended  []int32 // ranks whose kernels ended, not reported yet
	begun  int     // kernels that were started
	wait   float64 // of what the ranks' kernels wait for the slowest
}

// NewSession returns a Session for a job of so many ranks.
func NewSession(ctx context.Context, ranks int) *Session {
	s := &Session{ctx: ctx, model: fluid.New(), links: map[string]wire.LinkID{},
		routes: map[string]wire.RouteID{}, slow: make([]float64, ranks), wait: make([]float64, ranks)}
	for i := range s.slow {
		s.slow[i], s.wait[i] = 1, 1
	}
	return s
}

// Declare lays out a plan of a communicator, whose ranks are those of the job that
// are given, and returns its number.
func (s *Session) Declare(cfg Config, p *plan.Plan, ranks []int32) (int32, error) {
	x, err := New(cfg)
	if err != nil {
		return 0, err
	}
	s.attachPackets(&cfg)
	s.kinds = append(s.kinds, kind{x: x, plan: p, ranks: ranks})
	_, err = s.layOut(int32(len(s.kinds) - 1))
	s.kinds[len(s.kinds)-1].queue = s.queue(p)
	return int32(len(s.kinds) - 1), err
}

// inFlight is what a thread of Simple has on its way: four stores of 16 bytes
// (common_kernel.h of NCCL, an unroll of 4).
const inFlight = 4 * 16

// queue is how long a word of LL or LL128 waits on links within a node behind the
// stores that an operation of Simple has in flight. Max-min sharing gives the word its
// part of the link at once.
func (s *Session) queue(p *plan.Plan) units.Time {
	if p.Comm.NNodes > 1 || p.Comm.NRanks < 2 {
		return 0
	}
	threads := int32(0)
	for _, pr := range p.Programs(0) {
		if pr.Proto == coll.Simple && pr.Role != plan.RoleRecv {
			threads += pr.Workers
		}
	}
	fastest := wire.Rate(0)
	for i := range s.shown {
		fastest = max(fastest, s.model.Capacity(wire.LinkID(i)))
	}
	if fastest == 0 {
		return 0
	}
	return units.FromMicros(float64(threads*inFlight) / (float64(fastest) * 1e-3))
}

// queues sets how long the words of the operations in progress take from rank to rank,
// behind what others have in flight.
func (s *Session) queues() {
	for _, op := range s.live {
		op.e.SetSlowdown(op.wait)
		wait := units.Time(0)
		for _, other := range s.live {
			if kd := &s.kinds[other.kind]; other != op && kd.queue > 0 && other.begun == len(kd.ranks) &&
				s.rendezvous(op.kind, other.kind) {
				wait += kd.queue
			}
		}
		for _, p := range [...]coll.Protocol{coll.LL, coll.LL128} {
			op.e.Cost.Hop[p] += wait
		}
	}
}

// rendezvous reports whether operations have a rank in common.
func (s *Session) rendezvous(a, b int32) bool {
	for _, r := range s.kinds[a].ranks {
		if slices.Contains(s.kinds[b].ranks, r) {
			return true
		}
	}
	return false
}

// Seal ends the declarations.
func (s *Session) Seal() {
	s.model.Seal()
	s.sealed = true
	if m, ok := s.model.(*packets.Model); ok && m.Err() != nil {
		s.fail(m.Err())
	}
}

// layOut makes the engine of an operation.
func (s *Session) layOut(k int32) (*operation, error) {
	kd := &s.kinds[k]
	x := kd.x
	if err := x.fits(kd.plan); err != nil {
		return nil, err
	}
	op := &operation{kind: k}
	model := s.viewOf(op)
	slow := make([]float64, len(kd.ranks))
	for r := range slow {
		slow[r] = s.slow[kd.ranks[r]]
	}
	for r, f := range x.cfg.slowness() {
		slow[r] *= f
	}
	o := engine.Options{Class: &x.class, Systems: x.cfg.Systems, Model: model, Network: x.cfg.network(),
		Seed: x.cfg.Seed, Slow: slow,
		Kernels: 1, Place: x.cfg.Place}
	if !x.cfg.NoJitter && kd.plan.Comm.NRanks <= JitterRanks {
		o.Jitter = x.class.Jitter
	}
	op.e = engine.New(&o, kd.plan)
	op.e.Cancelled = s.ctx.Err
	if err := op.e.LayAll(op.e.Jobs[0]); err != nil {
		return nil, err
	}
	op.e.LayHeads()
	model.Seal()
	op.e.Ended = func(di int32, _ units.Time) { op.ended = append(op.ended, di) }
	op.e.Prepare()
	return op, s.err
}

// Open begins an operation of a declared plan.
func (s *Session) Open(k int32) (int32, error) {
	op, err := s.layOut(k)
	if err != nil {
		return 0, err
	}
	op.id = int32(len(s.ops))
	s.paceOf(op)
	s.ops, s.live = append(s.ops, op), append(s.live, op)
	return op.id, nil
}

// Start begins the kernel of a rank of an operation's communicator, as slow as Slow says when the
// instant is over.
func (s *Session) Start(op, rank int32, at units.Time) {
	s.starts = append(s.starts, start{op, rank, at})
}

// start is a kernel that begins at the end of the instant.
type start struct {
	op, rank int32
	at       units.Time
}

// startReady starts the kernels of the instant.
func (s *Session) startReady() {
	for _, k := range s.starts {
		x := s.ops[k.op]
		x.e.StartDevice(k.rank, k.at, s.wait[s.kinds[x.kind].ranks[k.rank]])
		if x.begun++; x.begun == len(s.kinds[x.kind].ranks) && len(s.live) > 1 {
			s.queues()
		}
	}
	s.starts = s.starts[:0]
}

// Slow makes the kernels of a rank of the job slower by a factor from now on, and what they wait
// for by another one.
func (s *Session) Slow(rank int32, factor, wait float64) {
	s.slow[rank], s.wait[rank] = factor, wait
	changed := false
	for _, op := range s.live {
		kd := &s.kinds[op.kind]
		for r, of := range kd.ranks {
			if of == rank {
				op.e.Slow[r] = factor
				changed = s.paceOf(op) || changed
			}
		}
	}
	if changed {
		s.queues()
	}
}

// paceOf finds how long what the kernels of an operation wait for takes, and reports whether
// that changed.
func (s *Session) paceOf(op *operation) bool {
	old := max(op.wait, 1)
	op.wait = 1
	for _, r := range s.kinds[op.kind].ranks {
		op.wait = max(op.wait, s.wait[r])
	}
	if op.wait == old {
		return false
	}
	op.e.SetSlowdown(op.wait)
	return true
}

// Next is when something happens next, ok false where nothing does.
func (s *Session) Next() (at units.Time, ok bool) {
	s.startReady()
	for _, op := range s.live {
		if len(op.ended) > 0 {
			return op.e.Queue.Now, true
		}
		if t, due := op.e.NextEvent(); due && (!ok || t < at) {
			at, ok = t, true
		}
	}
	if t, flows := s.model.Next(); flows && (!ok || t < at) {
		at, ok = t, true
	}
	return at, ok
}

// Advance handles what happens up to a time, and reports the kernels that end, by
// operation and rank of its communicator.
func (s *Session) Advance(now units.Time, ended func(op, rank int32)) error {
	s.startReady()
	for s.err == nil {
		if end, flows := s.model.Next(); flows && end <= now {
			s.advanceFlows(end)
			continue
		}
		busy := false
		for _, op := range s.live {
			if at, ok := op.e.NextEvent(); ok && at <= now {
				busy = true
				s.fail(op.e.RunUntil(now))
			}
		}
		if !busy {
			break
		}
	}
	s.report(ended)
	return s.err
}

// advanceFlows ends the flows that are through.
func (s *Session) advanceFlows(end units.Time) {
	s.done = s.model.Advance(end, s.done[:0])
	var touched []*operation
	for _, tok := range s.done {
		t := s.tokens[tok]
		s.tokens[tok].op = nil
		s.free = append(s.free, tok)
		if len(t.op.landed) == 0 {
			touched = append(touched, t.op)
		}
		t.op.landed = append(t.op.landed, t.local)
	}
	for _, op := range touched {
		s.fail(op.e.FlowsDone(end, op.landed))
		op.landed = op.landed[:0]
	}
}

func (s *Session) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// report reports the kernels that ended, and drops operations that are over. Their
// last acknowledgements may still be on the way: nothing waits for them.
func (s *Session) report(ended func(op, rank int32)) {
	for i := 0; i < len(s.live); i++ {
		op := s.live[i]
		list := op.ended
		op.ended = nil
		for _, r := range list {
			ended(op.id, r)
		}
	}
	before := len(s.live)
	s.live = slices.DeleteFunc(s.live, func(op *operation) bool {
		if over := op.e.Done() && len(op.ended) == 0 && !s.carries(op); over {
			s.ops[op.id] = nil
			return true
		}
		return false
	})
	if len(s.live) < before {
		s.queues()
	}
}

// carries reports whether an operation has flows or events left.
func (s *Session) carries(op *operation) bool {
	if _, due := op.e.NextEvent(); due {
		return true
	}
	return slices.ContainsFunc(s.tokens, func(t token) bool { return t.op == op })
}

// Loads are what links carried in the whole job.
func (s *Session) Loads() []exec.LinkLoad {
	var out []exec.LinkLoad
	for i, l := range s.model.Loads() {
		if s.shown[i] && l.Bytes > 0 {
			out = append(out, exec.LinkLoad{Name: l.Name, Capacity: units.GBps(float64(l.Capacity) * 1e-6),
				Bytes: l.Bytes, Busy: l.Busy})
		}
	}
	return out
}

// Class returns the machine class of a declared plan's communicator.
func (s *Session) Class(k int32) gpu.Class { return s.kinds[k].x.class }

// view is the model of links as one operation sees it.
type view struct {
	wire.Layout
	s      *Session
	op     *operation
	full   []wire.Rate // capacities as declared
	routes []wire.RouteID
}

var _ wire.Model = (*view)(nil)

// AddLink implements wire.Links.
func (v *view) AddLink(name string, c wire.Rate) wire.LinkID {
	v.full = append(v.full, c)
	return v.Layout.AddLink(name, c)
}

// Seal finds the session's links and routes. A link that the operation has slower
// than declared keeps that as a bound of the operation's own.
func (v *view) Seal() {
	s := v.s
	global := make([][2]wire.LinkID, len(v.full))
	for i, full := range v.full {
		id := wire.LinkID(i)
		global[i] = [2]wire.LinkID{s.link(v.Name(id), full, true), -1}
		if c := v.Capacity(id); c < full {
			global[i][1] = s.link(fmt.Sprintf("%s of %d", v.Name(id), v.op.kind), c, false)
		}
	}
	for r := range v.NumRoutes() {
		var uses []wire.Use
		for _, u := range v.Uses(wire.RouteID(r)) {
			uses = append(uses, wire.Use{Link: global[u.Link][0], Count: u.Count})
			if own := global[u.Link][1]; own >= 0 {
				uses = append(uses, wire.Use{Link: own, Count: u.Count})
			}
		}
		v.routes = append(v.routes, s.route(uses))
	}
}

// link is the session's link of a name.
func (s *Session) link(name string, c wire.Rate, shown bool) wire.LinkID {
	id, ok := s.links[name]
	switch {
	case ok:
		return id
	case s.sealed:
		s.fail(fmt.Errorf("simulator: link %s was not declared", name))
		return 0
	}
	id = s.model.AddLink(name, c)
	s.links[name], s.shown = id, append(s.shown, shown)
	return id
}

// route is the session's route over links.
func (s *Session) route(uses []wire.Use) wire.RouteID {
	slices.SortFunc(uses, func(a, b wire.Use) int { return int(a.Link) - int(b.Link) })
	var key []byte
	for _, u := range uses {
		key = binary.LittleEndian.AppendUint64(key, uint64(u.Link)<<32|uint64(u.Count))
	}
	r, ok := s.routes[string(key)]
	switch {
	case ok:
		return r
	case s.sealed:
		s.fail(fmt.Errorf("simulator: a route over %d links was not declared", len(uses)))
		return 0
	}
	r = s.model.AddRoute(uses)
	s.routes[string(key)] = r
	return r
}

// Start implements wire.Model.
func (v *view) Start(now units.Time, r wire.RouteID, bound wire.Rate, w wire.Work, mult,
	local int32) wire.FlowID {
	return v.s.model.Start(now, v.routes[r], bound, w, mult, v.s.token(v.op, local))
}

// Carry implements wire.Model.
func (v *view) Carry(r wire.RouteID, w wire.Work) { v.s.model.Carry(v.routes[r], w) }

// SetRate implements wire.Model.
func (v *view) SetRate(now units.Time, f wire.FlowID, bound wire.Rate) {
	v.s.model.SetRate(now, f, bound)
}

// Next implements wire.Model: the session asks the model that all share.
func (v *view) Next() (units.Time, bool) { return 0, false }

// Advance implements wire.Model; see Next.
func (v *view) Advance(_ units.Time, done []int32) []int32 { return done }

// Loads implements wire.Model; see Next.
func (v *view) Loads() []wire.Load { return nil }

// Watch implements wire.Model: nothing is reported.
func (v *view) Watch(func(l wire.LinkID, at units.Time, rate wire.Rate)) {}
