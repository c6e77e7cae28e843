package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real/internal/device"
	"github.com/simccl/simccl/units"
)

// plan returns NCCL's plan for the operation on this machine, made now or before.
func (g *gpus) plan(op *device.Case) (*plan.Plan, error) {
	if pl, ok := g.plans[*op]; ok {
		return pl, nil
	}
	if g.model == nil {
		m, err := g.newModel(g.all)
		if err != nil {
			return nil, err
		}
		g.model = m
	}
	pl, _, err := g.model.Plan(op)
	if err != nil {
		return nil, err
	}
	g.plans[*op] = pl
	return pl, nil
}

// picked is the chosen method with the times of all candidates.
type picked struct {
	by    device.Method
	picks []Pick
}

// Pick is a candidate method with its measured time.
type Pick struct {
	Shape    string  `json:"shape"`
	MedianUs float64 `json:"median_us"`
	Measures int     `json:"measures"`
}

// A method is chosen as follows: every one is measured once; those within reach of the fastest are measured
// alternately, until each has rounds measurements; the least median wins. The method of the previous size is
// kept unless another is faster by more than hold.
const (
	reach  = 1.4
	rounds = 5
	hold   = 0.03
)

// pick returns the method for an operation. All processes see the same averaged times, so they all choose the
// same.
func (g *gpus) pick(ctx context.Context, op *device.Case, o device.Options) (picked, error) {
	if c, ok := g.picked[*op]; ok {
		return c, nil
	}
	methods := append(g.session.FreeMethods(op), device.Planned)
	o.Check, o.PerIter, o.Average = 0, false, device.Slowest
	times := make(map[device.Method][]units.Time, len(methods))
	var least units.Time
	var why error
	for round := range rounds {
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
				return picked{}, err
			}
			if times[s] = append(times[s], m.Time); least == 0 || m.Time < least {
				least = m.Time
			}
		}
	}
	if least == 0 && op.Sizes.Count > 0 {
		none := &exec.NotImplementedError{Feature: fmt.Sprintf("--backend cuda of %v, %v, %v", op.Func,
			op.Type, op.Red), Missing: "an algorithm for it"}
		return picked{}, errors.Join(none, why)
	}
	c := judge(methods, times, g.last)
	g.picked[*op], g.last = c, c.by
	return c, nil
}

// judge returns the method with the least median time; last, the method of the previous size, wins unless
// another is faster by more than hold.
func judge(methods []device.Method, times map[device.Method][]units.Time, last device.Method) picked {
	c := picked{by: methods[0]}
	best := units.Time(-1)
	median := func(s device.Method) units.Time {
		t := slices.Sorted(slices.Values(times[s]))
		return t[len(t)/2]
	}
	for _, s := range methods {
		if len(times[s]) == 0 {
			continue
		}
		m := median(s)
		c.picks = append(c.picks, Pick{s.String(), m.Micros(), len(times[s])})
		if best < 0 || m < best {
			best, c.by = m, s
		}
	}
	if len(times[last]) > 1 && float64(median(last)) <= (1+hold)*float64(best) {
		c.by = last
	}
	return c
}
