package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/internal/session"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// split are the communicators of a machine whose ranks are divided (Machine.Split).
type split struct {
	whole   *comm.Comm
	colours []int // by rank
	groups  []workload.Comm
	part    *session.Part // rank 0's
	mu      sync.Mutex    // of machine's shapes
	machine *session.Machine
}

// errSplit is a text of Machine.Split that cannot be read.
var errSplit = errors.New("not known")

// colour returns what gives a rank its colour, as nccl-tests reads NCCL_TESTS_SPLIT:
// AND, OR, MOD or DIV, or &, |, %, /, and a number (common.cu:1497).
func colour(text string) (func(rank int) int, error) {
	for _, o := range []struct {
		word, sign string
		of         func(rank, n int) int
	}{
		{"AND", "&", func(r, n int) int { return r & n }},
		{"OR", "|", func(r, n int) int { return r | n }},
		{"MOD", "%", func(r, n int) int { return r % n }},
		{"DIV", "/", func(r, n int) int { return r / n }},
	} {
		rest, ok := strings.CutPrefix(strings.ToUpper(text), o.word)
		if !ok {
			rest, ok = strings.CutPrefix(text, o.sign)
		}
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.ToLower(strings.TrimSpace(rest)), 0, 31)
		if err != nil || n == 0 && (o.sign == "%" || o.sign == "/") {
			return nil, errSplit
		}
		return func(rank int) int { return o.of(rank, int(n)) }, nil
	}
	return nil, errSplit
}

// divide makes the communicators of Machine.Split. The Site's own is that of rank 0.
func (m *Site) divide(spec *Spec) error {
	text := spec.Machine.Split
	of, err := colour(text)
	switch {
	case err != nil:
		return &FieldError{Path: "machine.split", Value: text, Problem: err.Error(), Hint: "write AND, OR, MOD or DIV and a number: MOD 8"}
	case spec.Engine.Processes > 0 || spec.Engine.Threads > 1:
		return &FieldError{Path: "machine.split", Value: text, Problem: "a process has one GPU there", Hint: "leave processes and threads out"}
	}
	s := &split{whole: m.Comm}
	members := map[int][]int32{}
	for r := range m.Cluster.NRanks() {
		c := of(r)
		s.colours = append(s.colours, c)
		members[c] = append(members[c], int32(r))
	}
	for _, c := range slices.Sorted(maps.Keys(members)) {
		s.groups = append(s.groups, workload.Comm{Name: fmt.Sprintf("group%d", c), Ranks: members[c]})
	}
	if s.machine, err = m.Session(spec); err != nil {
		return err
	}
	if s.part, err = s.machine.Part(members[s.colours[0]]); err == nil {
		m.split, m.Comm = s, s.part.Comm
	}
	return err
}

// first is the index of rank 0's group.
func (s *split) first() int {
	return slices.IndexFunc(s.groups, func(c workload.Comm) bool { return c.Ranks[0] == 0 })
}

// rounds is how many groups of operations follow each other where communicators are
// compared: the first begins with all of them, as none later does.
const rounds = 4

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
	alone, err := r.rounds(ctx, &m, at, s.groups[s.first():s.first()+1])
	if err != nil {
		return err
	}
	if out.Result.Elapsed += all - alone; out.Result.Elapsed < 1 {
		out.Result.Elapsed = 1
	}
	return nil
}

// rounds is the mean time of an operation over the ranks of some communicators, each of
// which runs its own.
func (r *Running) rounds(ctx context.Context, m *session.Machine, at Operation, groups []workload.Comm) (units.Time, error) {
	n, op := max(r.Spec.Workload.Group, 1), r.Op(at)
	p := &workload.Program{Comms: groups, Lists: []workload.List{{Name: "idle"}}, Of: make([]int32, m.Cluster.NRanks())}
	for i, g := range groups {
		call := workload.Call{Comm: int32(i), Func: r.fn, Type: at.Type, RedOp: at.RedOp, Count: r.counted(at.Count, len(g.Ranks)), Root: min(int32(at.Root), int32(len(g.Ranks)-1)),
			InPlace: at.InPlace, Window: op.Buffers == comm.Windows, Registered: op.Buffers != comm.Plain}
		p.Calls = append(p.Calls, call)
		var steps []workload.Step
		for range rounds {
			if n > 1 {
				steps = append(steps, workload.Step{Kind: workload.GroupStart})
			}
			for range n {
				steps = append(steps, workload.Step{Kind: workload.Issue, Call: int32(i)})
			}
			if n > 1 {
				steps = append(steps, workload.Step{Kind: workload.GroupEnd})
			}
		}
		p.Lists = append(p.Lists, workload.List{Name: g.Name, Steps: steps})
		for _, rank := range g.Ranks {
			p.Of[rank] = int32(i + 1)
		}
	}
	res, err := m.Run(ctx, p, session.Options{})
	if err != nil {
		return 0, err
	}
	sum, ranks := units.Time(0), 0
	for _, g := range groups {
		for _, rank := range g.Ranks {
			sum += res.Finish[rank]
		}
		ranks += len(g.Ranks)
	}
	return sum / units.Time(ranks*rounds*n), nil
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
