package job_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/workload"
)

// TestRandomJobs: whatever communicators call at once, links carry what the calls
// carry alone, and the calls of a communicator and of a stream keep their order.
func TestRandomJobs(t *testing.T) {
	m, _ := machine(t, "h200x4-4.xml", 1)
	funcs := []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.Broadcast, coll.AllToAll}
	sets := []string{"*", "0-1", "2-3", "0,2", "1,3", "0-2", "1-3"}
	members := [][]int{{0, 1, 2, 3}, {0, 1}, {2, 3}, {0, 2}, {1, 3}, {0, 1, 2}, {1, 2, 3}}
	rapid.Check(t, func(t *rapid.T) {
		comms := rapid.SliceOfN(rapid.IntRange(0, len(sets)-1), 1, 4).Draw(t, "comms")
		var b strings.Builder
		b.WriteString("workload 1\nranks 4\n")
		for i, c := range comms {
			fmt.Fprintf(&b, "comm c%d %s\n", i, sets[c])
		}
		var lists [4]strings.Builder
		n := rapid.IntRange(1, 8).Draw(t, "calls")
		var alone []string
		for range n {
			at := rapid.IntRange(0, len(comms)-1).Draw(t, "comm")
			f := rapid.SampledFrom(funcs).Draw(t, "func")
			count := rapid.IntRange(1, 1<<20).Draw(t, "count")
			call := fmt.Sprintf("c%d %s half sum %d", at, f.TestName(), count)
			one := fmt.Sprintf("workload 1\nranks 4\ncomm c%d %s\n", at, sets[comms[at]])
			for r := range 4 {
				one += fmt.Sprintf("list r%d %d\n", r, r)
				for _, x := range members[comms[at]] {
					if x == r {
						// A stream a communicator, so that no order of ranks can hang.
						fmt.Fprintf(&lists[r], "  call %d %s\n", at, call)
						one += "  call 0 " + call + "\n"
					}
				}
			}
			alone = append(alone, one)
		}
		for r := range lists {
			fmt.Fprintf(&b, "list r%d %d\n%s", r, r, lists[r].String())
		}
		for _, fidelity := range []job.Fidelity{job.Step, job.Share} {
			opt := job.Options{Fidelity: fidelity}
			all := play(t, m, b.String(), opt)
			checkOrder(t, all)
			sum := map[string]float64{}
			for _, one := range alone {
				add(sum, play(t, m, one, opt).Links)
			}
			got := map[string]float64{}
			add(got, all.Links)
			for name, bytes := range sum {
				// Each operation's bytes are rounded down by themselves.
				if math.Abs(got[name]-bytes) > float64(2*n) {
					t.Fatalf("%v: %s carried %g bytes, alone %g\n%s", fidelity, name, got[name], bytes,
						b.String())
				}
			}
			if len(got) != len(sum) {
				t.Fatalf("%v: %d links carried something, alone %d", fidelity, len(got), len(sum))
			}
		}
	})
}

func play(t *rapid.T, m *job.Machine, text string, opt job.Options) *job.Result {
	p, err := workload.Parse(text, "p")
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Run(context.Background(), p, opt)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return r
}

func add(sum map[string]float64, links []exec.LinkLoad) {
	for _, l := range links {
		sum[l.Name] += float64(l.Bytes)
	}
}

func checkOrder(t *rapid.T, r *job.Result) {
	for rank := range r.Spans {
		last := map[int32]int{}
		for i, s := range r.Program.Lists[r.Program.Of[rank]].Steps {
			if s.Kind != workload.Issue {
				continue
			}
			if prev, ok := last[s.Stream]; ok && r.Spans[rank][i].Begin < r.Spans[rank][prev].End {
				t.Fatalf("rank %d: step %d begins at %v, before step %d of its stream ends at %v", rank, i,
					r.Spans[rank][i].Begin, prev, r.Spans[rank][prev].End)
			}
			last[s.Stream] = i
		}
	}
}
