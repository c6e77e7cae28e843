package exectest

import (
	"context"
	"errors"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/trace"
)

// TestReferenceConforms: the suite passes on an executor that is right.
func TestReferenceConforms(t *testing.T) {
	Conform(t, []int{1, 3}, func(t *testing.T, nodes int) Subject {
		return Subject{Comm: Comm(4, nodes, 2), Executor: Reference{}, Exact: true, Arrows: true}
	})
}

// TestDataIsWhatItShouldBe moves real numbers of every type and reduction
// through every kernel and compares with element-by-element arithmetic.
func TestDataIsWhatItShouldBe(t *testing.T) {
	plans := 0
	for _, s := range [][3]int{{1, 1, 1}, {2, 1, 2}, {5, 1, 2}, {8, 1, 4}, {2, 3, 2}, {4, 4, 2}} {
		c := Comm(s[0], s[1], s[2])
		for _, r := range Requests(s[1]) {
			for i, typ := range coll.DataTypes() {
				r.Type, r.Op = typ, coll.RedOp(i%int(coll.NumRedOps))
				if !r.Algo.HasLL() && r.Op == coll.Avg {
					r.Op = coll.Sum
				}
				r.Count = []int64{1, 17, 1000, 4001}[i%4]
				r.InPlace, r.Root = i%3 == 1, int32(i%c.NRanks)
				p, err := build.Plan(c, r)
				if err != nil {
					t.Fatal(err)
				}
				d := NewData(p)
				if err := check.Execute[[]byte](p, d); err != nil {
					t.Fatalf("%v %v/%v %v: %v", r.Func, r.Algo, r.Proto, typ, err)
				}
				if n, first := d.Wrong(); n != 0 {
					t.Fatalf("%v ranks %v %v/%v %v %v count %d in place %t: %d wrong: %s", s, r.Func, r.Algo,
						r.Proto, typ, r.Op, r.Count, r.InPlace, n, first)
				}
				plans++
			}
		}
	}
	t.Logf("%d plans moved real numbers", plans)
}

// TestWrongDataIsSeen: the comparison can fail.
func TestWrongDataIsSeen(t *testing.T) {
	p, err := build.Plan(Comm(4, 1, 1), plan.Request{Func: coll.AllReduce, Type: coll.Float32, Count: 100,
		Algo: coll.Ring, Proto: coll.LL, Channels: 1, Warps: 16})
	if err != nil {
		t.Fatal(err)
	}
	d := NewData(p)
	if n, _ := d.Wrong(); n == 0 {
		t.Error("memory that nothing has moved in is right")
	}
	if err := check.Execute[[]byte](p, d); err != nil {
		t.Fatal(err)
	}
	d.Output[2][40] ^= 1
	if n, first := d.Wrong(); n != 1 || first == "" {
		t.Errorf("one element damaged, %d seen: %s", n, first)
	}
}

// TestReferenceRefusesNothing: no plan is an error.
func TestReferenceRefusesNothing(t *testing.T) {
	if _, err := (Reference{}).Run(context.Background(), exec.One(nil), trace.Discard); !errors.Is(err,
		exec.ErrNoPlan) {
		t.Errorf("a job without a plan: %v", err)
	}
}
