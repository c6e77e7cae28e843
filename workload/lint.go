package workload

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// Problem is something in a Program that no execution could satisfy.
type Problem struct {
	List, Step int    // place; Step is -1 for the list as a whole, List -1 for the program
	Name       string // the list's name
	Text       string // what is wrong and what to write instead
}

// Error states the position and the problem.
func (p *Problem) Error() string {
	switch {
	case p.List < 0:
		return "workload: " + p.Text
	case p.Step < 0:
		return fmt.Sprintf("workload: list %s: %s", p.Name, p.Text)
	}
	return fmt.Sprintf("workload: list %s, step %d: %s", p.Name, p.Step, p.Text)
}

// maxProblems is the largest number of Problems that Lint returns.
const maxProblems = 20

// maxBytes bounds what a call moves, so that sums of it fit into 64 bits.
const maxBytes = 1 << 58

// MaxFactor bounds Program.Factor, and MaxTime every time of a Program.
const (
	MaxFactor = 1e6
	MaxTime   = units.Time(1) << 60
)

// Lint checks that a Program can be executed: indices are in range, ranks of a communicator are distinct,
// groups are balanced, a wait follows the recording of its event, only members call on a communicator, all
// members issue the same sequence of collectives on it, and each send has a receive. The error joins
// *Problems.
//
// Sends and receives may be collectives of a pattern (coll.SendRecv and similar ones), for which equal
// sequences suffice; coll.Send and coll.Recv are compared by pair of ranks.
func (p *Program) Lint() error {
	l := linter{p: p}
	l.comms()
	l.calls()
	l.works()
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
				l.add(-1, -1, "communicator %s has rank %d; the job has ranks 0 to %d", c.Name, r,
					len(l.p.Of)-1)
			case seen[r] == i+1:
				l.add(-1, -1, "communicator %s has rank %d twice", c.Name, r)
			default:
				seen[r] = i + 1
			}
		}
		l.split(i)
	}
}

// split checks a communicator's kind, and that its members are members of its parent.
func (l *linter) split(i int) {
	c := &l.p.Comms[i]
	switch {
	case c.Kind >= numCommKinds:
		l.add(-1, -1, "communicator %s is of kind %d, which is not known", c.Name, c.Kind)
	case c.Parent < 0 || int(c.Parent) > i:
		l.add(-1, -1, "communicator %s has a parent that is not listed before it", c.Name)
	case c.Share && c.Parent == 0:
		l.add(-1, -1, "communicator %s shares its parent's resources and has no parent", c.Name)
	case c.Parent > 0:
		parent := map[int32]bool{}
		for r := range l.p.Comms[c.Parent-1].Ranks {
			parent[l.p.Comms[c.Parent-1].Ranks[r]] = true
		}
		for r := range c.Size(len(l.p.Of)) {
			if rank := c.Rank(int32(r)); l.p.Comms[c.Parent-1].Ranks != nil && !parent[rank] {
				l.add(-1, -1, "communicator %s has rank %d, which its parent %s has not", c.Name, rank,
					l.p.Comms[c.Parent-1].Name)
				return
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
		case !c.Func.Valid() && !message(c.Func) || c.Type.Size() == 0:
			l.add(-1, -1, "call %d has no operation or no data type", i)
		case c.Count < 0:
			l.add(-1, -1, "call %d has a count of %d; it must be at least 0", i, c.Count)
		case c.Count > maxBytes/int64(c.Type.Size())/int64(max(n, 1)):
			l.add(-1, -1,
				"call %d is of %d elements on each of %d ranks; all of them together have at most %d bytes",
				i, c.Count, n, int64(maxBytes))
		case c.Func.Rooted() && (c.Root < 0 || int(c.Root) >= n):
			l.add(-1, -1, "call %d has root %d; the communicator has ranks 0 to %d", i, c.Root, n-1)
		case message(c.Func) && (c.Peer < 0 || int(c.Peer) >= n):
			l.add(-1, -1, "call %d has peer %d; the communicator has ranks 0 to %d", i, c.Peer, n-1)
		case c.Recorded < 0 || c.Recorded > MaxTime:
			l.add(-1, -1, "call %d has a recorded time of %d ps; it must be from 0 to %d", i, c.Recorded,
				MaxTime)
		case c.Splits != nil:
			l.splits(i, n)
		}
	}
}

// splits checks the counts of an alltoall of variable counts.
func (l *linter) splits(i, n int) {
	c := &l.p.Calls[i]
	if c.Func != coll.AllToAll || len(c.Splits) != n {
		l.add(-1, -1,
			"call %d has counts for %d peers; an alltoall of %d ranks has so many, and nothing else has any",
			i, len(c.Splits), n)
		return
	}
	for peer, s := range c.Splits {
		if s < 0 || s > maxBytes/int64(c.Type.Size())/int64(n) {
			l.add(-1, -1, "call %d sends %d elements to rank %d; it must be at least 0, and all of them "+
				"together at most %d bytes", i, s, peer, int64(maxBytes))
			return
		}
	}
}

// works checks the demands of kernels (Works), the slow-down factors of ranks and the marks.
func (l *linter) works() {
	p := l.p
	for i, w := range p.Works {
		if w.FLOPs < 0 || w.Bytes < 0 || w.Extra < 0 || w.Blocks < 0 || w.PerSM < 0 || w.Tiles < 0 ||
			w.Cluster < 0 {
			l.add(-1, -1, "work %d (%s) has a value below 0; 0 is unknown", i, w.Name)
		}
	}
	if p.Factor != nil && len(p.Factor) != len(p.Of) {
		l.add(-1, -1, "there are %d factors for %d ranks", len(p.Factor), len(p.Of))
	}
	for r, f := range p.Factor {
		if !(f > 0 && f <= MaxFactor) { // nor NaN
			l.add(-1, -1, "rank %d has a factor of %g; it must be above 0, at most %g", r, f,
				float64(MaxFactor))
		}
	}
	for _, m := range p.Marks {
		if m.List < 0 || int(m.List) >= len(p.Lists) || m.Step < 0 ||
			int(m.Step) > len(p.Lists[m.List].Steps) {
			l.add(-1, -1, "mark %s is at step %d of list %d, which there is not", m.Name, m.Step, m.List)
		}
	}
}

func (l *linter) list(i int) {
	recorded := map[int32]bool{}
	depth := 0
	for n := range l.p.Lists[i].Steps {
		s := &l.p.Lists[i].Steps[n]
		switch s.Kind {
		case Issue:
			if s.Call < 0 || int(s.Call) >= len(l.p.Calls) {
				l.add(i, n, "call %d of %d", s.Call, len(l.p.Calls))
			}
			if OnHost(s.Stream) {
				l.add(i, n, "a call on a host thread; a call is launched on a stream of the GPU")
			}
		case Compute:
			if s.Time < 0 || s.Time > MaxTime {
				l.add(i, n, "a time of %d ps; it must be at least 0, at most %d", s.Time, MaxTime)
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
		l.stepFields(i, n, s)
		if depth > 0 && s.Kind != Issue && s.Kind != GroupStart && s.Kind != GroupEnd {
			l.add(i, n, "%v inside a group; a group holds calls only", s.Kind)
		}
	}
	if depth > 0 {
		l.add(i, -1, "%d groups are not ended", depth)
	}
}

// stepFields checks the members that steps of every kind have.
func (l *linter) stepFields(i, n int, s *Step) {
	if s.Stream < 0 {
		l.add(i, n, "stream %d; streams are numbered from 0", s.Stream)
	}
	if s.Work < 0 || int(s.Work) > len(l.p.Works) || s.Work > 0 && s.Kind != Compute {
		l.add(i, n, "work %d of %d; only compute has work", s.Work-1, len(l.p.Works))
	}
	if s.Recorded < 0 || s.Recorded > MaxTime {
		l.add(i, n, "recorded at %d ps; it must be from 0 to %d", s.Recorded, MaxTime)
	}
	for _, d := range s.Deps {
		if d < 0 || int(d) >= n {
			l.add(i, n, "waits for step %d; steps wait for earlier ones of their list", d)
			return
		}
	}
}

// message reports whether an operation is one half of a message.
func message(f coll.Func) bool { return f == coll.Send || f == coll.Recv }

// describe formats a call: "all_reduce float 1024 elements".
func describe(c *Call) string {
	s := fmt.Sprintf("%s %s of %d elements", c.Func.TestName(), c.Type.TestName(), c.Count)
	if c.Func.Reduces() && c.RedOp != coll.Sum {
		s += " " + c.RedOp.TestName()
	}
	if c.Func.Rooted() {
		s += fmt.Sprintf(" root %d", c.Root)
	}
	if message(c.Func) {
		s += fmt.Sprintf(" peer %d", c.Peer)
	}
	return s
}
