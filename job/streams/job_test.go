package streams

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

const us = units.Microsecond

// play runs a text with a cost for every call, which change may alter.
func play(t testing.TB, text string, change func(in *Input)) *Result {
	t.Helper()
	r, err := try(t, text, change)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func try(t testing.TB, text string, change func(in *Input)) (*Result, error) {
	t.Helper()
	p, err := workload.Parse(text, "p")
	if err != nil {
		t.Fatal(err)
	}
	in := &Input{Program: p, Costs: make([]Cost, len(p.Calls))}
	for i := range in.Costs {
		in.Costs[i] = Cost{Time: 10 * us, SMs: 24}
	}
	if change != nil {
		change(in)
	}
	return Run(context.Background(), in)
}

// ends lists when each step of a rank ended, in microseconds.
func ends(r *Result, rank int) string {
	var b strings.Builder
	for _, s := range r.Spans[rank] {
		fmt.Fprintf(&b, "%g ", s.End.Micros())
	}
	return strings.TrimSpace(b.String())
}

// TestStreams: steps of a stream follow each other, streams do not, events and
// dependencies join them, and a rank that is slower by a factor is.
func TestStreams(t *testing.T) {
	const text = `workload 1
ranks 2
comm world *
factor 2 1
list a 0-1
  compute 0 5000000
  record 0 1
  wait 1 1
  call 1 world all_reduce float sum 1024
  compute 0 20000000
  compute h0 1000000
  compute 2 3000000 after=5
  call 1 world all_reduce float sum 1024
  compute 0 1000000 after=7
`
	r := play(t, text, nil)
	if got, want := ends(r, 0), "5 5 5 20 25 1 4 30 31"; got != want {
		t.Errorf("rank 0: %s, want %s", got, want)
	}
	if got, want := ends(r, 1), "10 10 10 20 50 2 8 30 52"; got != want {
		t.Errorf("rank 1: %s, want %s", got, want)
	}
	if r.Operations != 2 || r.Elapsed() != 52*us {
		t.Errorf("%d operations, %v", r.Operations, r.Elapsed())
	}
}

// TestSharing: two communicators that use the same link share it, and take what
// they need where that is less than half.
func TestSharing(t *testing.T) {
	const text = `workload 1
ranks 4
comm a 0-1
comm b 2-3
list a 0-1
  call 0 a all_reduce float sum 1024
list b 2-3
  call 0 b all_reduce float sum 1024
`
	for _, x := range []struct {
		a, b       float64
		endA, endB float64
	}{{1, 1, 20, 20}, {0.5, 0.5, 10, 10}, {0.3, 1, 10, 13}, {0.8, 0.8, 16, 16}} {
		r := play(t, text, func(in *Input) {
			in.Resources = 1
			in.Costs[0].Needs, in.Costs[1].Needs = []Need{{Resource: 0, Share: x.a}},
				[]Need{{Resource: 0, Share: x.b}}
		})
		if a, b := r.Finish[0].Micros(), r.Finish[2].Micros(); a != x.endA || b < x.endB-1e-5 || b > x.endB+
			1e-5 {
			t.Errorf("needs %g and %g: %g and %g us, want %g and %g", x.a, x.b, a, b, x.endA, x.endB)
		}
	}
}

// TestSkew: members that are needed later may begin later, and end on their own.
func TestSkew(t *testing.T) {
	const text = `workload 1
ranks 2
comm world *
list a 0
  call 0 world broadcast float sum 1024 root=0
list b 1
  compute 0 2000000
  call 0 world broadcast float sum 1024 root=0
`
	cost := func(in *Input) {
		in.Costs[0].Ends, in.Costs[0].Slack = []units.Time{6 * us, 10 * us}, []units.Time{0, 4 * us}
	}
	r := play(t, text, cost)
	if a, b := ends(r, 0), ends(r, 1); a != "6" || b != "2 10" {
		t.Errorf("%s and %s", a, b)
	}
	r = play(t, strings.Replace(text, "2000000", "9000000", 1), cost)
	if a, b := ends(r, 0), ends(r, 1); a != "11" || b != "9 15" {
		t.Errorf("%s and %s", a, b)
	}
}

// TestGroups: a group begins when all its streams are there, its messages are one
// kernel, and its streams go on when all of it is through.
func TestGroups(t *testing.T) {
	const text = `workload 1
ranks 2
comm world *
list a 0
  compute 1 4000000
  group 0
  call 0 world send float sum 16 peer=1
  call 1 world recv float sum 16 peer=1
  call 0 world all_reduce float sum 1024
  end 0
  compute 1 1000000
list b 1
  group 0
  call 0 world recv float sum 16 peer=0
  call 0 world send float sum 16 peer=0
  call 0 world all_reduce float sum 1024
  end 0
`
	r := play(t, text, nil)
	if a, b := ends(r, 0), ends(r, 1); a != "4 4 14 14 24 24 25" || b != "0 14 14 24 24" {
		t.Errorf("%s and %s", a, b)
	}
}

// TestSharedResources: kernels of a split that shares its parent's resources run
// one after the other on a GPU, in the order of their launches; without, at once.
func TestSharedResources(t *testing.T) {
	const text = `workload 1
ranks 2
comm world *
comm half 0-1 parent=world share
list a 0-1
  call 0 world all_reduce float sum 1024
  call 1 half all_reduce float sum 1024
`
	if got := ends(play(t, text, nil), 0); got != "10 20" {
		t.Error(got)
	}
	if got := ends(play(t, strings.Replace(text, " share", "", 1), nil), 0); got != "10 10" {
		t.Error(got)
	}
}

// TestSMs: a call waits for SMs until the kernel that fills the GPU ends; then it
// holds its own, also while it waits for a late rank, and compute takes longer.
func TestSMs(t *testing.T) {
	const text = `workload 1
ranks 2
comm world *
work 1 gemm blocks=132 persm=1
work 2 add blocks=13200 persm=1
list a 0
  compute 0 100000000 work=1
  compute 0 100000000 work=2
  call 1 world all_reduce float sum 1024
list b 1
  compute 0 500000000
  call 0 world all_reduce float sum 1024
`
	r := play(t, text, func(in *Input) {
		in.GPUs = []GPU{{SMs: 132, Busy: 0.5, Tail: 80 * us}, {SMs: 132}}
	})
	if s := r.Spans[0][2]; s.Issued != 0 || s.Begin != 100*us {
		t.Errorf("the call began at %v, issued at %v", s.Begin, s.Issued)
	}
	// 100 waves on 108 SMs are 123.
	if got, want := r.Spans[0][1].End.Micros(), 100+123.0; got < want-0.01 || got > want+0.01 {
		t.Errorf("compute beside a call that waits ends at %g us, want %g", got, want)
	}
	if got := r.Finish[0]; got != 510*us {
		t.Errorf("the call ends at %v", got)
	}
}

// TestDeadlocks: two ranks that call on two communicators in opposite order on one
// stream wait for each other, and both are named; on two streams they do not.
func TestDeadlocks(t *testing.T) {
	const text = `workload 1
ranks 2
comm a *
comm b *
list x 0
  call 0 a all_reduce float sum 1024
  call 0 b all_reduce float sum 1024
list y 1
  call 0 b all_reduce float sum 1024
  call 0 a all_reduce float sum 1024
`
	var d *DeadlockError
	if _, err := try(t, text, nil); !errors.As(err, &d) {
		t.Fatal(err)
	}
	const want = "the job hangs: rank 0 in all_reduce on a (list x, step 0) waits for rank 1 in all_reduce " +
		"on b (list y, step 0); 2 ranks never end"
	if d.Error() != want {
		t.Error(d)
	}
	if _, err := try(t, strings.ReplaceAll(text, "call 0 a", "call 1 a"), nil); err != nil {
		t.Error(err)
	}
	// Both do not fit a GPU at once, and each rank begins with another one.
	few := func(in *Input) { in.GPUs = []GPU{{SMs: 32}, {SMs: 32}} }
	if _, err := try(t, strings.ReplaceAll(text, "call 0 a", "call 1 a"), few); !errors.As(err, &d) {
		t.Error(err)
	}
}
