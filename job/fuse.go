package job

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/workload"
)

// The calls of a group on one communicator are launched as NCCL's planner does it: in few kernels of several
// calls each, with sends and receives after the last collectives. The program that is run has one call for
// each such kernel, at the steps of the kernel's first calls; the steps of its other calls are marked as part
// of it. Groups of sends and receives only are not fused: only the ranks with messages launch their kernels,
// and no other rank waits for them.

// joint is a kernel that executes several calls of a group; key identifies equal ones of a shape.
type joint struct {
	kernel *launch.Kernel
	comm   *launch.Comm
	key    string
}

// batch is the calls of a list on one communicator in one group.
type batch struct {
	first int     // number of its first collective on the communicator
	steps []int32 // steps of the list with collectives
	mail  []int32 // steps of the list with sends and receives
}

// at returns the step of a batch's i-th call: collectives, then messages.
func (b *batch) at(i int) int32 {
	if i < len(b.steps) {
		return b.steps[i]
	}
	return b.mail[i-len(b.steps)]
}

// fuse makes the program that is run. Groups that differ between members, and groups that the planner
// does not support, keep one kernel per call.
func (c *costing) fuse() error {
	if !c.grouped || c.opt.Fidelity == Alpha {
		return nil
	}
	own := *c.p
	own.Lists, own.Calls = slices.Clone(own.Lists), slices.Clone(own.Calls)
	f := fuser{c: c, p: &own, lists: make([]map[int32][]batch, len(own.Lists)),
		copied: make([]bool, len(own.Lists))}
	for i := range own.Lists {
		f.lists[i] = batches(c.p, i)
	}
	for comm := range own.Comms {
		if err := f.comm(int32(comm)); err != nil {
			return err
		}
	}
	if f.part != nil {
		c.p, c.part = &own, f.part
		c.calls = make([]*planned, len(own.Calls))
		c.loads, c.plain = make([][]load, len(own.Calls)), make([][]float64, len(own.Calls))
	}
	return nil
}

// fuser is the state of fuse: the program under construction and each list's batches.
type fuser struct {
	c      *costing
	p      *workload.Program
	lists  []map[int32][]batch
	copied []bool
	part   [][]int32
}

// batches returns, by communicator, the calls that a list issues in groups.
func batches(p *workload.Program, list int) map[int32][]batch {
	out := map[int32][]batch{}
	count := map[int32]int{}
	depth := 0
	var open map[int32]*batch
	for i, s := range p.Lists[list].Steps {
		switch s.Kind {
		case workload.GroupStart:
			if depth++; depth == 1 {
				open = map[int32]*batch{}
			}
		case workload.GroupEnd:
			if depth--; depth == 0 {
				for comm, b := range open { //lint:sorted each communicator has a list of its own
					if len(b.steps) > 0 {
						out[comm] = append(out[comm], *b)
					}
				}
			}
		case workload.Issue:
			call := &p.Calls[s.Call]
			mail := message(call.Func)
			if !mail {
				count[call.Comm]++
			}
			if depth == 0 || call.Kernel.Name != "" {
				continue
			}
			b := open[call.Comm]
			if b == nil {
				b = &batch{}
				open[call.Comm] = b
			}
			if mail {
				b.mail = append(b.mail, int32(i))
				continue
			}
			if len(b.steps) == 0 {
				b.first = count[call.Comm]
			}
			b.steps = append(b.steps, int32(i))
		}
	}
	return out
}

// comm fuses the group calls of a communicator's members.
func (f *fuser) comm(comm int32) error {
	var members []int32 // lists, each only once
	at := f.c.comms[comm]
	for _, r := range at.ranks {
		if l := f.p.Of[r]; !slices.Contains(members, l) {
			members = append(members, l)
		}
	}
	if len(members) == 0 || at.layout.NRanks < 2 {
		return nil
	}
	for i, b := range f.lists[members[0]][comm] {
		most := 0
		for _, l := range members {
			if list := f.lists[l][comm]; i < len(list) {
				most = max(most, len(list[i].steps)+len(list[i].mail))
			}
		}
		if len(b.steps) == 0 || most < 2 || !f.equal(members, comm, i) {
			continue
		}
		if err := f.launch(members, comm, i); err != nil {
			return err
		}
	}
	return nil
}

// equal reports whether all members have an equal i-th batch, in which every collective has a count above 0.
func (f *fuser) equal(members []int32, comm int32, i int) bool {
	first := f.lists[members[0]][comm][i]
	for _, l := range members {
		list := f.lists[l][comm]
		if len(list) <= i || list[i].first != first.first || len(list[i].steps) != len(first.steps) {
			return false
		}
		for k, s := range list[i].steps {
			x, y := f.call(l, s), f.call(members[0], first.steps[k])
			if !x.Equal(*y) || !x.Func.Valid() || x.Splits != nil || x.Count == 0 {
				return false
			}
		}
	}
	return true
}

func (f *fuser) call(list, step int32) *workload.Call {
	return &f.c.p.Calls[f.c.p.Lists[list].Steps[step].Call]
}

// launch plans a batch and puts its kernels into the members' lists.
func (f *fuser) launch(members []int32, comm int32, i int) error {
	b := f.lists[members[0]][comm][i]
	at := f.c.comms[comm]
	calls := make([]launch.Call, len(b.steps))
	for k, s := range b.steps {
		x := f.call(members[0], s)
		calls[k] = launch.Call{Func: x.Func, Type: x.Type, Op: x.RedOp, Count: x.Count, InPlace: x.InPlace}
		if x.Func.Rooted() {
			calls[k].Root = at.rankOf[x.Root]
		}
	}
	mail := f.mail(comm, i)
	calls = append(calls, mail...)
	l := at.comm.Launcher(calls, launch.Captured)
	kernels, err := launch.Plan(l, calls, launch.Captured)
	// a send without its receive in the group
	if errors.Is(err, plan.ErrUnsupported) || err != nil && len(mail) > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	for _, list := range members {
		if own := &f.lists[list][comm][i]; len(own.steps)+len(own.mail) < len(kernels) {
			return nil
		}
	}
	first := int32(len(f.p.Calls))
	for k := range kernels {
		if kernels[k].Symmetric != nil {
			return nil
		}
		x := workload.Call{Comm: comm, Func: coll.AllToAll, Count: 1} // a kernel of sends and receives only
		if len(kernels[k].Tasks) > 0 {
			x = *f.call(members[0], b.steps[kernels[k].Tasks[0].Call])
		}
		f.p.Calls = append(f.p.Calls, x)
		f.c.fused = append(f.c.fused, &joint{kernel: &kernels[k], comm: l, key: fmt.Sprint(calls, k)})
	}
	for _, list := range members {
		f.rewrite(list, &f.lists[list][comm][i], kernels, first)
	}
	return nil
}

// rewrite lets the first steps of a batch launch its kernels, in order; the other steps become part of the
// kernel that executes their call.
func (f *fuser) rewrite(list int32, b *batch, kernels []launch.Kernel, first int32) {
	if f.part == nil {
		f.part = make([][]int32, len(f.p.Lists))
	}
	own := f.p.Lists[list].Steps
	if !f.copied[list] {
		own = slices.Clone(own)
		f.p.Lists[list].Steps, f.copied[list] = own, true
		f.part[list] = slices.Repeat([]int32{-1}, len(own))
	}
	of := make([]int, len(b.steps)+len(b.mail)) // index of the kernel that executes each step
	for k := range kernels {
		if kernels[k].Exchanges == nil {
			continue
		}
		for i := range of { // messages in several kernels count as part of the last
			of[i] = k
		}
	}
	for k := range kernels {
		for _, t := range kernels[k].Tasks {
			of[t.Call] = k
		}
	}
	for i, k := range of {
		if s := b.at(i); i >= len(kernels) {
			own[s].Kind, f.part[list][s] = workload.Record, b.at(k)
		} else {
			own[s].Call = first + int32(i)
		}
	}
}

// mail returns the sends and receives of a batch, of all ranks of the communicator.
func (f *fuser) mail(comm int32, i int) (out []launch.Call) {
	at := f.c.comms[comm]
	for me, rank := range at.ranks {
		l := f.p.Of[rank]
		for _, s := range f.lists[l][comm][i].mail {
			x := f.call(l, s)
			out = append(out, launch.Call{Func: x.Func, Type: x.Type, Count: x.Count, Rank: at.rankOf[me],
				Peer: at.rankOf[x.Peer]})
		}
	}
	return out
}

// kernel returns a kernel of several calls with its plan and time, made now or before.
func (c *costing) kernel(ctx context.Context, at *communicator, t *joint) (*planned, error) {
	key := opKey{shape: at.key, comm: -1, order: fmt.Sprint(at.rankOf), group: t.key}
	if c.m.Sim.Fabric != nil || len(c.m.Sim.Faults) > 0 {
		key.comm = at.id
	}
	if x, ok := c.known[key]; ok {
		return x, nil
	}
	p, err := t.kernel.Plan(t.comm)
	if err != nil {
		return nil, err
	}
	x := &planned{plan: p, sms: channels(p), group: true}
	if x.op.Func = coll.AllToAll; len(t.kernel.Tasks) > 0 {
		r := &t.kernel.Tasks[0].Req
		x.op.Func, x.choice = r.Func, tuning.Choice{Algo: r.Algo, Proto: r.Proto, MaxChannels: r.Channels,
			Warps: r.Warps}
	}
	if c.opt.Fidelity == Share {
		e, err := sim.New(c.located(at))
		if err != nil {
			return nil, err
		}
		if x.alone, err = e.Alone(ctx, located(p, at), c.ask); err != nil {
			return nil, err
		}
		x.order(at)
	}
	c.known[key] = x
	return x, nil
}

// located returns the simulator's configuration for a communicator. Where one simulation serves all
// communicators of a shape, link names are relative (anywhere).
func (c *costing) located(at *communicator) sim.Config {
	cfg := c.m.config(at)
	if c.m.Sim.Fabric == nil && len(c.m.Sim.Faults) == 0 {
		cfg.Place = anywhere(at.place)
	}
	return cfg
}

// isFused returns the kernel of several calls that call i of the fused program represents; nil for an
// ordinary call.
func (c *costing) isFused(i int) *joint {
	if k := i - (len(c.p.Calls) - len(c.fused)); k >= 0 && c.part != nil {
		return c.fused[k]
	}
	return nil
}
