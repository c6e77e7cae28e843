package schedule

import (
	"context"
	"fmt"
	"io"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/schedule"
	"github.com/simccl/simccl/scenario"
)

// Beside is a run by a schedule, and the same run as NCCL chooses.
type Beside struct {
	name      string
	sched     *schedule.Schedule
	run, nccl *scenario.Running
}

// Compare returns the comparison of a run by a schedule file with NCCL's choice for a Spec.
func Compare(
	a *cli.App, r *scenario.Running, spec scenario.Spec, s *schedule.Schedule, name string,
) (*Beside, error) {
	own, err := scenario.On(r.Site, spec, scenario.Options{})
	if err != nil {
		return nil, err
	}
	Warn(a, s, name)
	return &Beside{name: name, sched: s, run: r, nccl: own}, nil
}

// Warn prints a warning if a schedule runs only in place or only out of place, so that both columns of the
// table are the same.
func Warn(a *cli.App, s *schedule.Schedule, name string) {
	if s.InPlace != s.OutOfPlace {
		only := map[bool]string{true: "in place", false: "out of place"}[s.InPlace]
		a.Warn("%s runs %s only; both columns are its time so", name, only)
	}
}

// Planner returns a planner that uses a proved schedule. Sizes that cannot be divided into the schedule's
// chunks use NCCL's plans, as in MSCCL.
func Planner(s *schedule.Schedule, name string) func(*scenario.Site, coll.Func) (scenario.Planner, error) {
	return func(site *scenario.Site, f coll.Func) (scenario.Planner, error) {
		if s.Func != f {
			return nil, fail.Usage("--schedule %s: is a schedule of %s, not of %s",
				name, s.Func.TestName(), f.TestName())
		}
		if n := site.Comm.NRanks; n != len(s.GPUs) {
			return nil, fail.Usage("--schedule %s: is a schedule of %d ranks, the machine has %d; "+
				"choose with --nodes and -g", name, len(s.GPUs), n)
		}
		return func(op comm.Op) (*plan.Plan, error) { return planOf(s, site, op) }, nil
	}
}

// planOf returns the plan of an operation by a schedule, or nil.
func planOf(s *schedule.Schedule, site *scenario.Site, op comm.Op) (*plan.Plan, error) {
	if !cuts(s, op.Count) {
		return nil, nil
	}
	req, err := s.Request(op.Count, op.Type)
	if err != nil {
		return nil, err
	}
	req.Op, req.Root = op.RedOp, op.Root
	if s.InPlace && s.OutOfPlace {
		req.InPlace = op.InPlace
	}
	return s.Plan(site.Comm.Layout, req)
}

// cuts reports whether a schedule supports a count of elements.
func cuts(s *schedule.Schedule, count int64) bool { return count > 0 && count%s.Unit() == 0 }

// Print prints, for each size, the time of NCCL's choice and that of the schedule.
func (b *Beside) Print(ctx context.Context, w io.Writer) error {
	if b == nil {
		return nil
	}
	fmt.Fprintf(w, "#\n# %s beside NCCL's choice, out of place\n# %12s  %10s  %-14s  %10s  %s\n", b.name,
		"bytes", "nccl us", "choice", "us", "of NCCL's")
	for _, l := range b.run.Lines() {
		theirs, err := b.nccl.Drawn(ctx, l.Operation, false, nil)
		if err != nil {
			return err
		}
		choice := theirs.Label()
		if theirs.SendsAndReceives() {
			choice = "send/recv"
		}
		if !cuts(b.sched, l.Count) {
			fmt.Fprintf(w, "# %12d  %10.2f  %-14s  not cut into %d chunks: NCCL's own above\n", l.Shown,
				theirs.Result.Elapsed.Micros(), choice, b.sched.Chunks)
			continue
		}
		ours, err := b.run.Drawn(ctx, l.Operation, false, nil)
		if err != nil {
			return err
		}
		out := ""
		if n := int64(l.Shown); n < b.sched.MinBytes || b.sched.MaxBytes > 0 && n > b.sched.MaxBytes {
			out = "  (outside of the file's minBytes and maxBytes)"
		}
		fmt.Fprintf(w, "# %12d  %10.2f  %-14s  %10.2f  x%.2f%s\n", l.Shown, theirs.Result.Elapsed.Micros(),
			choice, ours.Result.Elapsed.Micros(),
			float64(ours.Result.Elapsed)/float64(max(theirs.Result.Elapsed, 1)), out)
	}
	return nil
}
