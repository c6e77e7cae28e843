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

// Calls of a group on one communicator are launched as NCCL's planner has it: few kernels,
// each of several calls, sends and receives after the last collectives. The program that is
// run has one call for each such kernel, at the steps of the first calls, and the steps of
// the others are part of it. Sends and receives alone stay as they are: their kernels are of
// the ranks that have them, and no others wait.

// joint is a kernel of several calls.
type joint struct {
	kernel *launch.Kernel
	comm   *launch.Comm
	key    string
}

// batch is what a list calls on a communicator in one group.
type batch struct {
	first int     // number of its first collective on the communicator
	steps []int32 // of the list: its collectives
	mail  []int32 // and its sends and receives
}

// at is the i-th step of a batch.
func (b *batch) at(i int) int32 {
	if i < len(b.steps) {
		return b.steps[i]
	}
	return b.mail[i-len(b.steps)]
}

// fuse makes the program that is run. Groups that not all members have, and what
// the planner does not plan, stay as they are.
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

// fuser is the state of fuse.
type fuser struct {
	c      *costing
	p      *workload.Program
	lists  []map[int32][]batch
	copied []bool
	part   [][]int32
}

// batches lists what a list calls in groups, by communicator.
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
				for comm, b := range open {
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

// comm fuses what the members of a communicator call in groups.
func (f *fuser) comm(comm int32) error {
	var members []int32 // lists, each once
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

// equal reports whether all members have the same i-th batch, of collectives that move
// something.
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

// launch plans a batch and puts its kernels in the members' lists.
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
	// a send whose receive is elsewhere
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
		x := workload.Call{Comm: comm, Func: coll.AllToAll, Count: 1} // sends and receives
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

// rewrite has the first steps of a batch launch its kernels, in order; the others are part
// of the kernel that has their call.
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
	of := make([]int, len(b.steps)+len(b.mail)) // the kernel of each step
	for k := range kernels {
		if kernels[k].Exchanges == nil {
			continue
		}
		for i := range of { // of several kernels of sends and receives the last
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

// mail are the sends and receives of a batch, of all ranks of the communicator.
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

// kernel plans and simulates a kernel of several calls, or finds it among those that were.
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

// located is the simulator's configuration of a communicator, with names of links that
// fit all of its shape where calls are simulated once for them.
func (c *costing) located(at *communicator) sim.Config {
	cfg := c.m.config(at)
	if c.m.Sim.Fabric == nil && len(c.m.Sim.Faults) == 0 {
		cfg.Place = anywhere(at.place)
	}
	return cfg
}

// isFused returns the kernel of several calls that a call of the program that is run
// is for.
func (c *costing) isFused(i int) *joint {
	if k := i - (len(c.p.Calls) - len(c.fused)); k >= 0 && c.part != nil {
		return c.fused[k]
	}
	return nil
}
