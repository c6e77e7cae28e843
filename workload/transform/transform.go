// Package transform changes programs: the host's time, some ranks or steps of them,
// more data parallel replicas, compute times of another GPU (an estimate by the rooflines of both).
// A Variant changes those properties of a recorded training step that can be changed without a new recording:
// the buckets of DDP, whether gradients are reduced at all, the schedule and number of microbatches of a
// pipeline, and how evenly tokens are distributed over experts. Its steps are the recorded ones, moved,
// repeated, omitted or scaled; a change that the recording does not permit is a *VariantError with the
// reason.
//
// A transformation makes a new program; the old one stays as it is.
//
// What it must not know: formats, machines, executors.
package transform

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Error is a change that a program does not allow.
type Error struct{ Problem, Hint string }

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Problem
	}
	return e.Problem + "; " + e.Hint
}

// clone copies a program but for the contents of its steps' dependencies.
func clone(p *workload.Program) *workload.Program {
	q := *p
	q.Comms, q.Calls, q.Works, q.Marks = slices.Clone(p.Comms), slices.Clone(p.Calls), slices.Clone(p.Works),
		slices.Clone(p.Marks)
	q.Of, q.Factor = slices.Clone(p.Of), slices.Clone(p.Factor)
	q.Lists = make([]workload.List, len(p.Lists))
	for i := range p.Lists {
		q.Lists[i] = workload.List{Name: p.Lists[i].Name, Steps: slices.Clone(p.Lists[i].Steps)}
	}
	return &q
}

// Host multiplies the time of host threads: 1 changes nothing, 0 is a host that takes no time. Waits of the
// host are unchanged.
func Host(p *workload.Program, factor float64) (*workload.Program, error) {
	factors := make([]float64, len(p.Lists))
	for i := range factors {
		factors[i] = factor
	}
	return Hosts(p, factors)
}

// Hosts scales the host's compute steps of each list by its factor.
func Hosts(p *workload.Program, factors []float64) (*workload.Program, error) {
	q := clone(p)
	for i := range q.Lists {
		factor := factors[i]
		if !(factor >= 0 && factor <= workload.MaxFactor) {
			return nil, &Error{fmt.Sprintf("a factor of %g for the host", factor),
				fmt.Sprintf("write a number from 0 to %g", float64(workload.MaxFactor))}
		}
		for k := range q.Lists[i].Steps {
			if s := &q.Lists[i].Steps[k]; s.Kind == workload.Compute && workload.OnHost(s.Stream) {
				s.Time = min(units.Time(float64(s.Time)*factor), workload.MaxTime)
			}
		}
	}
	return q, nil
}

// Between keeps, in each list, the steps between the mark named from and the next mark with another name, or
// the mark named to. Marks are the iterations of a recording.
func Between(p *workload.Program, from, to string) (*workload.Program, error) {
	q := clone(p)
	q.Marks = nil
	if p.Model.Micro != [3]int64{} { // two iterations represent one
		q.Model = workload.Trained{}
	}
	for i := range q.Lists {
		first, last := -1, -1
		for _, m := range p.Marks {
			switch {
			case int(m.List) != i:
			case first < 0 && m.Name == from:
				first = int(m.Step)
			case first >= 0 && last < 0 && (to == "" && m.Name != from || to != "" && m.Name == to):
				last = int(m.Step)
			}
		}
		if first < 0 {
			return nil, &Error{fmt.Sprintf("list %s has no mark %q", p.Lists[i].Name, from),
				fmt.Sprintf("its marks are %q", marks(p, i))}
		}
		if last < 0 {
			last = len(p.Lists[i].Steps)
		}
		steps, err := cut(p.Lists[i].Steps, first, last)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", p.Lists[i].Name, err)
		}
		q.Lists[i].Steps = steps
		q.Marks = append(q.Marks, workload.Mark{List: int32(i), Step: 0, Name: from},
			workload.Mark{List: int32(i), Step: int32(len(steps)), Name: "end"})
	}
	return prune(q), nil
}

func marks(p *workload.Program, list int) (names []string) {
	for _, m := range p.Marks {
		if int(m.List) == list {
			names = append(names, m.Name)
		}
	}
	return names
}

// cut returns steps first to last without their dependencies on earlier ones.
func cut(steps []workload.Step, first, last int) ([]workload.Step, error) {
	depth := 0
	for _, s := range steps[:first] {
		switch s.Kind {
		case workload.GroupStart:
			depth++
		case workload.GroupEnd:
			depth--
		}
	}
	if depth != 0 {
		return nil, &Error{"a mark is inside a group of calls", ""}
	}
	recorded := map[int32]bool{}
	keep := make([]bool, last-first)
	for i := range keep {
		s := &steps[first+i]
		if s.Kind == workload.Record {
			recorded[s.Event] = true
		}
		keep[i] = s.Kind != workload.Wait || recorded[s.Event]
	}
	return filter(steps[first:last], int32(first), func(i int) bool { return keep[i] }), nil
}

// filter returns the steps that keep selects and renumbers dependencies, which count from base. A step that
// depended on a dropped step depends on that step's dependencies.
func filter(steps []workload.Step, base int32, keep func(i int) bool) []workload.Step {
	at := make([]int32, len(steps)) // new index; -1 dropped
	through := make([][]int32, len(steps))
	var out []workload.Step
	for i := range steps {
		s := steps[i]
		var deps []int32
		for _, d := range s.Deps {
			switch d -= base; {
			case d < 0:
			case at[d] >= 0:
				deps = append(deps, at[d])
			default:
				deps = append(deps, through[d]...)
			}
		}
		slices.Sort(deps)
		s.Deps = slices.Compact(deps)
		if len(s.Deps) == 0 {
			s.Deps = nil
		}
		if !keep(i) {
			at[i], through[i] = -1, s.Deps
			continue
		}
		at[i] = int32(len(out))
		out = append(out, s)
	}
	return out
}

// prune drops calls that no step issues and communicators without calls.
func prune(p *workload.Program) *workload.Program {
	calls := make([]int32, len(p.Calls))
	for i := range p.Lists {
		for _, s := range p.Lists[i].Steps {
			if s.Kind == workload.Issue {
				calls[s.Call] = 1
			}
		}
	}
	comms := make([]int32, len(p.Comms))
	for i, used := range calls {
		for c := p.Calls[i].Comm; used > 0; c = p.Comms[c].Parent - 1 {
			comms[c] = 1
			if p.Comms[c].Parent == 0 {
				break
			}
		}
	}
	var keptComms []workload.Comm
	for i := range comms {
		if comms[i] > 0 {
			c := p.Comms[i]
			if c.Parent > 0 {
				c.Parent = comms[c.Parent-1] + 1
			}
			comms[i] = int32(len(keptComms))
			keptComms = append(keptComms, c)
		}
	}
	var keptCalls []workload.Call
	for i := range calls {
		if calls[i] > 0 {
			c := p.Calls[i]
			c.Comm = comms[c.Comm]
			calls[i] = int32(len(keptCalls))
			keptCalls = append(keptCalls, c)
		}
	}
	for i := range p.Lists {
		for k := range p.Lists[i].Steps {
			if s := &p.Lists[i].Steps[k]; s.Kind == workload.Issue {
				s.Call = calls[s.Call]
			}
		}
	}
	p.Comms, p.Calls = keptComms, keptCalls
	return p
}

// Ranks extracts some ranks of a job, renumbered in the given order. Communicators keep the selected members.
// Calls on communicators with one selected member, messages to other ranks and calls with another root are
// dropped; dropped is the number of steps that this removes.
func Ranks(p *workload.Program, ranks []int32) (q *workload.Program, dropped int, err error) {
	to := map[int32]int32{}
	for i, r := range ranks {
		if _, twice := to[r]; twice || r < 0 || int(r) >= len(p.Of) {
			return nil, 0, &Error{fmt.Sprintf("rank %d is named twice or is none of the job", r),
				fmt.Sprintf("ranks are from 0 to %d", len(p.Of)-1)}
		}
		to[r] = int32(i)
	}
	if len(ranks) == 0 {
		return nil, 0, &Error{"no ranks stay", "name at least one"}
	}
	q = clone(p)
	q.Of, q.Lists, q.Marks, q.Factor = nil, nil, nil, nil
	q.Model = workload.Trained{}                    // its tokens are those of all ranks
	member := make([]map[int32]int32, len(p.Comms)) // by communicator: old rank in it → new
	for i := range p.Comms {
		member[i] = map[int32]int32{}
		var stay []int32
		for m := range int32(p.Comms[i].Size(len(p.Of))) {
			if r, ok := to[p.Comms[i].Rank(m)]; ok {
				member[i][m] = int32(len(stay))
				stay = append(stay, r)
			}
		}
		if q.Comms[i].Ranks = stay; stay == nil {
			q.Comms[i].Ranks = []int32{}
		}
	}
	removed := make([]bool, len(p.Calls))
	for i := range q.Calls {
		removed[i] = !restrict(&q.Calls[i], member[q.Calls[i].Comm])
	}
	lists := map[int32]int32{}
	for _, r := range ranks {
		old := p.Of[r]
		if _, known := lists[old]; !known {
			lists[old] = int32(len(q.Lists))
			l := p.Lists[old]
			dropped += len(l.Steps)
			l.Steps = filter(l.Steps, 0, func(i int) bool {
				return l.Steps[i].Kind != workload.Issue || !removed[l.Steps[i].Call]
			})
			dropped -= len(l.Steps)
			q.Lists = append(q.Lists, l)
		}
		q.Of = append(q.Of, lists[old])
		if p.Factor != nil {
			q.Factor = append(q.Factor, p.Factor[r])
		}
	}
	return prune(q), dropped, nil
}

// restrict adapts a call to the selected members; it reports whether the call remains.
func restrict(c *workload.Call, member map[int32]int32) bool {
	if c.Func == coll.Send || c.Func == coll.Recv {
		peer, ok := member[c.Peer]
		c.Peer = peer
		return ok
	}
	if len(member) < 2 {
		return false
	}
	if c.Func.Rooted() {
		root, ok := member[c.Root]
		c.Root = root
		if !ok {
			return false
		}
	}
	if c.Splits != nil {
		splits := make([]int64, len(member))
		for old, now := range member { //lint:sorted each goes to its own place
			splits[now] = c.Splits[old]
		}
		c.Splits = splits
	}
	return true
}
