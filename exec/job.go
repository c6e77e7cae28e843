package exec

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/workload"
)

// Job is a workload with the plan of each of its calls: what an Executor runs.
// The Program says who calls what and when; the plans say how a call moves data.
type Job struct {
	Program *workload.Program
	// Plans are the plans of Program.Calls, by index.
	Plans []*plan.Plan
}

// ErrNoPlan: a Job that has a call without a plan, or no call.
var ErrNoPlan = errors.New("a job needs a program, and a plan for each of its calls")

// One is the job of a single operation: the smallest workload.
func One(p *plan.Plan) Job {
	if p == nil {
		return Job{}
	}
	r := &p.Req
	call := workload.Call{Func: r.Func, Type: r.Type, RedOp: r.Op, Count: r.Count, Root: r.Root,
		InPlace: r.InPlace}
	return Job{Program: workload.One(p.Comm.NRanks, call), Plans: []*plan.Plan{p}}
}

// Single returns the plan of a job that is a single operation of one communicator
// on one stream. Any other job is a NotImplementedError that names executor, whose
// caller it is; a job without plans is ErrNoPlan.
func (j *Job) Single(executor string) (*plan.Plan, error) {
	if j.Program == nil || len(j.Plans) != len(j.Program.Calls) || len(j.Plans) == 0 || j.Plans[0] == nil {
		return nil, ErrNoPlan
	}
	if _, ok := j.Program.Single(); !ok {
		return nil, &NotImplementedError{Feature: fmt.Sprintf("%s: a job of %d calls on %d communicators",
			executor, len(j.Program.Calls), len(j.Program.Comms)),
			Missing: "several operations in one run; give each a job of its own (exec.One)"}
	}
	if n := j.Plans[0].Comm.NRanks; n != j.Program.Ranks() {
		return nil, fmt.Errorf("%w: the program has %d ranks and the plan %d", ErrNoPlan, j.Program.Ranks(),
			n)
	}
	return j.Plans[0], nil
}
