package draw

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
)

// Kinds says what a Program has.
type Kinds struct {
	// of communicators, each on a stream of its own; else computations, messages and waits, too
	CallsOnly bool
	Most      int // elements of a call
}

// Program is a random program of four ranks. Ranks issue in the order of one list, so that it never hangs.
type Program struct {
	comms []int // of groups; the first is of all ranks
	lists [4]strings.Builder
	steps [4]int
	calls []call
}

type call struct {
	comm int
	text string
}

// groups are the communicators that a Program may have.
var groups = []struct {
	text  string
	ranks []int
}{{"*", []int{0, 1, 2, 3}}, {"0-1", []int{0, 1}}, {"2-3", []int{2, 3}}, {"0,2", []int{0, 2}},
	{"1,3", []int{1, 3}}, {"0-2", []int{0, 1, 2}}, {"1-3", []int{1, 2, 3}}}

// NewProgram draws a Program.
func NewProgram(t *rapid.T, k Kinds) *Program {
	p := &Program{comms: append([]int{0}, rapid.SliceOfN(rapid.IntRange(0, len(groups)-1), 0, 3).Draw(t,
		"comms")...)}
	add := func(rank int, format string, args ...any) {
		if n := p.steps[rank]; !k.CallsOnly && n > 0 && rapid.Bool().Draw(t, "deps") {
			format += fmt.Sprintf(" after=%d", rapid.IntRange(0, n-1).Draw(t, "dep"))
		}
		fmt.Fprintf(&p.lists[rank], "  "+format+"\n", args...)
		p.steps[rank]++
	}
	rank := rapid.IntRange(0, 3)
	time := rapid.Map(rapid.IntRange(1, 9), func(ms int) int { return ms * 1e9 })
	kind := rapid.IntRange(0, 5)
	if k.CallsOnly {
		kind = rapid.Just(5)
	}
	for range rapid.IntRange(1, 14).Draw(t, "steps") {
		switch kind.Draw(t, "kind") {
		case 0, 1:
			add(rank.Draw(t, "rank"), "compute %d %d", rapid.IntRange(0, 1).Draw(t, "stream"), time.Draw(t,
				"time"))
		case 2:
			add(rank.Draw(t, "rank"), "compute h0 %d", time.Draw(t, "time"))
		case 3:
			from := rank.Draw(t, "from")
			add(from, "call 2 c0 send half sum 64 peer=%d", (from+1)%4)
			add((from+1)%4, "call 2 c0 recv half sum 64 peer=%d", from)
		default:
			f := rapid.SampledFrom([]coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter,
				coll.Broadcast, coll.AllToAll}).Draw(t, "func")
			c := call{comm: rapid.IntRange(0, len(p.comms)-1).Draw(t, "comm"),
				text: fmt.Sprintf("%s half sum %d", f.TestName(), rapid.IntRange(1, k.Most).Draw(t, "count"))}
			stream := c.comm
			if !k.CallsOnly { // which communicators share
				stream = 3 + c.comm%2
			}
			p.calls = append(p.calls, c)
			for _, r := range groups[p.comms[c.comm]].ranks {
				add(r, "call %d c%d %s", stream, c.comm, c.text)
			}
		}
	}
	return p
}

// String is the program as workload.Parse reads it.
func (p *Program) String() string {
	var b strings.Builder
	b.WriteString("workload 1\nranks 4\n")
	for i, g := range p.comms {
		fmt.Fprintf(&b, "comm c%d %s\n", i, groups[g].text)
	}
	for r := range p.lists {
		fmt.Fprintf(&b, "list r%d %d\n%s", r, r, p.lists[r].String())
	}
	return b.String()
}

// Alone are programs of each collective by itself.
func (p *Program) Alone() (out []string) {
	for _, c := range p.calls {
		g := groups[p.comms[c.comm]]
		one := fmt.Sprintf("workload 1\nranks 4\ncomm c0 %s\n", g.text)
		for r := range 4 {
			if one += fmt.Sprintf("list r%d %d\n", r, r); slices.Contains(g.ranks, r) {
				one += "  call 0 c0 " + c.text + "\n"
			}
		}
		out = append(out, one)
	}
	return out
}
