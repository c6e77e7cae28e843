package workload

import (
	"math"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
)

// sound is a program of two ranks with one of each thing that Lint looks at.
func sound() *Program {
	return &Program{Of: []int32{0, 1}, Factor: []float64{1, 2},
		Comms: []Comm{{Name: "world"}, {Name: "some", Ranks: []int32{1}, Parent: 1, Share: true}},
		Calls: []Call{{Func: coll.AllReduce, Type: coll.Float32, Count: 8},
			{Func: coll.Broadcast, Type: coll.Float32, Count: 8, Root: 1},
			{Func: coll.AllToAll, Type: coll.Float32, Splits: []int64{1, 2}}},
		Works: []Work{{Name: "w", FLOPs: 1, Bytes: 1, Blocks: 1}},
		Marks: []Mark{{Name: "m", List: 1, Step: 5}},
		Lists: []List{{Name: "a", Steps: steps()}, {Name: "b", Steps: steps()}}}
}

func steps() []Step {
	return []Step{{Kind: Compute, Time: 1, Work: 1}, {Kind: Record, Event: 3},
		{Kind: Wait, Event: 3, Stream: 1},
		{Kind: Issue, Call: 0, Deps: []int32{0, 2}}, {Kind: Issue, Call: 1}}
}

// A change of a sound program, with what is said of it; nothing where it is taken.
type change struct {
	of   string
	set  func(*Program)
	want string
}

func check(t *testing.T, changes []change) {
	t.Helper()
	for _, c := range changes {
		p := sound()
		c.set(p)
		err := p.Lint()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.of, err, c.want)
		}
	}
}

// TestCommunicatorsAndCallsHaveLimits: each number to its limit is taken, and beyond it said.
func TestCommunicatorsAndCallsHaveLimits(t *testing.T) {
	call := func(f func(*Call)) func(*Program) { return func(p *Program) { f(&p.Calls[0]) } }
	const least = maxBytes / 4 / 2 // elements of four bytes on two ranks
	check(t, []change{
		{"nothing", func(*Program) {}, ""},
		{"list 2 of 2", func(p *Program) { p.Of[1] = 2 }, "rank 1 has list 2 of 2"},
		{"list -1", func(p *Program) { p.Of[1] = -1 }, "rank 1 has list -1 of 2"},
		{"no ranks", func(p *Program) { p.Of, p.Factor = nil, nil }, "there are no ranks"},
		{"a communicator of none", func(p *Program) { p.Comms[1].Ranks = []int32{} }, "some has no ranks"},
		{"rank 2 of 2", func(p *Program) { p.Comms[1].Ranks = []int32{2} },
			"some has rank 2; the job has ranks 0 to 1"},
		{"rank -1", func(p *Program) { p.Comms[1].Ranks = []int32{-1} }, "some has rank -1"},
		{"rank 1 twice", func(p *Program) { p.Comms[1].Ranks = []int32{1, 1} }, "some has rank 1 twice"},
		{"both ranks in order and not", func(p *Program) { p.Comms[1].Ranks = []int32{1, 0} }, ""},
		{"another kind", func(p *Program) { p.Comms[1].Kind = numCommKinds }, "which is not known"},
		{"the last kind", func(p *Program) { p.Comms[1].Kind = numCommKinds - 1 }, ""},
		{"a parent below 0", func(p *Program) { p.Comms[1].Parent = -1 }, "not listed before it"},
		{"its own parent", func(p *Program) { p.Comms[1].Parent = 2 }, "not listed before it"},
		{"a share of none", func(p *Program) { p.Comms[1].Parent = 0 }, "has no parent"},
		{"a member that its parent has not", func(p *Program) { p.Comms[0].Ranks = []int32{0} },
			"some has rank 1, which its parent world has not"},
		{"a member that its parent has", func(p *Program) {
			p.Comms = append(p.Comms, Comm{Name: "less", Ranks: []int32{1}, Parent: 2})
		}, ""},
		{"communicator 2 of 2", call(func(c *Call) { c.Comm = 2 }), "call 0 is of communicator 2 of 2"},
		{"communicator -1", call(func(c *Call) { c.Comm = -1 }), "call 0 is of communicator -1 of 2"},
		{"no operation", call(func(c *Call) { c.Func = 99 }), "no operation or no data type"},
		{"no type", call(func(c *Call) { c.Type = 99 }), "no operation or no data type"},
		{"no elements", call(func(c *Call) { c.Count = 0 }), ""},
		{"-1 elements", call(func(c *Call) { c.Count = -1 }), "call 0 has a count of -1"},
		{"the most elements", call(func(c *Call) { c.Count = least }), ""},
		{"more elements", call(func(c *Call) { c.Count = least + 1 }), "at most"},
		{"root 2 of 2", func(p *Program) { p.Calls[1].Root = 2 },
			"call 1 has root 2; the communicator has ranks 0 to 1"},
		{"root -1", func(p *Program) { p.Calls[1].Root = -1 }, "call 1 has root -1"},
		{"recorded for the most", call(func(c *Call) { c.Recorded = MaxTime }), ""},
		{"recorded for more", call(func(c *Call) { c.Recorded = MaxTime + 1 }), "a recorded time"},
		{"recorded below 0", call(func(c *Call) { c.Recorded = -1 }), "a recorded time"},
		{"counts of a reduction", call(func(c *Call) { c.Splits = []int64{1, 1} }), "has counts for 2 peers"},
		{"counts for one peer", func(p *Program) { p.Calls[2].Splits = []int64{1} },
			"has counts for 1 peers"},
		{"no elements for a peer", func(p *Program) { p.Calls[2].Splits[1] = 0 }, ""},
		{"-1 for a peer", func(p *Program) { p.Calls[2].Splits[1] = -1 }, "sends -1 elements to rank 1"},
		{"the most for a peer", func(p *Program) { p.Calls[2].Splits[1] = least }, ""},
		{"more for a peer", func(p *Program) { p.Calls[2].Splits[1] = least + 1 }, "elements to rank 1"},
	})
}

// TestStepsHaveLimits, as do works, factors and marks.
func TestStepsHaveLimits(t *testing.T) {
	step := func(f func(*Step), at int) func(*Program) {
		return func(p *Program) { f(&p.Lists[0].Steps[at]); f(&p.Lists[1].Steps[at]) }
	}
	check(t, []change{
		{"unknown work", func(p *Program) { p.Works[0] = Work{Name: "w"} }, ""},
		{"FLOPs below 0", func(p *Program) { p.Works[0].FLOPs = -1 }, "work 0 (w) has a value below 0"},
		{"bytes below 0", func(p *Program) { p.Works[0].Bytes = -1 }, "work 0 (w) has a value below 0"},
		{"extra below 0", func(p *Program) { p.Works[0].Extra = -1 }, "work 0 (w) has a value below 0"},
		{"blocks below 0", func(p *Program) { p.Works[0].Blocks = -1 }, "work 0 (w) has a value below 0"},
		{"blocks an SM below 0", func(p *Program) { p.Works[0].PerSM = -1 },
			"work 0 (w) has a value below 0"},
		{"tiles below 0", func(p *Program) { p.Works[0].Tiles = -1 }, "work 0 (w) has a value below 0"},
		{"clusters below 0", func(p *Program) { p.Works[0].Cluster = -1 }, "work 0 (w) has a value below 0"},
		{"one factor", func(p *Program) { p.Factor = p.Factor[:1] }, "1 factors for 2 ranks"},
		{"no factors", func(p *Program) { p.Factor = nil }, ""},
		{"the largest factor", func(p *Program) { p.Factor[1] = MaxFactor }, ""},
		{"a larger factor", func(p *Program) { p.Factor[1] = MaxFactor * 1.001 }, "rank 1 has a factor"},
		{"a factor of 0", func(p *Program) { p.Factor[1] = 0 }, "rank 1 has a factor of 0"},
		{"no factor at all", func(p *Program) { p.Factor[1] = math.NaN() }, "rank 1 has a factor of NaN"},
		{"a mark at step 6 of 5", func(p *Program) { p.Marks[0].Step = 6 }, "mark m is at step 6 of list 1"},
		{"a mark at step -1", func(p *Program) { p.Marks[0].Step = -1 }, "mark m is at step -1 of list 1"},
		{"a mark of list 2 of 2", func(p *Program) { p.Marks[0].List = 2 }, "of list 2"},
		{"a mark of list -1", func(p *Program) { p.Marks[0].List = -1 }, "of list -1"},
		{"call 3 of 3", step(func(s *Step) { s.Call = 3 }, 3), "call 3 of 3"},
		{"call -1", step(func(s *Step) { s.Call = -1 }, 3), "call -1 of 3"},
		{"the longest time", step(func(s *Step) { s.Time = MaxTime }, 0), ""},
		{"a longer time", step(func(s *Step) { s.Time = MaxTime + 1 }, 0), "it must be at least 0, at most"},
		{"a time below 0", step(func(s *Step) { s.Time = -1 }, 0), "a time of -1 ps"},
		{"an event that is recorded later", step(func(s *Step) { s.Event = 4 }, 1),
			"waits for event 3, which no earlier step records"},
		{"stream -1", step(func(s *Step) { s.Stream = -1 }, 0), "stream -1; streams are numbered from 0"},
		{"work 1 of 1", step(func(s *Step) { s.Work = 2 }, 0), "work 1 of 1; only compute has work"},
		{"work below 0", step(func(s *Step) { s.Work = -1 }, 0), "only compute has work"},
		{"work of a record", step(func(s *Step) { s.Work = 1 }, 1), "only compute has work"},
		{"recorded at the most", step(func(s *Step) { s.Recorded = MaxTime }, 0), ""},
		{"recorded at more", step(func(s *Step) { s.Recorded = MaxTime + 1 }, 0), "recorded at"},
		{"recorded at less", step(func(s *Step) { s.Recorded = -1 }, 0), "recorded at -1 ps"},
		{"waits for itself", step(func(s *Step) { s.Deps = []int32{3} }, 3), "waits for step 3"},
		{"waits for step -1", step(func(s *Step) { s.Deps = []int32{-1} }, 3), "waits for step -1"},
		{"another kind of step", step(func(s *Step) { s.Kind = 99 }, 0), "a step of kind 99 is not known"},
		{"a group that is not started", step(func(s *Step) { *s = Step{Kind: GroupEnd} }, 0),
			"ends a group that was not started"},
		{"a group that is not ended", step(func(s *Step) { *s = Step{Kind: GroupStart} }, 4),
			"1 groups are not ended"},
		{"a wait in a group", step(func(s *Step) { *s = Step{Kind: GroupStart} }, 1), "inside a group"},
	})
}

// TestProblemsAreBounded: a program of nothing but faults says so many, and no more.
func TestProblemsAreBounded(t *testing.T) {
	p := sound()
	p.Comms[1].Ranks = make([]int32, 10*maxProblems)
	if err := p.Lint(); err == nil || strings.Count(err.Error(), "\n") != maxProblems-1 {
		t.Errorf("%d lines, want %d", strings.Count(err.Error(), "\n")+1, maxProblems)
	}
}
