package sim

import (
	"context"
	"slices"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/fold"
)

// Where equivalent ranks share their jitter, a run that folds them draws once for each
// class. A run of every rank has the same draws: what folds is found as if it were to be
// run, on links that carry nothing, and each thread group draws from the stream of the
// one that would represent it, exactly or else nearly. So a time depends on the operation, and not on
// whether it was folded, skipped or traced.

// classes are the thread groups of a plan that draw the same.
type classes struct {
	q     *fold.Quotient // nil where each is its own
	e     *engine.Engine
	model *declared
}

// classesOf finds the classes of a plan, which is a part of whole where that is not nil.
func (x *Executor) classesOf(ctx context.Context, p, whole *plan.Plan) (*classes, error) {
	c := &classes{model: &declared{}}
	c.e = engine.New(&engine.Options{Class: &x.class, Systems: x.cfg.Systems, Model: c.model,
		Network: x.cfg.network(), Seed: x.cfg.Seed, Slow: x.cfg.slowness(),
		Kernels: x.cfg.Kernels, Place: x.cfg.Place, Whole: whole, Set: x.cfg.Set,
		Graph: x.cfg.Launch == Graph}, p)
	c.e.Cancelled = ctx.Err
	var err error
	c.q, err = x.quotient(c.e, sameDraws, 1)
	return c, err
}

// like is which thread group each program draws as; nil: each for itself.
func (c *classes) like() func(pr *plan.Program) *engine.Group {
	if c.q == nil {
		return nil
	}
	return c.q.GroupOf
}

// links names the links that a folded run has.
func (c *classes) links() ([]string, error) {
	if c.q == nil {
		if err := c.e.LayAll(c.e.Jobs[0]); err != nil {
			return nil, err
		}
	}
	return c.model.Names(), nil
}

// agree has the parts of a window draw so that they have the same links where they are folded.
func (x *Executor) agree(ctx context.Context, m *method) (*method, error) {
	for m.jitter == equalShare && m.full != nil {
		if same, err := x.foldsSame(ctx, m); err != nil || same {
			return m, err
		}
		m = m.otherwise()
	}
	return m, nil
}

// foldsSame reports whether the parts of a window have the same links where they are folded.
func (x *Executor) foldsSame(ctx context.Context, m *method) (bool, error) {
	var first []string
	for i, p := range []*plan.Plan{m.rest, m.full, m.half} {
		names, err := x.linksOf(ctx, p, m)
		if err != nil {
			return false, err
		}
		if i == 0 {
			first = names
		} else if !slices.Equal(first, names) {
			return false, nil
		}
	}
	return true, nil
}

// linksOf names the links of a part of a window where it is folded.
func (x *Executor) linksOf(ctx context.Context, p *plan.Plan, m *method) ([]string, error) {
	find := func() ([]string, error) {
		c, err := x.classesOf(ctx, p, m.whole)
		if err != nil {
			return nil, err
		}
		return c.links()
	}
	if p.Members() != nil {
		return find()
	}
	return x.windows.links.Get(x.keyOf(p, m), find)
}
