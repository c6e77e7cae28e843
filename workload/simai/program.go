package simai

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Options supplies what the file does not state.
type Options struct {
	// Ranks is the number of GPUs instead of the file's; data parallel groups grow or
	// shrink with it. 0 is the file's, or a machine of 8.
	Ranks int
}

// maxSteps is the largest number of steps of a program; each rank has its own list, because its groups
// differ. usualSteps is the limit if no number of ranks was given.
const (
	maxSteps   = 40_000_000
	usualSteps = 5_000_000
	stepsOfRow = 6
)

// fewer returns the largest number of ranks, with smaller data parallel groups, whose program has at most
// usualSteps steps and whose ranks the expert parallel groups still divide. It returns ranks if their program
// is small enough, or if no smaller number fits.
func (f *File) fewer(ranks int) int {
	if max(f.Tensor, f.Pipeline, f.Expert) > 1<<20 {
		return ranks
	}
	unit := max(f.Tensor, 1) * max(f.Pipeline, 1) * max(f.Expert, 1)
	if unit > ranks || ranks%unit != 0 || ranks*len(f.Rows)*stepsOfRow <= usualSteps {
		return ranks
	}
	for n := ranks / unit; n > 0; n-- {
		if ranks/unit%n == 0 && unit*n*len(f.Rows)*stepsOfRow <= usualSteps {
			return unit * n
		}
	}
	return ranks
}

// operation returns the collective of a word and the family of groups that it is on.
func operation(word string, weight bool) (coll.Func, groupKind, error) {
	base, family := word, Tensor
	if weight {
		family = Data
	}
	if w, ok := strings.CutSuffix(word, "_DP_EP"); ok {
		base, family = w, DataExpert
	} else if w, ok := strings.CutSuffix(word, "_EP"); ok {
		base, family = w, Expert
	}
	switch base {
	case "NONE":
		return coll.NumFuncs, family, nil
	case "ALLREDUCE", "ALLREDUCEALLTOALL": // SimAI tests for the prefix
		return coll.AllReduce, family, nil
	case "ALLGATHER":
		return coll.AllGather, family, nil
	case "REDUCESCATTER":
		return coll.ReduceScatter, family, nil
	case "ALLTOALL":
		return coll.AllToAll, family, nil
	case "BROADCAST":
		return coll.Broadcast, family, nil
	}
	return 0, 0, errors.New("write NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL or BROADCAST, with " +
		"_EP or _DP_EP for groups of experts")
}

// Program converts a file to a program: on every rank a forward pass of the rows in order, then a backward
// pass in reverse order. Notes of the file name what could not be converted.
func (f *File) Program(o Options) (*workload.Program, error) {
	ranks := cmp.Or(o.Ranks, f.GPUs)
	if ranks == 0 {
		ranks = max(8, f.Tensor)
		f.note("the file does not say how many GPUs the job has; %d are assumed (--ranks)", ranks)
	}
	if fewer := f.fewer(ranks); o.Ranks == 0 && fewer < ranks {
		f.note("the file has %d GPUs, the program %d ranks: of all it would have up to %d steps. Data "+
			"parallel groups are smaller in proportion, others are the file's; --ranks takes another number",
			ranks, fewer, ranks*len(f.Rows)*stepsOfRow)
		ranks = fewer
	}
	if n := ranks * len(f.Rows) * stepsOfRow; n > maxSteps {
		return nil, fmt.Errorf("%d ranks of %d rows are up to %d steps, more than %d; give fewer ranks "+
			"with --ranks (data parallel groups shrink)", ranks, len(f.Rows), n, maxSteps)
	}
	p := &workload.Program{Of: make([]int32, ranks)}
	g, err := newGrid(p, ranks, f.Tensor, f.Expert, f.Pipeline)
	if err != nil {
		return nil, err
	}
	if g.Pipeline > 1 {
		f.note("pipeline stages do the same at the same time; SimAI adds a bubble of (%d-1)/(%d·%d) of a "+
			"step by formula, which is not in the program", f.Pipeline, max(f.Micro, 1), max(f.Virtual, 1))
	}
	lost, alone := 0, 0
	for r := range ranks {
		b := builder{g: g, rank: r}
		b.write(f.Rows)
		p.Lists = append(p.Lists, workload.List{Name: fmt.Sprintf("rank%d", r), Steps: b.steps})
		p.Of[r] = int32(r)
		lost, alone = b.broadcasts, b.alone
	}
	if lost > 0 {
		f.note("%d broadcasts were left out, as SimAI does", lost)
	}
	if alone > 0 && o.Ranks == 0 {
		f.note("%d calls of a rank are of groups that have one member among %d ranks and were left out; "+
			"--ranks takes more", alone, ranks)
	}
	p.Works = works(f.Rows)
	return p, nil
}

func (f *File) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(f.Notes, n) {
		f.Notes = append(f.Notes, n)
	}
}

// works returns a Work for the name of each layer.
func works(rows []Row) []workload.Work {
	var out []workload.Work
	for _, r := range rows {
		if !slices.ContainsFunc(out, func(w workload.Work) bool { return w.Name == r.Name }) {
			out = append(out, workload.Work{Name: r.Name})
		}
	}
	return out
}

// builder builds the list of a rank.
type builder struct {
	g          *Grid
	rank       int
	steps      []workload.Step
	open       []int32 // calls of weight gradients that the end waits for
	broadcasts int
	alone      int // calls of groups that have one member
}

func (b *builder) write(rows []Row) {
	work := map[string]int32{}
	for _, r := range rows {
		if work[r.Name] == 0 {
			work[r.Name] = int32(len(work)) + 1
		}
	}
	for i := range rows {
		b.pass(&rows[i].Forward, work[rows[i].Name], false)
	}
	for i := len(rows) - 1; i >= 0; i-- {
		b.pass(&rows[i].Input, work[rows[i].Name], false)
		b.pass(&rows[i].Weight, work[rows[i].Name], true)
	}
	update := units.Time(0)
	for i := range rows {
		update += units.Time(rows[i].Update) * 1000
	}
	b.steps = append(b.steps, workload.Step{Kind: workload.Compute, Time: update, Deps: b.open})
}

// commStream is the stream of the weight gradients' collectives.
const commStream = 1

func (b *builder) pass(p *Pass, work int32, weight bool) {
	last := int32(-1)
	if p.Compute > 0 {
		b.steps = append(b.steps, workload.Step{Kind: workload.Compute, Time: units.Time(p.Compute) * 1000,
			Work: work})
		last = int32(len(b.steps)) - 1
	}
	f, family, err := operation(p.Coll, weight)
	if err != nil || f == coll.NumFuncs || p.Bytes == 0 {
		return
	}
	if b.g.Size(family) < 2 {
		b.alone++
		return
	}
	if f == coll.Broadcast {
		b.broadcasts++
		return
	}
	comm, _ := b.g.Comm(family, b.rank)
	c := workload.Call{Comm: comm, Func: f}
	c.Count, c.Type = elementsOf(f, p.Bytes, b.g.Size(family))
	s := workload.Step{Kind: workload.Issue, Call: b.g.Call(c)}
	if weight {
		s.Stream = commStream
		if last >= 0 {
			s.Deps = []int32{last}
		}
		b.open = append(b.open, int32(len(b.steps)))
	}
	b.steps = append(b.steps, s)
}
