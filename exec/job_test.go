package exec_test

import (
	"context"
	"errors"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/exec/exectest"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/workload"
)

// TestJobsOfOneOperation: a plan is a job, and what is more than one operation
// is refused by type.
func TestJobsOfOneOperation(t *testing.T) {
	req := plan.Request{Func: coll.AllReduce, Count: 1024, Type: coll.Float32, Algo: coll.Ring,
		Proto: coll.LL, Channels: 1, Warps: 16}
	p, err := build.Plan(exectest.Comm(2, 1, 1), req)
	if err != nil {
		t.Fatal(err)
	}
	one := exec.One(p)
	if err := one.Program.Lint(); err != nil {
		t.Error(err)
	}
	if got, err := one.Single("a test"); err != nil || got != p {
		t.Errorf("%v, %v", got, err)
	}
	two := exec.One(p)
	two.Program.Lists[0].Steps = append(two.Program.Lists[0].Steps, workload.Step{Kind: workload.Compute,
		Time: 5})
	if _, err := (exectest.Reference{}).Run(context.Background(), two, trace.Discard); !errors.Is(err,
		exec.ErrNotImplemented) {
		t.Errorf("two steps: %v", err)
	}
	less := exec.One(p)
	less.Program.Of = less.Program.Of[:1]
	for name, j := range map[string]exec.Job{"empty": {}, "no plan": {Program: one.Program},
		"fewer ranks": less, "nil plan": exec.One(nil)} {
		if _, err := j.Single("a test"); !errors.Is(err, exec.ErrNoPlan) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
