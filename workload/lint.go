package workload

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/coll"
)

// Problem is something in a Program that no execution could satisfy.
type Problem struct {
	List, Step int    // place; Step is -1 for the list as a whole, List -1 for the program
	Name       string // the list's name
	Text       string // what is wrong and what to write instead
}

// Error names the place and the problem.
func (p *Problem) Error() string {
	switch {
	case p.List < 0:
		return "workload: " + p.Text
	case p.Step < 0:
		return fmt.Sprintf("workload: list %s: %s", p.Name, p.Text)
	}
	return fmt.Sprintf("workload: list %s, step %d: %s", p.Name, p.Step, p.Text)
}

// maxProblems bounds how many Problems Lint lists.
const maxProblems = 20

// Lint checks that a Program can be carried out: indices are in range, ranks of
// a communicator are distinct, groups are balanced, waits are for events that
// were recorded before, only members call on a communicator, and all members of
// one issue the same sequence of collectives on it. The error joins *Problems.
//
// Sends and receives are collectives of a pattern here (coll.SendRecv and its
// similar ones), so that equal sequences are enough.
func (p *Program) Lint() error {
	l := linter{p: p}
	l.comms()
	l.calls()
	for r, i := range p.Of {
		if i < 0 || int(i) >= len(p.Lists) {
			l.add(-1, -1, "rank %d has list %d of %d", r, i, len(p.Lists))
		}
	}
	if len(p.Of) == 0 {
		l.add(-1, -1, "there are no ranks")
	}
	for i := range p.Lists {
		l.list(i)
	}
	if len(l.problems) == 0 {
		l.sequences()
	}
	return errors.Join(l.problems...)
}

type linter struct {
	p        *Program
	problems []error
}

func (l *linter) add(list, step int, format string, args ...any) {
	if len(l.problems) >= maxProblems {
		return
	}
	x := &Problem{List: list, Step: step, Text: fmt.Sprintf(format, args...)}
	if list >= 0 {
		x.Name = l.p.Lists[list].Name
	}
	l.problems = append(l.problems, x)
}

func (l *linter) comms() {
	seen := make([]int, len(l.p.Of)) // comm index + 1 that has the rank
	for i := range l.p.Comms {
		c := &l.p.Comms[i]
		if c.Ranks != nil && len(c.Ranks) == 0 {
			l.add(-1, -1, "communicator %s has no ranks", c.Name)
		}
		for _, r := range c.Ranks {
			switch {
			case r < 0 || int(r) >= len(l.p.Of):
				l.add(-1, -1, "communicator %s has rank %d; the job has ranks 0 to %d", c.Name, r, len(l.p.Of)-1)
			case seen[r] == i+1:
				l.add(-1, -1, "communicator %s has rank %d twice", c.Name, r)
			default:
				seen[r] = i + 1
			}
		}
	}
}

func (l *linter) calls() {
	for i := range l.p.Calls {
		c := &l.p.Calls[i]
		if c.Comm < 0 || int(c.Comm) >= len(l.p.Comms) {
			l.add(-1, -1, "call %d is of communicator %d of %d", i, c.Comm, len(l.p.Comms))
			continue
		}
		n := l.p.Comms[c.Comm].Size(len(l.p.Of))
		switch {
		case c.Func.String() == "" || c.Type.Size() == 0:
			l.add(-1, -1, "call %d has no operation or no data type", i)
		case c.Count < 0:
			l.add(-1, -1, "call %d has a count of %d; it must be at least 0", i, c.Count)
		case c.Func.Rooted() && (c.Root < 0 || int(c.Root) >= n):
			l.add(-1, -1, "call %d has root %d; the communicator has ranks 0 to %d", i, c.Root, n-1)
		}
	}
}

func (l *linter) list(i int) {
	recorded := map[int32]bool{}
	depth := 0
	for n, s := range l.p.Lists[i].Steps {
		switch s.Kind {
		case Issue:
			if s.Call < 0 || int(s.Call) >= len(l.p.Calls) {
				l.add(i, n, "call %d of %d", s.Call, len(l.p.Calls))
			}
		case Compute:
			if s.Time < 0 {
				l.add(i, n, "a time of %d ps; it must be at least 0", s.Time)
			}
		case Record:
			recorded[s.Event] = true
		case Wait:
			if !recorded[s.Event] {
				l.add(i, n, "waits for event %d, which no earlier step records", s.Event)
			}
		case GroupStart:
			depth++
		case GroupEnd:
			if depth--; depth < 0 {
				l.add(i, n, "ends a group that was not started")
				depth = 0
			}
		default:
			l.add(i, n, "a step of kind %d is not known", s.Kind)
		}
		if s.Stream < 0 {
			l.add(i, n, "stream %d; streams are numbered from 0", s.Stream)
		}
		if depth > 0 && s.Kind != Issue && s.Kind != GroupStart && s.Kind != GroupEnd {
			l.add(i, n, "%v inside a group; a group holds calls only", s.Kind)
		}
	}
	if depth > 0 {
		l.add(i, -1, "%d groups are not ended", depth)
	}
}

// sequences compares what the members of each communicator issue on it: each
// list's calls on it in order must be the same.
func (l *linter) sequences() {
	for c := range l.p.Comms {
		ref := int32(-1)
		checked := make([]bool, len(l.p.Lists))
		member := make([]bool, len(l.p.Of))
		for r := range l.p.Comms[c].Size(len(l.p.Of)) {
			rank := int32(r)
			if list := l.p.Comms[c].Ranks; list != nil {
				rank = list[r]
			}
			member[rank] = true
			at := l.p.Of[rank]
			if checked[at] {
				continue
			}
			checked[at] = true
			if ref < 0 {
				ref = at
				continue
			}
			l.same(int32(c), ref, at)
		}
		for r, in := range member {
			if at := l.p.Of[r]; !in && !checked[at] && len(l.issued(int32(c), at)) > 0 {
				checked[at] = true
				l.add(int(at), -1, "rank %d calls on communicator %s and is no member of it", r, l.p.Comms[c].Name)
			} else if !in && checked[at] && len(l.issued(int32(c), at)) > 0 {
				l.add(int(at), -1, "rank %d has the list of a member of communicator %s and is none", r, l.p.Comms[c].Name)
				break
			}
		}
	}
}

// issued lists a list's calls on a communicator.
func (l *linter) issued(c, list int32) []int32 {
	var out []int32
	for _, s := range l.p.Lists[list].Steps {
		if s.Kind == Issue && l.p.Calls[s.Call].Comm == c {
			out = append(out, s.Call)
		}
	}
	return out
}

// same compares two lists' calls on a communicator and names the first that
// differs.
func (l *linter) same(c, a, b int32) {
	x, y := l.issued(c, a), l.issued(c, b)
	name := l.p.Comms[c].Name
	for i := range min(len(x), len(y)) {
		if p, q := l.p.Calls[x[i]], l.p.Calls[y[i]]; p != q {
			l.add(int(b), -1, "call %d on %s is %s, but %s in list %s; the members would wait for each other forever", i, name, describe(&q), describe(&p), l.p.Lists[a].Name)
			return
		}
	}
	if len(x) != len(y) {
		l.add(int(b), -1, "%d calls on %s, but %d in list %s; the members would wait for each other forever", len(y), name, len(x), l.p.Lists[a].Name)
	}
}

// describe names a call: "all_reduce float 1024 elements".
func describe(c *Call) string {
	s := fmt.Sprintf("%s %s of %d elements", c.Func.TestName(), c.Type.TestName(), c.Count)
	if c.Func.Reduces() && c.RedOp != coll.Sum {
		s += " " + c.RedOp.TestName()
	}
	if c.Func.Rooted() {
		s += fmt.Sprintf(" root %d", c.Root)
	}
	return s
}
