package timeline

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/validate"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/transform"
)

func costOf(c *workload.Call) units.Time { return units.Time(c.Count%10) * ms }

// TestInvariants: dependencies and the order of streams and groups are kept; accounts
// add up; the path has no gap; the job takes at least its path on an ideal network
// and at most everything one behind the other; without a collective, an ideal network
// is no slower; ranks that are renumbered with their places take the same; equal input
// gives equal bytes, and traces are valid.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := draw.NewProgram(rt, draw.Kinds{Most: 9}).String()
		r, err := carryOut(t, text, costOf)
		if err != nil {
			rt.Fatalf("%v\n%s", err, text)
		}
		x := Of(r)
		ordered(rt, r)
		serial := units.Time(0)
		for rank := range r.Program.Of {
			a := x.Account(rank)
			if a.Compute+a.Moving+a.Bubble+a.Host+a.Idle != a.Total {
				rt.Fatalf("rank %d: %+v", rank, a)
			}
			for _, s := range r.Program.Lists[r.Program.Of[rank]].Steps {
				if serial += s.Time; s.Kind == workload.Issue {
					serial += max(costOf(&r.Program.Calls[s.Call]), 1)
				}
			}
		}
		checkPath(t, x, x.Path())
		ideal, err := onCosts(r.Program, func(*workload.Call) units.Time { return 0 })
		if err != nil {
			rt.Fatal(err)
		}
		if e := r.Elapsed(); e < ideal.Elapsed() || e > serial {
			rt.Fatalf("%v, ideal %v, one after the other %v\n%s", e, ideal.Elapsed(), serial, text)
		}
		fewer(rt, r.Program, ideal.Elapsed())
		moved(rt, r)
		var b [2]bytes.Buffer
		for i := range b {
			again, err := carryOut(t, text, costOf)
			if err != nil {
				rt.Fatal(err)
			}
			w := chrome.New(&b[i], chrome.Options{})
			Of(again).Write(w, nil)
			if err := w.Close(); err != nil {
				rt.Fatal(err)
			}
		}
		if !bytes.Equal(b[0].Bytes(), b[1].Bytes()) {
			rt.Fatal("two traces of one job differ")
		}
		if rep, err := validate.Check(&b[0]); err != nil || rep.Errors+rep.Warnings > 0 {
			rt.Fatalf("%v %v\n%s", err, rep.Problems, text)
		}
	})
}

// ordered checks what precedes what.
func ordered(t *rapid.T, r *job.Result) {
	order := map[int32][]int32{} // by communicator: calls as its first member issues them
	for rank := range r.Spans {
		steps := r.Program.Lists[r.Program.Of[rank]].Steps
		last := map[int32]int{}
		mine := map[int32][]int32{}
		for i := range steps {
			s, at := &steps[i], &r.Spans[rank][i]
			if prev, ok := last[s.Stream]; ok && at.Begin < r.Spans[rank][prev].End {
				t.Fatalf("rank %d: step %d begins before step %d of its stream ends", rank, i, prev)
			}
			last[s.Stream] = i
			for _, d := range s.Deps {
				if at.Begin < r.Spans[rank][d].End {
					t.Fatalf("rank %d: step %d begins before step %d ends", rank, i, d)
				}
			}
			if s.Kind == workload.Issue && !message(&r.Program.Calls[s.Call]) {
				c := r.Program.Calls[s.Call].Comm
				mine[c] = append(mine[c], s.Call)
			}
		}
		for c, list := range mine { //lint:sorted each by itself
			if order[c] == nil {
				order[c] = list
			}
			if !slices.Equal(order[c], list) {
				t.Fatalf("rank %d issues %v on communicator %d, another rank %v", rank, list, c, order[c])
			}
		}
	}
}

// fewer removes a collective from all ranks.
func fewer(t *rapid.T, p *workload.Program, ideal units.Time) {
	if len(p.Calls) == 0 {
		return
	}
	call := int32(rapid.IntRange(0, len(p.Calls)-1).Draw(t, "removed"))
	if message(&p.Calls[call]) {
		return
	}
	q := *p
	q.Lists = slices.Clone(p.Lists)
	for i := range q.Lists {
		q.Lists[i].Steps = slices.Clone(p.Lists[i].Steps)
		for k := range q.Lists[i].Steps {
			if s := &q.Lists[i].Steps[k]; s.Kind == workload.Issue && s.Call == call {
				*s = workload.Step{Kind: workload.Compute, Stream: s.Stream, Deps: s.Deps}
			}
		}
	}
	r, err := onCosts(&q, func(*workload.Call) units.Time { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	if r.Elapsed() > ideal {
		t.Fatalf("without call %d an ideal network takes %v, with it %v", call, r.Elapsed(), ideal)
	}
}

// moved renumbers the ranks together with where they are.
func moved(t *rapid.T, r *job.Result) {
	at := rapid.Permutation([]int32{0, 1, 2, 3}).Draw(t, "places")
	q, err := transform.Place(r.Program, at)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Lint(); err != nil {
		t.Fatal(err)
	}
	other, err := onCosts(q, costOf)
	if err != nil {
		t.Fatal(err)
	}
	for rank, place := range at {
		if !slices.Equal(r.Spans[rank], other.Spans[place]) {
			t.Fatalf("rank %d at place %d has other times", rank, place)
		}
	}
}
