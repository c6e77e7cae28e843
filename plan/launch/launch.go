package launch

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/plan/internal/channels"
	"github.com/simccl/simccl/plan/sym"
)

// Kernel is one launch, with the calls of a group that it executes.
type Kernel struct {
	// Tasks are its collectives in the order in which they are assigned to the channels: a channel executes
	// its parts of them in this order, then its sends and receives.
	Tasks []Task
	// Exchanges are its sends and receives by rank; they refer to Messages. nil: none.
	Exchanges [][]plan.Exchange
	Messages  []plan.Message
	// Symmetric is the symmetric kernel that is launched; nil for an ordinary kernel.
	Symmetric *sym.Launch
	Threads   int // of a block
	// Batches is the number of batches of works by rank (ncclKernelPlan.nWorkBatches); a single number if all
	// ranks have as many.
	Batches []int

	single *Call // the call of a group of one, if it is made of sends and receives
	direct bool  // messages go into registered buffers
	aside  int64 // plan.Request.Misalign of the messages
}

// Task is a collective of a kernel, with its algorithm and its share of the channels.
type Task struct {
	Call  int          // index of the call
	Req   plan.Request // with its algorithm and Cut
	Split plan.Split

	fn kernelFunc
}

// Plan returns the kernels of a group's calls on one communicator, in the order in which its members launch
// them. Errors: a *CallError, an *UnmatchedError, a *plan.UnsupportedError for groups that are not modelled,
// or the choice's.
func Plan(c *Comm, calls []Call, mode Mode) ([]Kernel, error) {
	n := c.Layout.NRanks
	for i := range calls {
		if err := calls[i].validate(i, n); err != nil {
			return nil, err
		}
	}
	if n == 1 {
		return nil, &plan.UnsupportedError{What: "a group on a communicator of one rank",
			Why: "NCCL launches each of its calls by itself; plan them one by one"}
	}
	if err := released(c, calls); err != nil {
		return nil, err
	}
	tasks, kernels, err := prepare(c, calls)
	if err != nil {
		return nil, err
	}
	if len(calls) == 1 && calls[0].p2p() && calls[0].Func.Valid() {
		return append(kernels, Kernel{Threads: channels.Threads(c.Layout), single: &calls[0]}), nil
	}
	mail, err := expand(n, calls)
	if err != nil {
		return nil, err
	}
	if mail.direct, err = c.directMail(calls); err != nil {
		return nil, err
	}
	if len(calls) > 0 {
		mail.aside = calls[0].Misalign
	}
	own, err := kernelsOf(c, tasks, mail, mode)
	return append(kernels, own...), err
}

// released returns a *plan.UnsupportedError for groups of several calls that this NCCL release plans in a way
// that is not modelled (collectives before 2.22; broadcasts with several roots where they are joined).
func released(c *Comm, calls []Call) error {
	rules := c.Layout.Rules
	if len(calls) < 2 {
		return nil
	}
	if rules.Plan.EvenBytes && slices.ContainsFunc(calls, func(c Call) bool { return !c.p2p() }) {
		return &plan.UnsupportedError{What: "a group of several calls", Why: "with collectives, of NCCL " +
			rules.Version() +
			": its planner of groups, before that of 2.22, is modelled for sends and receives alone"}
	}
	root := int32(-1)
	for i := range calls {
		if calls[i].Func != coll.Broadcast || !rules.Plan.BroadcastsJoin {
			continue
		}
		if root >= 0 && calls[i].Root != root {
			return &plan.UnsupportedError{What: "broadcasts of several roots in a group",
				Why: "NCCL " + rules.Version() + " makes one all-gather of variable counts of them " +
					"(scheduler/allgatherv_sched.cc), which is not modelled"}
		}
		root = calls[i].Root
	}
	return nil
}

// fewestThreads is the least number of threads of a block (NCCL_MIN_NTHREADS, device.h:90).
const fewestThreads = 128

// kernelsOf makes the ordinary kernels: first the collectives; sends and receives follow from the kernel of
// the last collective on, divided among kernels by each rank itself (enqueue.cc:1463).
func kernelsOf(c *Comm, tasks []task, m *mail, mode Mode) ([]Kernel, error) {
	var out []Kernel
	for len(tasks) > 0 {
		l := newLayout(c, mode)
		n, err := l.colls(tasks)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, &plan.UnsupportedError{What: fmt.Sprintf("a kernel of %d bytes of arguments",
				l.budget.args+argsHeader), Why: "it holds no collective of the group; NCCL would not end"}
		}
		if tasks = tasks[n:]; len(tasks) > 0 || len(m.messages) == 0 {
			out = append(out, l.done(c.Layout.NRanks))
			continue
		}
		return appendMail(out, l, m, mode)
	}
	if len(m.messages) == 0 {
		return out, nil
	}
	return appendMail(out, newLayout(c, mode), m, mode)
}

// done completes a kernel that is equal on all ranks.
func (l *layout) done(n int) Kernel {
	l.kernel.Threads = max(l.kernel.Threads, fewestThreads)
	l.kernel.Batches = make([]int, n)
	for r := range l.kernel.Batches {
		l.kernel.Batches[r] = l.batches.n
	}
	return l.kernel
}

// appendMail fills the kernel of l with as many sends and receives as it holds, appends it, and makes further
// kernels of the rest.
func appendMail(out []Kernel, l *layout, m *mail, mode Mode) ([]Kernel, error) {
	sizer, err := channels.NewSizer(l.c.Layout, l.c.Params, "send/recv")
	if err != nil {
		return nil, err
	}
	n := l.c.Layout.NRanks
	at := make([]sweep, n)
	for {
		k := l.done(n)
		k.Messages, k.Exchanges, k.direct = m.messages, make([][]plan.Exchange, n), m.direct
		k.aside = m.aside
		some, left := false, 0
		for r := range int32(n) {
			batches := l.batches.clone()
			if l.c.Layout.Rules.Plan.P2PPieces {
				if k.Exchanges[r], k.Batches[r], err = l.pieces(m, sizer, r, mode); err != nil {
					return nil, err
				}
			} else {
				k.Exchanges[r] = l.p2p(m, sizer, r, &batches, &at[r])
				k.Batches[r] = batches.n
			}
			some = some || len(k.Exchanges[r]) > 0
			left += m.left[r]
		}
		if some {
			k.Threads = max(k.Threads, channels.Threads(l.c.Layout))
		} else {
			k.Exchanges, k.Messages = nil, nil
		}
		if some || len(k.Tasks) > 0 {
			out = append(out, k)
		} else if left > 0 {
			return nil, &plan.UnsupportedError{What: fmt.Sprintf("a kernel of %d bytes of arguments",
				l.budget.args+argsHeader),
				Why: "it holds no send or receive of the group; NCCL would not end"}
		}
		if left == 0 {
			return out, nil
		}
		l = newLayout(l.c, mode)
	}
}

// Plan makes the plan of a kernel. A kernel of a group of one call that is made of sends and receives has
// that call's own plan. Errors are build's, plan.Join's, and a *plan.UnsupportedError for symmetric kernels,
// which plan/sym plans.
func (k *Kernel) Plan(c *Comm) (*plan.Plan, error) {
	switch {
	case k.Symmetric != nil:
		return nil, &plan.UnsupportedError{What: "symmetric kernel " + k.Symmetric.Kernel.String(),
			Why: "it has no plan of connections"}
	case k.single != nil:
		r := k.single.request()
		r.Params, r.SlowNVLS = c.Params, c.SlowNVLS
		if c.Register != nil {
			if err := c.Register(&r, k.single); err != nil {
				return nil, err
			}
		}
		return build.Plan(c.Layout, r)
	}
	var parts []plan.Member
	fuse := map[kernelFunc]int32{}
	for i := range k.Tasks {
		t := &k.Tasks[i]
		p, err := build.Plan(c.Layout, t.Req)
		if err != nil {
			return nil, err
		}
		if _, ok := fuse[t.fn]; !ok {
			fuse[t.fn] = int32(len(fuse))
		}
		parts = append(parts, plan.Member{Plan: p, Fuse: fuse[t.fn], Task: int32(t.Call)})
	}
	if k.Exchanges != nil {
		p, err := build.Messages(c.Layout, plan.Request{Params: c.Params, Direct: k.direct,
			Misalign: k.aside}, k.Messages, k.Exchanges)
		if err != nil {
			return nil, err
		}
		parts = append(parts, plan.Member{Plan: p, Fuse: -1, Task: -1})
	}
	if len(parts) == 1 && k.Exchanges == nil {
		return parts[0].Plan, nil
	}
	return plan.Join(c.Layout, parts)
}

// directMail reports whether the buffers of all sends and receives of a group are registered.
func (c *Comm) directMail(calls []Call) (bool, error) {
	direct := false
	for i := range calls {
		if c.Register == nil || !calls[i].p2p() {
			continue
		}
		r := plan.Request{Func: coll.SendRecv}
		if err := c.Register(&r, &calls[i]); err != nil || !r.Direct {
			return false, err
		}
		direct = true
	}
	return direct, nil
}
