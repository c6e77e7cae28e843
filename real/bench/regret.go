package bench

import (
	"context"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/real/internal/device"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/units"
)

// regrets holds the measured times of rivals, by operation.
type regrets map[device.Case]map[Rival]units.Time

// contenders lists the rivals of each operation (Of), and all rivals once (All).
type contenders struct {
	All []Rival
	Of  [][]Rival
}

// measureRivals measures every operation of the sweep with every rival, if the column regret is requested:
// one communicator after the other, so that at most one additional is open.
func (r *Run) measureRivals(ctx context.Context) error {
	if !r.spec.wants(func(c *Column) bool { return c.Rivals }) || r.spec.Func.IsP2P() || r.ranks() < 2 {
		return nil
	}
	f, ok := r.back.(Forcer)
	if !ok {
		return team.Refuse("--columns +regret: the backend has no rivals to measure; write --backend nccl")
	}
	ops := r.operations()
	lists, err := team.Gather(r.team, r.contenders(ops)) // all processes follow rank 0's model
	if err != nil {
		return err
	}
	r.rivals = regrets{}
	for _, v := range lists[0].All {
		if err := r.measureRival(ctx, f, v, ops, lists[0].Of); err != nil {
			return err
		}
	}
	return nil
}

// measureRival measures the operations that have a rival, in a communicator that uses only this rival.
func (r *Run) measureRival(ctx context.Context, f Forcer, v Rival, ops []device.Case, of [][]Rival) error {
	back, err := f.Force(ctx, v)
	if err != nil {
		return fmt.Errorf("%v, to compare with: %w", v, err)
	}
	err = r.measureForced(ctx, back, v, ops, of)
	if cerr := back.Close(); err == nil {
		err = cerr
	}
	return err
}

func (r *Run) measureForced(ctx context.Context, back Backend, v Rival, ops []device.Case,
	of [][]Rival) error {
	o := r.spec.Options
	o.Check, o.PerIter = 0, false
	for i, op := range ops {
		if !slices.Contains(of[i], v) {
			continue
		}
		m, err := back.Measure(ctx, &op, o)
		if err != nil {
			return fmt.Errorf("%v of %d elements, to compare with: %w", v, op.Sizes.Count, err)
		}
		if r.rivals[op] == nil {
			r.rivals[op] = map[Rival]units.Time{}
		}
		r.rivals[op][v] = m.Time
	}
	return nil
}

// operations lists the out-of-place operations of the sweep, each once.
func (r *Run) operations() []device.Case {
	var out []device.Case
	for _, p := range r.points {
		if p.op.Sizes.Count > 0 && !slices.Contains(out, p.op) {
			out = append(out, p.op)
		}
	}
	return out
}

// contenders returns the rivals of operations; only rank 0 has a model.
func (r *Run) contenders(ops []device.Case) contenders {
	list := contenders{Of: make([][]Rival, len(ops))}
	if !r.asks {
		return list
	}
	for i := range ops {
		list.Of[i] = r.model.Rivals(&ops[i])
		for _, v := range list.Of[i] {
			if !slices.Contains(list.All, v) {
				list.All = append(list.All, v)
			}
		}
	}
	return list
}

// compare adds to a row the time of NCCL's choice relative to the best rival's.
func (g regrets) compare(op *device.Case, t units.Time, f *Facts) {
	times := g[*op]
	if len(times) == 0 || t <= 0 {
		return
	}
	best := t
	f.Best = "NCCL's choice"
	for _, a := range coll.Algorithms() {
		for _, p := range coll.Protocols() {
			if us, ok := times[Rival{a, p}]; ok && us < best {
				best, f.Best = us, Rival{a, p}.String()
			}
		}
	}
	ratio := float64(t) / float64(best)
	f.Regret = &ratio
}
