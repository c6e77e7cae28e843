package streams

import (
	"errors"
	"fmt"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

func apart(t testing.TB, text string, cost func(*workload.Call) units.Time, buffered units.Bytes) *Result {
	t.Helper()
	p, err := workload.Parse(text, "p")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Apart(p, cost, buffered))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTwoBuckets: DDP of two buckets, by hand. Backward is two computations of 10
// and 10; bucket 1 may go after the first, takes 15, and hides 10 of it; bucket 2
// comes after both; the optimiser waits for both. Rank 1 is 4 late.
func TestTwoBuckets(t *testing.T) {
	const text = `workload 1
ranks 2
comm world *
list a 0
  compute 0 10
  call 1 world all_reduce float sum 100 time=15 after=0
  compute 0 10
  call 1 world all_reduce float sum 100 time=15 after=2
  compute 0 5 after=1,3
list b 1
  compute h0 4
  compute 0 10 after=0
  call 1 world all_reduce float sum 100 time=15 after=1
  compute 0 10
  call 1 world all_reduce float sum 100 time=15 after=3
  compute 0 5 after=2,4
`
	r := apart(t, text, Recorded, 0)
	if s := r.Spans[0]; r.Elapsed() != 49 || s[1].End != 29 || s[1].Begin != 10 || s[4].Begin != 44 {
		t.Errorf("%v: %+v", r.Elapsed(), r.Spans)
	}
	if r = apart(t, text, nil, 0); r.Elapsed() != 29 || r.Spans[0][1].End != 14 {
		t.Errorf("where calls take no time, rank 0 waits for rank 1: %v: %+v", r.Elapsed(), r.Spans)
	}
}

// TestRecordedTimesOfMembers: of a collective the longest time counts, which member's ever begins
// first; the sender of a buffered message takes its own and does not wait, the receiver the longer.
func TestRecordedTimesOfMembers(t *testing.T) {
	for _, late := range []int{0, 1} {
		r := apart(t, fmt.Sprintf(`workload 1
ranks 2
comm world *
list a 0
  compute 0 %d
  call 0 world all_reduce float sum 100 time=15
  call 0 world send float sum 100 peer=1 time=6
list b 1
  compute 0 %d
  call 0 world all_reduce float sum 100 time=20
  compute 0 40
  call 0 world recv float sum 100 peer=0 time=9
`, 3*late, 3-3*late), Recorded, 400)
		if got := fmt.Sprint(r.Spans[0][2].End, r.Spans[1][3].End); got != fmt.Sprint(units.Time(29), units.Time(72)) {
			t.Errorf("rank %d is late: the message ends at %s, want 29 and 72 ps", late, got)
		}
	}
}

// TestPipeline: the bubble of a pipeline of p ranks and m micro-batches whose
// messages take no time is (p-1)/(m+p-1), exactly.
func TestPipeline(t *testing.T) {
	const ranks, micro, each = 4, 6, units.Time(1000)
	r, err := Run(t.Context(), Apart(pipeline(ranks, micro, each), nil, 0))
	if err != nil {
		t.Fatal(err)
	}
	if want := (micro + ranks - 1) * each; r.Elapsed() != want {
		t.Errorf("%d, want %d", r.Elapsed(), want)
	}
}

// TestDeadlock names who waits for whom; one group of the same calls does not hang.
func TestDeadlock(t *testing.T) {
	for group, want := range map[string]string{"": "the job hangs: rank 0 in all_reduce on a (list x, " +
		"step 0) waits for rank 1 in all_reduce on b (list y, step 0); 2 ranks never end", "group": ""} {
		begin, end := "", ""
		if group != "" {
			begin, end = "  group 0\n", "  end 0\n"
		}
		p, err := workload.Parse("workload 1\nranks 2\ncomm a *\ncomm b *\nlist x 0\n"+begin+
			"  call 0 a all_reduce float sum 8\n  call 0 b all_reduce float sum 8\n"+end+"list y 1\n"+begin+
			"  call 0 b all_reduce float sum 8\n  call 0 a all_reduce float sum 8\n"+end, "p")
		if err != nil {
			t.Fatal(err)
		}
		_, err = Run(t.Context(), Apart(p, nil, 0))
		var d *DeadlockError
		if want == "" && err != nil || want != "" && (!errors.As(err, &d) || err.Error() != want) {
			t.Errorf("%q: %v", group, err)
		}
	}
}

// TestDeadlockBehindOthers: the rank that is waited for is named with what it waits in itself, also
// where all that it did before took no time. Kernels of a communicator run one after the other, on
// whatever streams (NCCL 2.28.9, enqueue.cc:1493), so two messages that cross hang unless the
// connection holds them.
func TestDeadlockBehindOthers(t *testing.T) {
	p, err := workload.Parse(`workload 1
ranks 2
comm a *
list x 0
  call 0 a send float sum 8 peer=1
  call 0 a send float sum 8 peer=1
  call 1 a recv float sum 8 peer=1
list y 1
  call 0 a recv float sum 8 peer=0
  call 1 a send float sum 8 peer=0
  call 0 a recv float sum 8 peer=0
`, "p")
	if err != nil {
		t.Fatal(err)
	}
	const want = "the job hangs: rank 0 in send with rank 1 on a (list x, step 1) waits for rank 1 in send " +
		"with rank 0 on a (list y, step 1); 2 ranks never end"
	if _, err = Run(t.Context(), Apart(p, nil, 0)); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err = Run(t.Context(), Apart(p, nil, 32)); err != nil {
		t.Error(err)
	}
}

// pipeline is a forward pass of micro-batches through ranks.
func pipeline(ranks int32, micro int, each units.Time) *workload.Program {
	p := &workload.Program{Comms: []workload.Comm{{Name: "pp"}}}
	call := func(f coll.Func, peer int32) int32 {
		p.Calls = append(p.Calls, workload.Call{Func: f, Type: coll.Float32, Count: 64, Peer: peer})
		return int32(len(p.Calls) - 1)
	}
	for r := range ranks {
		l := workload.List{Name: fmt.Sprint("stage", r)}
		for range micro {
			if r > 0 {
				l.Steps = append(l.Steps, workload.Step{Kind: workload.Issue, Call: call(coll.Recv, r-1)})
			}
			l.Steps = append(l.Steps, workload.Step{Kind: workload.Compute, Time: each})
			if r < ranks-1 {
				at := int32(len(l.Steps) - 1)
				l.Steps = append(l.Steps, workload.Step{Kind: workload.Issue, Call: call(coll.Send, r+1),
					Stream: 1, Deps: []int32{at}})
			}
		}
		p.Lists = append(p.Lists, l)
		p.Of = append(p.Of, r)
	}
	return p
}
