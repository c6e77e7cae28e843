package workload

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
)

const folded = `workload 1
ranks 4
gpu H100 type=bfloat16 efficiency=0.6 memory-efficiency=0.8 overhead=2000000
memory parameters=2000 gradients=2000 optimizer=12000 activations=7000
comm tp0 0-1 kind=TP
comm tp1 2-3 kind=TP
comm dp0 0,2 kind=DP
comm dp1 1,3 kind=DP
work 1 gemm flops=1000 bytes=3000 extra=100
work 2 ncclDevKernel_AllReduce communication
list rank* 0-3
  mark step0
  compute 0 900 work=1
  call 1 tp* all_reduce half sum 64 after=0
  compute 0 900 work=1 after=1
  again 1 7
  mark end
  call 2 dp* all_reduce half sum 4096 after=3,8
`

// TestFolded: ranks that do the same on communicators of their own are one list in a text, and steps
// that were there before are a line; both survive, and each rank has its own list and communicators.
func TestFolded(t *testing.T) {
	p, err := Parse(folded, "p")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(folded, p.Format()); diff != "" {
		t.Error(diff)
	}
	if len(p.Lists) != 4 || p.Lists[3].Name != "rank3" || len(p.Lists[3].Steps) != 11 || p.Of[3] != 3 ||
		len(p.Marks) != 8 {
		t.Fatalf("%d lists, %d marks, %+v", len(p.Lists), len(p.Marks), p.Of)
	}
	for rank, want := range [][2]string{{"tp0", "dp0"}, {"tp0", "dp1"}, {"tp1", "dp0"}, {"tp1", "dp1"}} {
		steps := p.Lists[p.Of[rank]].Steps
		if tp, dp := p.Comms[p.Calls[steps[9].Call].Comm].Name,
			p.Comms[p.Calls[steps[10].Call].Comm].Name; tp != want[0] || dp != want[1] {
			t.Errorf("rank %d calls on %s and %s, want %v", rank, tp, dp, want)
		}
		if !cmp.Equal(steps[9].Deps, []int32{8}) || steps[9].Kind != Issue {
			t.Errorf("rank %d: step 9 is %+v", rank, steps[9])
		}
	}
	for _, x := range []struct{ from, to, want string }{
		{"comm tp1 2-3", "comm tp1 2", "list rank, step 1: rank 3 is in no communicator tp*"},
		{"comm tp1 2-3", "comm tp1 1-3", "p:14:10: rank 0 is in no communicator tp*, or a rank is in two"},
		{"list rank* 0-3", "list all 0-3", "p:14:10: no communicator tp*; write comm tp* … before it"},
		{"again 1 7", "again 4 7", "p:16:9: 4 is none of the 3 steps before it"},
		{"again 1 7", "again 1 16777217", "p:16:11: 16777217 steps; write a number from 1 to 16777216"},
		{"again 1 7", "again 1 16777216", "p:16:1: the lists of all ranks have more than 16777216 steps"},
		{"efficiency=0.6", "efficiency=60", "p:3:35: efficiency: 60; write gpu H100"},
		{" type=bfloat16 efficiency=0.6", "", "p:3:1: a roofline has efficiencies"},
		{"optimizer=12000", "moments=12000", "p:4:39: moments=12000 is not known here; write parameters="},
		{"gpu H100", "gpu \"\"", "p:3:5: the GPU has no name"},
	} {
		text := strings.Replace(folded, x.from, x.to, 1)
		if text == folded {
			t.Fatalf("%q is not in the text", x.from)
		}
		if _, err := Parse(text, "p"); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s → %s: %v\nwant %s", x.from, x.to, err, x.want)
		}
	}
}

// TestFoldsWhatIsEqual: random jobs survive their text, whatever of them is folded: groups by name and
// number, a rank in two of a family, lists that differ in one step, steps that are there again.
func TestFoldsWhatIsEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tp, dp := rapid.IntRange(1, 3).Draw(t, "tp"), rapid.IntRange(1, 4).Draw(t, "dp")
		p := &Program{}
		for r := range tp * dp {
			p.Of = append(p.Of, int32(r))
		}
		family := func(name string, of func(r int) int) (first int32) {
			first = int32(len(p.Comms))
			for r := range p.Of {
				for len(p.Comms) <= int(first)+of(r) {
					p.Comms = append(p.Comms, Comm{Name: fmt.Sprint(name, len(p.Comms)-int(first))})
				}
				c := &p.Comms[int(first)+of(r)]
				c.Ranks = append(c.Ranks, int32(r))
			}
			return first
		}
		a := family("tp", func(r int) int { return r / tp })
		b := family(rapid.SampledFrom([]string{"dp", "x", "tp1"}).Draw(t, "name"), func(r int) int {
			return r % tp
		})
		if rapid.Bool().Draw(t, "star") {
			p.Comms = append(p.Comms, Comm{Name: "tp*", Ranks: []int32{0}})
		}
		block := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 6).Draw(t, "block")
		times := rapid.IntRange(1, 5).Draw(t, "times")
		odd := rapid.IntRange(-1, 2*len(p.Of)).Draw(t, "odd")

		for r := range p.Of {
			var steps []Step
			for range times {
				for _, k := range block {
					s := Step{Kind: Compute, Time: 7}
					if k > 1 {
						comm := a + int32(r/tp)
						if k == 3 {
							comm = b + int32(r%tp)
						}
						s = Step{Kind: Issue, Stream: 1, Call: p.add(comm)}
					}
					if n := len(steps); k%2 == 1 && n > 1 {
						s.Deps = []int32{int32(n - 2), int32(n - 1)}
					}
					steps = append(steps, s)
				}
			}
			if r == odd {
				steps = append(steps, Step{Kind: Compute, Time: 1})
			}
			if rapid.Bool().Draw(t, "mark") {
				p.Marks = append(p.Marks, Mark{int32(r), int32(len(steps) / 2), "half"})
			}
			p.Lists = append(p.Lists, List{fmt.Sprint("rank", r), steps})
		}
		first, err := Parse(p.Format(), "p")
		if err != nil {
			t.Fatalf("%v\n%s", err, p.Format())
		}
		if diff := cmp.Diff(p, first); diff != "" {
			t.Fatalf("%s\n%s", diff, p.Format())
		}
	})
}

// add is the number of an all_reduce on a communicator.
func (p *Program) add(comm int32) int32 {
	for i := range p.Calls {
		if p.Calls[i].Comm == comm {
			return int32(i)
		}
	}
	p.Calls = append(p.Calls, Call{Comm: comm, Func: coll.AllReduce, Type: coll.Float32, Count: 64})
	return int32(len(p.Calls)) - 1
}

// TestTextIsSmall: hundreds of ranks with programs of thousands of steps that repeat are kilobytes, and
// their text is read within the room of their steps.
func TestTextIsSmall(t *testing.T) {
	p := &Program{}
	for g := range 64 {
		c := Comm{Name: fmt.Sprint("tp", g)}
		for r := range 8 {
			c.Ranks = append(c.Ranks, int32(8*g+r))
		}
		p.Comms = append(p.Comms, c)
		p.Calls = append(p.Calls, Call{Comm: int32(g), Func: coll.AllReduce, Type: coll.Float32, Count: 1})
	}
	for r := range 512 {
		var steps []Step
		for i := range int32(2000) {
			s := Step{Kind: Compute, Time: 5}
			if i%3 == 2 {
				s = Step{Kind: Issue, Stream: 1, Call: int32(r / 8), Deps: []int32{i - 1}}
			}
			steps = append(steps, s)
		}
		p.Lists, p.Of = append(p.Lists, List{fmt.Sprint("rank", r), steps}), append(p.Of, int32(r))
	}
	text := p.Format()
	if len(text) > 4096 {
		t.Errorf("%d bytes", len(text))
	}
	again, err := Parse(text, "p")
	if err != nil {
		t.Fatal(err)
	}
	if again.Format() != text || len(again.Lists) != 512 || len(again.Lists[511].Steps) != 2000 ||
		len(again.Calls) != 64 {
		t.Error("another job")
	}
}
