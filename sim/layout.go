package sim

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/chance"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/units"
)

// layAll fills in groups and connections of all ranks.
func (e *engine) layAll(j *job) error {
	e.layGroups(j)
	if err := e.layConns(j); err != nil {
		return err
	}
	return e.layJoint(j)
}

// layGroups lists the programs of every rank as groups, multiprocessors and
// devices.
func (e *engine) layGroups(j *job) {
	n := int32(j.plan.Comm.NRanks)
	e.devs = make([]device, n)
	for i := range e.devs {
		e.devs[i].job = j
	}
	var progs []plan.Program
	for r := range n {
		progs = j.plan.AppendPrograms(progs[:0], r)
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
			j.gap = max(j.gap, e.gapOf(j, pr))
			e.groups = append(e.groups, newGroup(e, j, pr, r, int32(len(e.sms)-1)))
		}
	}
	switch {
	case j.plan.OneRank() != plan.NotOneRank:
		j.gap = e.oneRankGap(j)
	case j.gap == 0:
		j.gap = units.FromMicros(e.class.KernelGap[coll.LL])
	}
}

// gapOf is what a kernel costs beside the program's transfers.
func (e *engine) gapOf(j *job, pr *plan.Program) units.Time {
	f := j.plan.Req.Func
	if f >= coll.NumCollFuncs {
		return units.FromMicros(e.class.P2PGap)
	}
	reduces := f == coll.AllReduce || f == coll.ReduceScatter || f == coll.Reduce
	return units.FromMicros(e.class.Gap(pr.Proto, reduces, 32*j.plan.Req.Warps))
}

// newGroup makes the group of a program on a device and multiprocessor.
func newGroup(e *engine, j *job, pr *plan.Program, dev, sm int32) group {
	g := group{job: j, pr: *pr, rank: dev, sm: sm, wake: -1, joint: -1, spread: max(1, j.plan.Turn(pr))}
	if e.jitter.Channel > 0 {
		g.drift = e.jitter.Channel * chance.Normal(e.seed, uint64(dev), uint64(pr.Channel), 1<<40)
	}
	return g
}

// layConns finds both ends of every connection and its route.
func (e *engine) layConns(j *job) error {
	e.conns = make([]conn, j.plan.NumConns())
	for i := range e.conns {
		e.conns[i] = conn{snd: -1, rcv: -1, net: -1}
	}
	var op plan.Op
	var cur plan.Cursor
	for gi := range e.groups {
		g := &e.groups[gi]
		j.plan.OpenInto(&cur, &g.pr)
		// A program uses the same connections throughout, save that the first and
		// last ops may lack some; PAT and NVLS vary.
		for cur.Next(&op) {
			if err := e.joinConns(j, int32(gi), &op); err != nil {
				return err
			}
			if g.pr.Role <= plan.RoleTreeRoot && op.Seq > 1 {
				break
			}
		}
	}
	return e.nw.JoinRails()
}

func (e *engine) joinConns(j *job, gi int32, op *plan.Op) error {
	pr := &e.groups[gi].pr
	for _, id := range op.To {
		c := &e.conns[id]
		if c.snd >= 0 {
			continue
		}
		pc := j.plan.Conn(id)
		r, err := e.nw.Table.Between(&pc)
		if err != nil {
			return err
		}
		c.snd, c.route, c.depth = gi, r, plan.FIFOSteps/int64(max(1, pr.SliceSteps))
		c.host = e.inHost(&pc)
		if c.far = e.farOf(&pc); c.far > 0 {
			e.nw.Table.Stage(&pc, j.inTransit(op))
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
		if pc := j.plan.Conn(id); host.Reduces(&pc) { // no rank is at its other end
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

// inTransit is how many bytes a connection may hold of such operations: one of a
// collective, whose ranks wait for each other, and as many as fit of a send.
func (j *job) inTransit(op *plan.Op) units.Bytes {
	if j.plan.Req.Func >= coll.NumCollFuncs {
		return op.Bytes * plan.FIFOSteps
	}
	return op.Bytes
}

// layJoint gives ops that reach several peers, or work through the switch,
// their route, once all connections have theirs.
func (e *engine) layJoint(j *job) error {
	w := e.nw.Table
	var op plan.Op
	var cur plan.Cursor
	for gi := range e.groups {
		g := &e.groups[gi]
		j.plan.OpenInto(&cur, &g.pr)
		if !cur.Next(&op) || !j.hasJoint(&g.pr, &op) {
			continue
		}
		w.Uses = w.Uses[:0]
		if err := w.Joint(&op, j.plan.Conn); err != nil {
			return err
		}
		g.joint = w.Intern()
	}
	return nil
}

// hasJoint reports whether a program's ops take a route of their own in place of
// their connection's: they reach several peers, or work through the switch.
func (j *job) hasJoint(pr *plan.Program, op *plan.Op) bool {
	switch pr.Role {
	case plan.RoleTreeBroadcast, plan.RoleTreeRoot, plan.RoleReduce, plan.RoleBroadcast:
		return len(op.To) >= 2 || j.plan.Req.Algo >= coll.NVLS
	}
	return false
}

// start begins the first kernel of every device.
func (e *engine) start() {
	e.running = int32(len(e.devs))
	for i := range e.devs {
		if e.gone != nil && e.gone[i] {
			e.running--
			continue
		}
		e.startKernel(int32(i), e.devs[i].job.gap)
	}
}

// kernelsFor decides how many operations to simulate: the period of long ones
// is their own time.
func (j *job) kernelsFor(asked int) int32 {
	if asked > 0 {
		return int32(asked)
	}
	l := j.plan.Layout(0)
	switch n := max(l.Input, l.Output); {
	case n >= 512<<20:
		return 1
	case n >= 64<<20:
		return 2
	}
	return 3
}
