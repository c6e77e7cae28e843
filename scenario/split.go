package scenario

import (
	"context"
	"sync"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// split are the communicators of a machine whose ranks are divided (Machine.Split).
type split struct {
	whole   *comm.Comm
	colours []int // by rank
	groups  []workload.Comm
	first   int        // of groups: rank 0's
	part    *job.Part  // rank 0's
	mu      sync.Mutex // of machine's shapes
	machine *job.Machine
}

// divide makes the communicators of Machine.Split. The Site's own is that of rank 0.
func (m *Site) divide(spec *Spec) error {
	text := spec.Machine.Split
	of, err := splitColour(text)
	switch {
	case err != nil:
		return &FieldError{Path: "machine.split", Value: text, Problem: err.Error(),
			Hint: "write AND, OR, MOD or DIV and a number: MOD 8"}
	case spec.Engine.Processes > 0 || spec.Engine.Threads > 1:
		return &FieldError{Path: "machine.split", Value: text, Problem: "a process has one GPU there",
			Hint: "leave processes and threads out"}
	}
	s := &split{whole: m.Comm}
	s.colours, s.groups, s.first = splitGroups(m.Cluster.NRanks(), of)
	if s.machine, err = m.Session(spec); err != nil {
		return err
	}
	if s.part, err = s.machine.Part(s.groups[s.first].Ranks); err == nil {
		m.split, m.Comm = s, s.part.Comm
	}
	return err
}

// beside adds to an operation of rank 0's communicator what the others do to it that run
// theirs at the same time. nccl-tests averages over the ranks of all.
func (r *Running) beside(ctx context.Context, at Operation, out *Outcome) error {
	s := r.Site.split
	if s == nil || len(s.groups) == 1 || r.Spec.Engine.Fidelity == "alpha" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cfg, err := r.Site.wholeConfig(&r.Spec)
	if err != nil {
		return err
	}
	cfg.Launch = sim.Graph
	m := *s.machine
	m.Sim = cfg
	all, err := r.rounds(ctx, &m, at, s.groups)
	if err != nil {
		return err
	}
	alone, err := r.rounds(ctx, &m, at, s.groups[s.first:s.first+1])
	if err != nil {
		return err
	}
	out.Result.Elapsed = max(1, out.Result.Elapsed+all-alone)
	return nil
}

// rounds is the mean time of an operation over the ranks of some communicators, each of
// which runs its own.
func (r *Running) rounds(ctx context.Context, m *job.Machine, at Operation, groups []workload.Comm) (
	units.Time, error) {
	n, op := max(r.Spec.Workload.Group, 1), r.Op(at)
	calls := make([]workload.Call, len(groups))
	for i, g := range groups {
		calls[i] = workload.Call{Comm: int32(i), Func: r.fn, Type: at.Type, RedOp: at.RedOp,
			Count: r.counted(at.Count, len(g.Ranks)), Root: min(int32(at.Root), int32(len(g.Ranks)-1)),
			InPlace: at.InPlace, Window: op.Buffers == comm.Windows, Registered: op.Buffers != comm.Plain}
	}
	res, err := m.Run(ctx, splitProgram(groups, calls, n, m.Cluster.NRanks()), job.Options{})
	if err != nil {
		return 0, err
	}
	return splitMean(groups, res.Finish, n), nil
}

// counted is the count of a communicator of n ranks where rank 0's has another: sizes are
// of whole buffers.
func (r *Running) counted(count int64, n int) int64 {
	switch r.fn {
	case coll.AllGather, coll.ReduceScatter, coll.AllToAll, coll.Gather, coll.Scatter:
		return count * int64(r.Site.Comm.NRanks) / int64(n)
	}
	return count
}
