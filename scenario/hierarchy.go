package scenario

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// hierarchy is an AllGather that RCCL does by two communicators split from the caller's, one over the nodes
// for each local rank and then one within each node, and a kernel that puts the blocks into order
// (collectives.cc:170 of RCCL 2.30.4).
type hierarchy struct {
	machine *job.Machine
	program *workload.Program
	plans   []*plan.Plan // of each communicator
	shuffle units.Time   // of the kernel
}

// hierarchical plans an AllGather in that way; nil where RCCL does it otherwise. Operations of a group are
// none.
func (r *Running) hierarchical(at Operation) (*hierarchy, error) {
	c := r.Site.Comm
	if r.fn != coll.AllGather || len(c.Params.Rules.Tuning.Hierarchical) == 0 || r.grouped() {
		return nil, nil
	}
	op := r.Op(at)
	if _, choice, err := c.Request(op); err != nil || choice.DDA || choice.Direct != tuning.Hierarchical {
		return nil, nil // the plan says what is wrong
	}
	nodes, local := c.NNodes, c.NRanks/c.NNodes
	for rank, node := range c.NodeOf {
		if int(node) != rank/local {
			return nil, &plan.UnsupportedError{What: "AllGather by " + tuning.Hierarchical,
				Why: "it is for nodes of equally many consecutive ranks; RCCL_HIERARCHICAL_ALLGATHER=0 " +
					"leaves it out"}
		}
	}
	m, err := r.Site.Session(&r.Spec)
	if err != nil {
		return nil, err
	}
	// a communicator that was split has neither kernels over all GPUs' memory nor others below it
	// (init.cc:2576, 2583)
	m.Params.Tuning.AMD.NoDDA, m.Params.Tuning.AMD.NoHierarchy = true, true
	h := &hierarchy{machine: m, program: &workload.Program{Of: make([]int32, c.NRanks)}}
	p := h.program
	group := func(name string, n int, count int64, of func(i int) int) {
		w := workload.Comm{Name: name}
		for i := range n {
			w.Ranks = append(w.Ranks, int32(of(i)))
		}
		p.Comms = append(p.Comms, w)
		p.Calls = append(p.Calls, workload.Call{Comm: int32(len(p.Comms) - 1), Func: coll.AllGather,
			Type:  at.Type,
			Count: count})
	}
	for l := range local {
		group(fmt.Sprintf("local rank %d", l), nodes, op.Count, func(i int) int { return i*local + l })
	}
	for n := range nodes {
		group(fmt.Sprintf("node %d", n), local, op.Count*int64(nodes), func(i int) int { return n*local + i })
	}
	for rank := range c.NRanks {
		p.Of[rank] = int32(rank)
		p.Lists = append(p.Lists, workload.List{Name: fmt.Sprintf("rank %d", rank), Steps: []workload.Step{
			{Kind: workload.Issue, Call: int32(rank % local)},
			{Kind: workload.Issue, Call: int32(local + rank/local)}}})
	}
	h.shuffle = r.shuffled(int64(c.NRanks) * op.Count * int64(op.Type.Size()))
	return h, h.plan()
}

// shuffled is the time of the kernel that puts so many bytes into order, each block of 1,024 threads its
// share (hierarchicalShuffleNumBlocks, collectives.cc:161 of RCCL 2.30.4).
func (r *Running) shuffled(bytes int64) units.Time {
	blocks := int64(32)
	switch {
	case bytes <= 64<<10:
		blocks = 8
	case bytes <= 16<<20:
		blocks = 16
	}
	class := r.Site.Class()
	return units.FromMicros(class.LocalCopy(bytes, blocks, 1024))
}

// plan plans the operation of each communicator.
func (h *hierarchy) plan() error {
	for i := range h.program.Comms {
		part, err := h.machine.Part(h.program.Comms[i].Ranks)
		if err != nil {
			return err
		}
		call := &h.program.Calls[i]
		p, _, err := part.Comm.Plan(comm.Op{Func: call.Func, Count: call.Count, Type: call.Type})
		if err != nil {
			return err
		}
		h.plans = append(h.plans, p)
	}
	return nil
}

// prove proves the plans. That both together gather all follows from the order of their ranks: local rank l
// has the blocks of all nodes' rank l, node by node, and of all local ranks these are all blocks.
func (r *Running) proveHierarchy(o Operation, out *Outcome) error {
	for _, p := range out.hierarchy.plans {
		one := Outcome{Plan: p}
		if err := r.prove(o, &one); err != nil {
			return err
		}
		if out.Checked = one.Checked; !one.Checked {
			out.NotProved = one.NotProved
			return nil
		}
	}
	return nil
}

// simulate runs both operations of all ranks, and adds the kernel.
func (h *hierarchy) simulate(ctx context.Context, o Outcome, sink trace.Sink) (Outcome, error) {
	if sink != trace.Discard {
		return Outcome{}, &exec.NotImplementedError{Feature: "a trace of AllGather by " + tuning.Hierarchical,
			Missing: "it is two operations of other communicators; RCCL_HIERARCHICAL_ALLGATHER=0 leaves it " +
				"out"}
	}
	res, err := h.machine.Run(ctx, h.program, job.Options{})
	if err != nil {
		return Outcome{}, err
	}
	o.Result = exec.Result{Wrong: -1, Links: res.Links, Account: exec.Account{Method: exec.Folded}}
	for _, t := range res.Finish {
		o.Result.Finish = append(o.Result.Finish, t+h.shuffle)
		o.Result.Elapsed = max(o.Result.Elapsed, t+h.shuffle)
	}
	return o, nil
}
