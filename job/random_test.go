package job_test

import (
	"context"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/workload"
)

// TestRandomJobs: whatever communicators call at once, links carry what the calls
// carry alone, and the calls of a communicator and of a stream keep their order.
func TestRandomJobs(t *testing.T) {
	m, _ := machine(t, "h200x4-4.xml", 1)
	rapid.Check(t, func(t *rapid.T) {
		p := draw.NewProgram(t, draw.Kinds{CallsOnly: true, Most: 1 << 20})
		text, alone := p.String(), p.Alone()
		for _, fidelity := range []job.Fidelity{job.Step, job.Share} {
			opt := job.Options{Fidelity: fidelity}
			all := play(t, m, text, opt)
			checkOrder(t, all)
			sum := map[string]float64{}
			for _, one := range alone {
				add(sum, play(t, m, one, opt).Links)
			}
			got := map[string]float64{}
			add(got, all.Links)
			for name, bytes := range sum {
				// Each operation's bytes are rounded down by themselves.
				if math.Abs(got[name]-bytes) > float64(2*len(alone)) {
					t.Fatalf("%v: %s carried %g bytes, alone %g\n%s", fidelity, name, got[name], bytes,
						text)
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
