package engine

import (
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/internal/variates"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// LayAll fills in groups and connections of all ranks.
func (e *Engine) LayAll(j *Job) error {
	if err := e.layGroups(j); err != nil {
		return err
	}
	if err := e.layConns(j); err != nil {
		return err
	}
	return e.layJoint(j)
}

// Poll returns Cancelled's error.
func (e *Engine) Poll() error {
	if e.Cancelled == nil {
		return nil
	}
	return e.Cancelled()
}

// pollEvery is after how many groups or connections Cancelled is polled.
const pollEvery = 1 << 8

// layGroups lists the programs of every rank as groups, multiprocessors and
// devices.
func (e *Engine) layGroups(j *Job) error {
	n := int32(j.Plan.Comm.NRanks)
	e.Devices = make([]Device, n)
	for i := range e.Devices {
		e.Devices[i].Job = j
	}
	var progs []plan.Program
	req := &j.Plan.Req // all ranks do as much as the root, or the others of gather and scatter do together
	progs = j.Plan.AppendPrograms(progs, req.Root)
	blocks, ranks := e.BlocksGap(j.Plan), int(n)
	if req.Func == coll.Gather || req.Func == coll.Scatter {
		ranks = 2
	}
	e.Groups = slices.Grow(e.Groups, ranks*len(progs))
	for r := range n {
		if err := e.Poll(); err != nil {
			return err
		}
		progs = j.Plan.AppendPrograms(progs[:0], r)
		d := &e.Devices[r]
		d.First = int32(len(e.SMs))
		channel := int32(-1)
		for i := range progs {
			pr := &progs[i]
			if i == 0 || pr.Channel != channel {
				channel = pr.Channel
				e.SMs = append(e.SMs, SM{First: int32(len(e.Groups))})
				d.SMs++
			}
			sm := &e.SMs[len(e.SMs)-1]
			sm.Groups++
			j.Gap = max(j.Gap, e.GapOf(j, pr)+blocks)
			e.Groups = append(e.Groups, NewGroup(e, j, pr, r, int32(len(e.SMs)-1)))
		}
	}
	switch {
	case j.Plan.OneRank() != plan.NotOneRank:
		j.Gap = e.oneRankGap(j)
	case j.Gap == 0:
		j.Gap = units.FromMicros(e.Class.KernelGap[coll.LL])
	}
	return nil
}

// GapOf is a kernel's fixed cost.
func (e *Engine) GapOf(j *Job, pr *plan.Program) units.Time {
	own := j.Plan.Of(pr)
	if own.Req.Func.IsP2P() {
		return units.FromMicros(e.Class.P2PGap)
	}
	return units.FromMicros(e.Class.Gap(pr.Proto, own.Req.Func, 32*own.Req.Warps))
}

// BlocksGap is what a kernel of more than one thread block costs on top: one for each
// channel of the rank that has most to do.
func (e *Engine) BlocksGap(p *plan.Plan) units.Time {
	if e.Class.BlockGap == 0 {
		return 0
	}
	return units.FromMicros(e.Class.BlockGap * float64(max(0, blocksOf(p)-1)))
}

// blocksOf returns the most thread blocks that a kernel of any rank of a plan has.
func blocksOf(p *plan.Plan) int {
	blocks, channel := 0, int32(-1)
	for _, pr := range p.AppendPrograms(nil, p.Req.Root) {
		if pr.Channel != channel {
			blocks, channel = blocks+1, pr.Channel
		}
	}
	return blocks
}

// NewGroup makes the group of a program on a device and multiprocessor.
func NewGroup(e *Engine, j *Job, pr *plan.Program, dev, sm int32) Group {
	g := Group{proto: pr.Proto, local: e.localOf(dev), Job: j, Plan: j.Plan.Of(pr), Program: *pr, Rank: dev,
		Sm: sm, wake: -1, Joint: -1, kind: -1, sized: -1, perRound: max(1, j.Plan.Fanout(pr))}
	g.rounds = g.perRound > 1 && (pr.Role == plan.RoleScatter || pr.Role == plan.RoleGather)
	if e.like != nil {
		g.draws = e.like(pr).draws
	} else {
		g.draws = variates.StreamOf(e.seed, uint64(dev), uint64(pr.Channel)<<32|uint64(pr.Group))
	}
	if e.Jitter.Channel > 0 {
		g.drift = e.Jitter.Channel * variates.Normal(e.seed, uint64(dev), uint64(pr.Channel), 1<<40)
	}
	return g
}

// localOf is the route of what stays in a device's memory: one for each, so that flows of
// different devices have no route in common.
func (e *Engine) localOf(dev int32) wire.RouteID {
	for int(dev) >= len(e.locals) {
		e.locals = append(e.locals, e.Wire.AddRoute(nil))
	}
	return e.locals[dev]
}

// layConns finds both ends of every connection and its route.
func (e *Engine) layConns(j *Job) error {
	e.Conns = make([]Conn, j.Plan.NumConns())
	for i := range e.Conns {
		e.Conns[i] = Conn{Snd: -1, Rcv: -1, Net: -1}
	}
	if j.Plan.Req.Func.IsP2P() {
		e.Net.Expect(len(e.Groups) / 2)
	}
	var op plan.Op
	var cur plan.Cursor
	for gi := range e.Groups {
		g := &e.Groups[gi]
		if gi%pollEvery == 0 {
			if err := e.Poll(); err != nil {
				return err
			}
		}
		j.Plan.OpenInto(&cur, &g.Program)
		rounds := g.inRounds() && g.Plan.Req.Algo.IsNVLS()
		// A program uses the same connections throughout, save that the first and
		// last ops may lack some; PAT varies, and NVLS within a round over its heads.
		for cur.Next(&op) && (!rounds || op.Step == 0) {
			if err := e.joinConns(j, int32(gi), &op); err != nil {
				return err
			}
			if !g.Program.Role.VariesConns() && op.Seq > 1 {
				break
			}
		}
	}
	return e.Net.JoinRails()
}

func (e *Engine) joinConns(j *Job, gi int32, op *plan.Op) error {
	pr := &e.Groups[gi].Program
	for _, id := range op.To {
		c := &e.Conns[id]
		if c.Snd >= 0 {
			continue
		}
		pc := &e.described
		j.Plan.ConnInto(pc, id)
		r, err := e.Net.Table.Between(pc)
		if err != nil {
			return err
		}
		*c = e.ConnOf(pc, pr, gi, c.Rcv)
		if c.Route = r; c.Staged {
			e.Net.Table.Stage(pc, e.Groups[gi].InTransit(op))
		}
		c.Net, err = e.Net.Connect(pc, id, pr)
		if err != nil {
			return err
		}
	}
	for _, id := range op.From {
		c := &e.Conns[id]
		met := c.Rcv == gi
		c.Rcv = gi
		if met || c.Net >= 0 {
			continue
		}
		pc := &e.described
		if j.Plan.ConnInto(pc, id); host.Reduces(pc) { // no rank is at its other end
			var err error
			if c.Net, err = e.Net.Connect(pc, id, pr); err != nil {
				return err
			}
		}
	}
	return nil
}

// ConnOf is a connection from one group to another, of which pr is one's program: all
// of it but its route and its network side.
func (e *Engine) ConnOf(pc *plan.Conn, pr *plan.Program, snd, rcv int32) Conn {
	return Conn{Snd: snd, Rcv: rcv, Net: -1, Depth: depthOf(pr), Staged: Staged(pc),
		Read: e.Net.Table.Reads(pc), FromHost: e.FromHost(pc)}
}

// depthOf is how many pieces of a program fit a connection.
func depthOf(pr *plan.Program) int8 { return int8(plan.FIFOSteps / max(1, pr.SliceSteps)) }

// Staged reports whether a connection goes through host memory, by which its flags take
// longer.
func Staged(pc *plan.Conn) bool { return pc.Route.Transport == connect.SHM }

// Extra is what a connection's flags take longer than between GPUs.
func (e *Engine) Extra(c *Conn) units.Time {
	if c.Staged {
		return e.Cost.host
	}
	return 0
}

// FromHost reports whether a kernel loads a connection's data over PCIe from host
// memory, where another GPU or a thread put it.
func (e *Engine) FromHost(pc *plan.Conn) bool {
	if pc.Route.Transport == connect.NET && pc.Kind != connect.NVLSRoute && !host.Reduces(pc) {
		_, _, tcp := e.Net.OverTCP(pc)
		return tcp
	}
	return pc.Route.Transport == connect.SHM
}

// InTransit is how many bytes a connection may hold of such operations: one of a
// collective, whose ranks wait for each other, and as many as fit of a send.
func (g *Group) InTransit(op *plan.Op) units.Bytes {
	if g.Plan.Req.Func.IsP2P() {
		return op.Bytes * plan.FIFOSteps
	}
	return op.Bytes
}

// layJoint gives ops that reach several peers, or work through the switch,
// their route, once all connections have theirs.
func (e *Engine) layJoint(j *Job) error {
	w := e.Net.Table
	var op plan.Op
	var cur plan.Cursor
	for gi := range e.Groups {
		g := &e.Groups[gi]
		j.Plan.OpenInto(&cur, &g.Program)
		if !cur.Next(&op) || !j.HasJoint(&g.Program, &op) {
			continue
		}
		w.Uses = w.Uses[:0]
		if err := w.Joint(&op, j.Plan); err != nil {
			return err
		}
		g.Joint = w.Intern()
	}
	return nil
}

// HasJoint reports whether a program's ops take a route of their own in place of
// their connection's: they reach several peers, or work through the switch.
func (j *Job) HasJoint(pr *plan.Program, op *plan.Op) bool {
	switch pr.Role {
	case plan.RoleTreeBroadcast, plan.RoleTreeRoot, plan.RoleReduce, plan.RoleBroadcast:
		return len(op.To) >= 2 || j.Plan.Of(pr).Req.Algo.IsNVLS()
	}
	return false
}

// Start begins the first kernel of every device.
func (e *Engine) Start() {
	e.layAddresses()
	e.running = int32(len(e.Devices))
	for i := range e.Devices {
		if e.down != nil && e.down[i] {
			e.running--
			continue
		}
		at := e.Devices[i].Job.Gap
		if e.late != nil {
			at += e.late[i]
		}
		e.startKernel(int32(i), at)
	}
}

// KernelsFor decides how many operations to simulate, of a given number or 0: the
// period of long ones is their own time.
func KernelsFor(p *plan.Plan, given int) int32 {
	if given > 0 {
		return int32(given)
	}
	l := p.Layout(0)
	switch n := max(l.Input, l.Output); {
	case n >= 512<<20:
		return 1
	case n >= 64<<20:
		return 2
	}
	return 3
}
