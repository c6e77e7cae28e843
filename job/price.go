package job

import (
	"context"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/plan/sym"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Prices finds the times of operations one after the other while a program runs, in contrast to a job whose
// program is known as a whole.
type Prices struct {
	m      *Machine
	known  map[string]units.Time
	ends   map[string][]units.Time
	shapes map[string]*communicator
}

// Prices returns the operation times of this machine, initially without any.
func (m *Machine) Prices() *Prices {
	return &Prices{m: m, known: map[string]units.Time{}, ends: map[string][]units.Time{},
		shapes: map[string]*communicator{}}
}

// Launch returns the host's time to launch an operation on the given number of GPUs of one thread.
func (p *Prices) Launch(gpus int) units.Time {
	return units.FromMicros(p.m.Sim.Class.Launch(max(gpus, 1)))
}

// Beside returns two factors, both at least 1: the time of compute with unknown blocks while a collective's
// kernel runs, and the time of the collective while compute fills the GPU, each relative to running alone.
func (p *Prices) Beside() (compute, calls float64) {
	s := &p.m.Sim.Class.Share
	return max(1, s.Unknown), 1 + max(0, s.Busy)
}

// on returns the communicator of some ranks of the job, in the order of these ranks.
func (p *Prices) on(ranks []int32) (*communicator, string, error) {
	key := fmt.Sprint(ranks)
	if c, ok := p.shapes[key]; ok {
		return c, key, nil
	}
	c, err := p.m.communicator(0, &workload.Comm{Name: "of " + key, Ranks: ranks}, p.m.Cluster.NRanks(), nil)
	if err == nil {
		p.shapes[key] = c
	}
	return c, key, err
}

// Collectives returns the time of a group of collectives on a communicator. A single collective is the mean
// of back-to-back repetitions, as nccl-tests times them (common.cu: time of all iterations divided by their
// number).
func (p *Prices) Collectives(ctx context.Context, ranks []int32, calls []workload.Call) (units.Time, error) {
	at, key, err := p.on(ranks)
	if err != nil {
		return 0, err
	}
	key = fmt.Sprint(key, calls)
	if t, ok := p.known[key]; ok {
		return t, nil
	}
	var t units.Time
	if len(calls) == 1 {
		t, err = p.single(ctx, at, &calls[0])
	} else {
		t, err = p.several(ctx, at, grouped(at, calls))
	}
	if err == nil {
		p.known[key] = t
	}
	return t, err
}

func (p *Prices) single(ctx context.Context, at *communicator, c *workload.Call) (units.Time, error) {
	op := comm.Op{Func: c.Func, Count: c.Count, Type: c.Type, RedOp: c.RedOp, InPlace: c.InPlace}
	if c.Registered {
		op.Buffers = comm.Registered
	}
	if c.Func.Rooted() {
		op.Root = at.rankOf[c.Root]
	}
	e, err := sim.New(p.m.config(at))
	if err != nil {
		return 0, err
	}
	if c.Window {
		op.Buffers = comm.Windows
		if l, ok, err := at.comm.SymmetricKernel(op); err != nil || ok {
			if err != nil {
				return 0, err
			}
			r, err := e.Symmetric(ctx, &l)
			return r.Elapsed, err
		}
	}
	pl, _, err := at.comm.Plan(op)
	if err != nil {
		return 0, err
	}
	r, err := e.Run(ctx, exec.One(located(pl, at)), trace.Discard)
	return r.Elapsed, err
}

// several returns the time of a group's kernels, as in a row of nccl-tests' -m.
func (p *Prices) several(ctx context.Context, at *communicator, calls []launch.Call) (units.Time, error) {
	k, e, err := p.m.kernels(at, calls, launch.Eager)
	if err != nil {
		return 0, err
	}
	sum, err := k.Simulate(ctx, e)
	return sum.Elapsed, err
}

// grouped returns the calls of a group with ranks in NCCL's order.
func grouped(at *communicator, calls []workload.Call) []launch.Call {
	out := make([]launch.Call, len(calls))
	for i := range calls {
		c := &calls[i]
		out[i] = launch.Call{Func: c.Func, Type: c.Type, Op: c.RedOp, Count: c.Count, InPlace: c.InPlace,
			Registered: c.Registered}
		if c.Func.Rooted() {
			out[i].Root = at.rankOf[c.Root]
		}
		if c.Window {
			out[i].Windows = sym.Both
		}
	}
	return out
}

// Message is a send of Bytes from one rank of a communicator to another.
type Message struct {
	From, To int32
	Bytes    int64
}

// Messages returns when each rank of a communicator ends, if all messages of the list are sent together, each
// rank's in one group.
func (p *Prices) Messages(ctx context.Context, ranks []int32, list []Message) ([]units.Time, error) {
	slices.SortStableFunc(list, func(a, b Message) int {
		if a.From != b.From {
			return int(a.From - b.From)
		}
		return int(a.To - b.To)
	})
	if f, bytes, times := pattern(len(ranks), list); times > 0 {
		t, err := p.Collectives(ctx, ranks,
			slices.Repeat([]workload.Call{{Func: f, Type: coll.Int8, Count: bytes}}, times))
		return slices.Repeat([]units.Time{t}, len(ranks)), err
	}
	key := fmt.Sprint(ranks, list)
	if t, ok := p.ends[key]; ok {
		return t, nil
	}
	r, err := p.m.Run(ctx, together(p.m.Cluster.NRanks(), ranks, list), Options{Apart: true})
	if err != nil {
		return nil, err
	}
	out := make([]units.Time, len(ranks))
	for i, rank := range ranks {
		out[i] = r.Finish[rank]
	}
	p.ends[key] = out
	return out, nil
}

// pattern recognises messages for which NCCL launches the same kernel as for an operation: equal ones from
// every rank to every rank (AllToAll) or to the next one (SendRecv). times is the number of messages between
// two ranks, so of operations in a group; 0 for other lists.
func pattern(n int, list []Message) (f coll.Func, bytes int64, times int) {
	for times < len(list) && list[times] == list[0] {
		times++
	}
	if n < 2 || times == 0 || len(list) != n*times && len(list) != n*n*times {
		return 0, 0, 0
	}
	ring, all := len(list) == n*times, len(list) == n*n*times
	for i, m := range list {
		i /= times
		ring = ring && int(m.From) == i && int(m.To) == (i+1)%n
		all = all && int(m.From) == i/n && int(m.To) == i%n
		if m.Bytes != list[0].Bytes || m.Bytes == 0 || !ring && !all {
			return 0, 0, 0
		}
	}
	if ring {
		f = coll.SendRecv
	} else {
		f = coll.AllToAll
	}
	return f, list[0].Bytes, times
}

// together returns a program in which each rank issues its messages in one group.
func together(n int, ranks []int32, list []Message) *workload.Program {
	p := &workload.Program{Comms: []workload.Comm{{Name: "messages", Ranks: ranks}}, Lists: []workload.List{
		{Name: "others"}}, Of: make([]int32, n)}
	for i, rank := range ranks {
		l := workload.List{Name: fmt.Sprint("rank", i), Steps: []workload.Step{{Kind: workload.GroupStart}}}
		issue := func(f coll.Func, peer int32, bytes int64) {
			l.Steps = append(l.Steps, workload.Step{Kind: workload.Issue, Call: int32(len(p.Calls))})
			p.Calls = append(p.Calls, workload.Call{Func: f, Type: coll.Int8, Count: bytes, Peer: peer})
		}
		for _, m := range list {
			if int(m.From) == i {
				issue(coll.Send, m.To, m.Bytes)
			}
			if int(m.To) == i {
				issue(coll.Recv, m.From, m.Bytes)
			}
		}
		l.Steps = append(l.Steps, workload.Step{Kind: workload.GroupEnd})
		if len(l.Steps) > 2 {
			p.Of[rank] = int32(len(p.Lists))
			p.Lists = append(p.Lists, l)
		}
	}
	return p
}
