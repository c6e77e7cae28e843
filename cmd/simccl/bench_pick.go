package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	gpubench "github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/units"
)

// planner makes the plans that kernels run, for this machine.
type planner struct {
	run  *benchRun
	comm *comm.Comm
	made map[gpubench.Op]*plan.Plan
}

// plan is what NCCL would do for the operation.
func (p *planner) plan(op *gpubench.Op) (*plan.Plan, error) {
	if pl, ok := p.made[*op]; ok {
		return pl, nil
	}
	if p.comm == nil {
		m, err := p.run.machine()
		if err != nil {
			return nil, err
		}
		p.comm, p.made = m.comm, map[gpubench.Op]*plan.Plan{}
	}
	pl, _, err := p.comm.Plan(comm.Op{Func: op.Func, Count: op.Sizes.Count, Type: op.Type, RedOp: op.Red, Root: int32(op.Root), InPlace: op.InPlace})
	if err != nil {
		return nil, decisionError(err)
	}
	p.made[*op] = pl
	return pl, nil
}

// choice is a picked method with the times that it was picked by.
type choice struct {
	by     gpubench.Method
	rivals []rival
}

// rival is a method that --algo auto measured.
type rival struct {
	Shape    string  `json:"shape"`
	MedianUs float64 `json:"median_us"`
	Measures int     `json:"measures"`
}

// How auto picks: every method once; those within reach of the fastest until
// each has picks measures, in turn; then the least median. The method of the
// size before keeps its place unless another is faster by more than hold.
const (
	reach = 1.4
	picks = 5
	hold  = 0.03
)

// pick finds the method for an operation. All processes see the same averaged
// times, so they pick alike.
func (g *gpuBackend) pick(ctx context.Context, op *gpubench.Op, o gpubench.Options) (choice, error) {
	if c, ok := g.picked[*op]; ok {
		return c, nil
	}
	methods := append(g.session.FreeMethods(op), gpubench.Planned)
	o.Check, o.PerIter, o.Average = 0, false, gpubench.Slowest
	times := make(map[gpubench.Method][]units.Time, len(methods))
	var least units.Time
	var why error
	for round := range picks {
		for _, s := range methods {
			if round > 0 && (len(times[s]) == 0 || float64(times[s][0]) > reach*float64(least)) {
				continue
			}
			m, err := g.run(ctx, op, s, o)
			if errors.Is(err, exec.ErrUnsupported) || errors.Is(err, exec.ErrNotImplemented) {
				why = err
				continue
			}
			if err != nil {
				return choice{}, err
			}
			if times[s] = append(times[s], m.Time); least == 0 || m.Time < least {
				least = m.Time
			}
		}
	}
	if least == 0 && op.Sizes.Count > 0 {
		return choice{}, errors.Join(notYet(fmt.Sprintf("--backend cuda of %v, %v, %v", op.Func, op.Type, op.Red), "an algorithm for it"), why)
	}
	c := judge(methods, times, g.last)
	g.picked[*op], g.last = c, c.by
	return c, nil
}

// judge picks the least median, with the hold of the method before.
func judge(methods []gpubench.Method, times map[gpubench.Method][]units.Time, last gpubench.Method) choice {
	c := choice{by: methods[0]}
	best := units.Time(-1)
	median := func(s gpubench.Method) units.Time {
		t := slices.Sorted(slices.Values(times[s]))
		return t[len(t)/2]
	}
	for _, s := range methods {
		if len(times[s]) == 0 {
			continue
		}
		m := median(s)
		c.rivals = append(c.rivals, rival{s.String(), m.Micros(), len(times[s])})
		if best < 0 || m < best {
			best, c.by = m, s
		}
	}
	if len(times[last]) > 1 && float64(median(last)) <= (1+hold)*float64(best) {
		c.by = last
	}
	return c
}
