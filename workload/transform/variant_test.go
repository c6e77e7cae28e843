package transform_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/gen"
	"github.com/simccl/simccl/workload/transform"
)

func apply(t *testing.T, p *workload.Program, settings ...string) (*workload.Program, []string) {
	t.Helper()
	spec, err := transform.ParseVariant(settings)
	if err != nil {
		t.Fatal(err)
	}
	before := p.Format()
	q, notes, err := transform.ApplyVariant(p, spec)
	if err != nil {
		t.Fatalf("%q: %v", settings, err)
	}
	if err := q.Lint(); err != nil {
		t.Fatalf("%q: %v\n%s", settings, err, q.Format())
	}
	if p.Format() != before {
		t.Errorf("%q changed the recording", settings)
	}
	return q, notes
}

func elapsed(t *testing.T, p *workload.Program) units.Time {
	t.Helper()
	r, err := streams.Run(t.Context(), streams.Apart(p, nil, 0))
	if err != nil {
		t.Fatal(err)
	}
	return r.Elapsed()
}

// mul is a kernel that copies a gradient into its bucket.
const mul = `"elementwise_kernel<AUnaryFunctor<MulFunctor>>"`

// ddp is a backward pass of four gradients of 1, 3, 2 and 2 MiB in two buckets.
const ddp = `workload 1
ranks 2
comm dp *
work 1 ` + mul + ` blocks=512
work 2 ` + mul + ` blocks=1536
work 3 ` + mul + ` blocks=1024
work 4 gemm blocks=100
list all 0-1
  mark step
  compute h0 5
  compute 7 100 work=4 after=0
  compute 7 10 work=1 after=0
  compute 7 100 work=4 after=0
  compute 7 10 work=2 after=0
  call 9 dp all_reduce bfloat16 sum 2097152 after=0,4
  compute 7 100 work=4 after=0
  compute 7 10 work=3 after=0
  compute 7 100 work=4 after=0
  compute 7 10 work=3 after=0
  call 9 dp all_reduce bfloat16 sum 2097152 after=0,9
  compute 7 500 work=4 after=5,10
  mark end
`

func parse(t *testing.T, text string) *workload.Program {
	t.Helper()
	p, err := workload.Parse(text, "p")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// reductions are the sizes of a rank's all_reduces in MiB, and behind which
// computation each is issued.
func reductions(p *workload.Program, rank int) string {
	var out []string
	computed := 0
	for _, s := range p.Lists[p.Of[rank]].Steps {
		switch {
		case s.Kind == workload.Compute && !workload.OnHost(s.Stream):
			computed++
		case s.Kind == workload.Issue && p.Calls[s.Call].Func == coll.AllReduce:
			out = append(out, fmt.Sprintf("%.3g@%d", float64(p.Calls[s.Call].Bytes())/(1<<20), computed))
		}
	}
	return strings.Join(out, " ")
}

// TestBuckets: a bucket is reduced when the gradient that fills it is ready, which the
// recording shows; what waited for the old ones waits for the new ones.
func TestBuckets(t *testing.T) {
	p := parse(t, ddp)
	for _, c := range []struct {
		settings []string
		want     string
	}{
		{[]string{"bucket=1MB"}, "1@2 3@4 2@6 2@8"},
		{[]string{"bucket=2MB"}, "4@4 2@6 2@8"},
		{[]string{"bucket=4MB"}, "4@4 4@8"},
		{[]string{"bucket=5MB"}, "6@6 2@8"},
		{[]string{"bucket=5MB", "first-bucket=1MB"}, "1@2 5@6 2@8"},
		{[]string{"bucket=1GB"}, "8@8"},
	} {
		q, notes := apply(t, p, c.settings...)
		if got := reductions(q, 0); got != c.want || reductions(q, 1) != c.want || len(notes) > 0 {
			t.Errorf("%q: %s, want %s; notes %q", c.settings, got, c.want, notes)
		}
		steps := q.Lists[0].Steps
		last := steps[len(steps)-1]
		if d := last.Deps; len(d) == 0 || steps[d[len(d)-1]].Kind != workload.Issue || len(q.Marks) != 4 ||
			q.Marks[1].Step != int32(len(steps)) {
			t.Errorf("%q: the optimizer waits for %v; marks %v", c.settings, last.Deps, q.Marks)
		}
	}
	q, _ := apply(t, p, "no-sync")
	if reductions(q, 0) != "" || elapsed(t, q) != 5+4*100+500 {
		t.Errorf("no-sync takes %v:\n%s", elapsed(t, q), q.Format())
	}
	// Where no kernel shows a gradient, pieces become ready evenly over the pass.
	q, notes := apply(t, parse(t, strings.ReplaceAll(ddp, "MulFunctor", "Other")), "bucket=2MB")
	if got := reductions(q, 0); got != "2@2 2@4 2@6 2@8" || len(notes) != 1 {
		t.Errorf("%s, notes %q", got, notes)
	}
}

// small is a job of stages that take equally long.
func small(pp int, m int64, schedule gen.Schedule) gen.Config {
	gpu, _ := gen.Peak("h200", coll.BFloat16)
	times := map[string]units.Time{"optimizer": 0, "embedding": 0, "head": 0, "head_backward_input": 0,
		"head_backward_weight": 0, "embedding_backward_weight": 0}
	return gen.Config{Model: gen.Model{Layers: 8, Hidden: 64, Heads: 8, KVHeads: 8, FFN: 256, Vocab: 128,
		TopK: 1},
		Seq:        32,
		MicroBatch: 1, GlobalBatch: m, Type: coll.BFloat16, GradType: coll.BFloat16,
		TP: 1, PP: pp, Virtual: 1, DP: 1, Bucket: 1, EP: 1, Capacity: 1, CP: 1, Iterations: 2,
		GPU: gpu, Times: times, Schedule: schedule}
}

// pipeline is a made job; with one communicator for both directions, as PyTorch has, or
// with two.
func pipeline(t *testing.T, c gen.Config, comms int) *workload.Program {
	t.Helper()
	j, err := gen.Make(c)
	if err != nil {
		t.Fatal(err)
	}
	p := j.Program()
	for i := range p.Calls {
		p.Calls[i].Comm = min(p.Calls[i].Comm, int32(comms-1))
	}
	p.Comms = p.Comms[:comms]
	return p
}

// TestPipelines: a schedule made of another, and of fewer or more microbatches, takes
// what it takes when it is made so: its rounds of stages.
func TestPipelines(t *testing.T) {
	for _, pp := range []int{2, 4, 8} {
		for _, from := range []gen.Schedule{gen.OneFOneB, gen.GPipe} {
			p := pipeline(t, small(pp, 8, from), 1+pp/4%2)
			round := elapsed(t, pipeline(t, small(pp, 2, gen.GPipe), 1)) - elapsed(t,
				pipeline(t, small(pp, 1, gen.GPipe), 1))
			first := elapsed(t, pipeline(t, small(pp, 1, gen.GPipe), 1))
			for _, to := range []string{"gpipe", "1f1b", ""} {
				for _, m := range []int{0, 1, 2, 5, 8, 12} {
					var settings []string
					if to != "" {
						settings = append(settings, "schedule="+to)
					}
					if m > 0 {
						settings = append(settings, fmt.Sprintf("microbatches=%d", m))
					}
					if settings == nil {
						continue
					}
					q, _ := apply(t, p, settings...)
					n := m
					if m == 0 {
						n = 8
					}
					if got, want := elapsed(t, q), first+units.Time(n-1)*round; got != want {
						t.Errorf("%d stages of %v, %q: %v, want %v", pp, from, settings, got, want)
					}
				}
			}
		}
	}
}

// TestSkew: ranks send what the shares say, receive what the others send, and compute
// in proportion; the busiest rank bounds the iteration.
func TestSkew(t *testing.T) {
	c := small(1, 4, gen.OneFOneB)
	c.DP, c.EP, c.Experts, c.Iterations = 4, 4, 4, 1
	j, err := gen.Make(c)
	if err != nil {
		t.Fatal(err)
	}
	p := j.Program()
	for i := range p.Lists { // long enough that nothing is as short as a kernel can be
		for k := range p.Lists[i].Steps {
			p.Lists[i].Steps[k].Time *= 1000
		}
	}
	q, _ := apply(t, p, "skew=40,30,20,10")
	experts := func(p *workload.Program, rank int) (t units.Time) {
		for _, s := range p.Lists[p.Of[rank]].Steps {
			if s.Kind == workload.Compute && strings.HasPrefix(p.Works[s.Work-1].Name, "expert") {
				t += s.Time
			}
		}
		return t
	}
	for rank, share := range []float64{1.6, 1.2, 0.8, 0.4} {
		if got, want := float64(experts(q, rank)), share*float64(experts(p, rank)); got < 0.99*want ||
			got > 1.01*want {
			t.Errorf("rank %d computes %.0f for experts, want %.0f", rank, got, want)
		}
		var sent []int64
		for _, s := range q.Lists[rank].Steps {
			if s.Kind == workload.Issue && q.Calls[s.Call].Func == coll.AllToAll {
				sent = append(sent, q.Calls[s.Call].Splits...)
			}
		}
		own := int64(share * 32 * 64 / 4)
		if want := []int64{819, 614, 410, 205, own, own, own, own}; !slices.EqualFunc(sent[:8], want,
			func(a, b int64) bool { return a-b < 2 && b-a < 2 }) {
			t.Errorf("rank %d sends %v, want %v", rank, sent[:8], want)
		}
	}
	if a, b := elapsed(t, q)-elapsed(t, p), (experts(p, 0)*6)/10; a < b*99/100 || a > b*101/100 {
		t.Errorf("takes %v longer, want %v", a, b)
	}
	if again, _ := apply(t, q, "skew=1,1,1,1"); elapsed(t, again) < elapsed(t, p)*99/100 ||
		elapsed(t, again) > elapsed(t, p)*101/100 {
		t.Errorf("made even again it takes %v, was %v", elapsed(t, again), elapsed(t, p))
	}
}

// TestRefused: what a recording does not show, and settings that are none, name why.
func TestRefused(t *testing.T) {
	p := parse(t, ddp)
	tensor := parse(t, strings.ReplaceAll(ddp, "comm dp *", "comm dp * kind=TP"))
	pipe := pipeline(t, small(2, 2, gen.OneFOneB), 1)
	for i := range pipe.Works {
		pipe.Works[i].Name = "kernel"
	}
	for _, c := range []struct {
		p       *workload.Program
		setting string
		want    string
	}{
		{tensor, "no-sync", "no all_reduce of gradients"},
		{tensor, "bucket=1MB", "no all_reduce of gradients"},
		{p, "skew=1,2", "no alltoall"},
		{p, "schedule=gpipe", "no sends and receives"},
		{pipe, "schedule=gpipe", "nothing says where the backward pass begins"},
		{p, "bucket=0", "no size"},
		{p, "bucket=x", "no size"},
		{p, "schedule=zb", "no schedule"},
		{p, "microbatches=0", "no number"},
		{p, "skew=1,-2", "no share"},
		{p, "skew=0,0", "no shares"},
		{p, "color=red", "not known"},
		{p, "first-bucket=1MB", "other buckets"},
	} {
		spec, err := transform.ParseVariant([]string{c.setting})
		if err == nil {
			_, _, err = transform.ApplyVariant(c.p, spec)
		}
		var e *transform.VariantError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.setting, err, c.want)
		}
	}
	if _, err := transform.ParseVariant([]string{"bucket=1MB", "no-sync"}); err == nil {
		t.Error("buckets of nothing")
	}
}

// TestTokensOfVariants: another schedule or number of microbatches has other tokens, which nothing says;
// buckets change none.
func TestTokensOfVariants(t *testing.T) {
	p := pipeline(t, small(2, 4, gen.OneFOneB), 1)
	if p.Model.Tokens == 0 || p.Memory.Total() == 0 {
		t.Fatalf("%+v %+v", p.Model, p.Memory)
	}
	for _, setting := range []string{"schedule=gpipe", "microbatches=2"} {
		if q, _ := apply(t, p, setting); q.Model != (workload.Trained{}) || q.Memory.Total() != 0 {
			t.Errorf("%s: %+v", setting, q.Model)
		}
	}
}
