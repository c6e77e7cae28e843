package play

import (
	"errors"
	"fmt"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

func parse(t *testing.T, text string) *workload.Program {
	t.Helper()
	p, err := workload.Parse(text, "p")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestTwoBuckets: DDP of two buckets, by hand. Backward is two computations of 10
// and 10; bucket 1 may go after the first, takes 15, and hides 10 of it; bucket 2
// comes after both; the optimiser waits for both. Rank 1 is 4 late.
func TestTwoBuckets(t *testing.T) {
	p := parse(t, `workload 1
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
`)
	r, err := Play(p, Options{Cost: Recorded})
	if err != nil {
		t.Fatal(err)
	}
	if r.Last != 49 || r.End[0][1] != 29 || r.Start[0][1] != 10 || r.Start[0][4] != 44 {
		t.Errorf("%+v", r)
	}
	if r, err = Play(p, Options{}); err != nil || r.Last != 29 {
		t.Errorf("ideal network: %+v %v", r, err)
	}
}

// TestPipeline: the bubble of a pipeline of p ranks and m micro-batches whose
// messages take no time is (p-1)/(m+p-1), exactly.
func TestPipeline(t *testing.T) {
	const ranks, micro, each = 4, 6, units.Time(1000)
	p := pipeline(ranks, micro, each)
	r, err := Play(p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := (micro + ranks - 1) * each; r.Last != want {
		t.Errorf("%d, want %d", r.Last, want)
	}
}

// TestDeadlock names who waits for what.
func TestDeadlock(t *testing.T) {
	p := parse(t, `workload 1
ranks 2
comm a *
comm b *
list x 0
  call 0 a all_reduce float sum 8
  call 0 b all_reduce float sum 8
list y 1
  call 0 b all_reduce float sum 8
  call 0 a all_reduce float sum 8
`)
	_, err := Play(p, Options{})
	var d *DeadlockError
	if !errors.As(err, &d) || err.Error() != "deadlock: rank 0 waits at step 0 of list x for other ranks "+
		"of a to join all_reduce of 32 bytes; 1 other ranks wait too" {
		t.Error(err)
	}
	p = parse(t, `workload 1
ranks 2
comm a *
comm b *
list x 0
  group 0
  call 0 a all_reduce float sum 8
  call 0 b all_reduce float sum 8
  end 0
list y 1
  group 0
  call 0 b all_reduce float sum 8
  call 0 a all_reduce float sum 8
  end 0
`)
	if _, err := Play(p, Options{}); err != nil {
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
