package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	gpubench "github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/real/nccl"
	"github.com/simccl/simccl/units"
)

// contender is an algorithm and protocol that NCCL can be made to take.
type contender struct {
	Algo  coll.Algorithm
	Proto coll.Protocol
}

func (v contender) String() string { return v.Algo.LogName() + "/" + v.Proto.LogName() }

// forcer is a backend that opens another of itself in which NCCL takes nothing
// but a rival. All processes call it alike.
type forcer interface {
	force(ctx context.Context, r *benchRun, v contender) (backend, error)
}

// regrets are measured times of rivals, by operation.
type regrets map[gpubench.Op]map[contender]units.Time

// measureRivals measures every operation of the sweep with every algorithm and
// protocol that NCCL's cost model has a time for, where the column regret is
// wanted: one communicator after the other, so that only one more is open.
func (r *benchRun) measureRivals(ctx context.Context) error {
	if !r.wantsRegret() || r.fn.IsP2P() || r.back.ranks() < 2 {
		return nil
	}
	f, ok := r.back.(forcer)
	if !ok {
		return usage("--columns +%s: --backend %s has no rivals to measure; write --backend nccl", regretColumn, r.flags.backend)
	}
	ops := r.operations()
	lists, err := gather(r.team, r.oracle.rivals(ops)) // all do as rank 0's oracle says
	if err != nil {
		return err
	}
	r.rivals = regrets{}
	for _, v := range lists[0].All {
		back, err := f.force(ctx, r, v)
		if err != nil {
			return fmt.Errorf("%v, to compare with: %w", v, err)
		}
		for i, op := range ops {
			if !slices.Contains(lists[0].Of[i], v) {
				continue
			}
			o := r.options()
			o.Check, o.PerIter = 0, false
			m, _, err := back.measure(ctx, &op, o)
			if err != nil {
				return fmt.Errorf("%v of %d elements, to compare with: %w", v, op.Sizes.Count, err)
			}
			if r.rivals[op] == nil {
				r.rivals[op] = map[contender]units.Time{}
			}
			r.rivals[op][v] = m.Time
		}
		if err := back.close(); err != nil {
			return err
		}
	}
	return nil
}

func (r *benchRun) wantsRegret() bool {
	return slices.ContainsFunc(r.columns, func(c benchColumn) bool { return c.head.Name == regretColumn })
}

// operations lists what the sweep measures out of place.
func (r *benchRun) operations() []gpubench.Op {
	var out []gpubench.Op
	for _, typ := range r.types {
		for _, red := range r.ops {
			for _, root := range r.roots {
				for _, sz := range r.sizes {
					if s := r.counts(sz, typ, r.back.ranks()); s.Count > 0 {
						out = append(out, gpubench.Op{Func: r.fn, Type: typ, Red: red, Root: max(root, 0), Sizes: s})
					}
				}
			}
		}
	}
	return out
}

// contenders says which rivals each operation has.
type contenders struct {
	All []contender
	Of  [][]contender
}

// rivals lists what NCCL's cost model has a time for, without its choice.
func (o *oracle) rivals(ops []gpubench.Op) contenders {
	list := contenders{Of: make([][]contender, len(ops))}
	if o.sweep == nil { // not rank 0
		return list
	}
	for i, op := range ops {
		_, choice, err := o.sweep.m.comm.Request(point{typ: op.Type, op: op.Red, root: op.Root, count: op.Sizes.Count}.operation(op.Func))
		if err != nil {
			continue
		}
		for _, a := range coll.Algorithms() {
			for _, p := range coll.Protocols() {
				v := contender{a, p}
				if choice.Times[a][p] <= 0 || a == choice.Algo && p == choice.Proto {
					continue
				}
				list.Of[i] = append(list.Of[i], v)
				if !slices.Contains(list.All, v) {
					list.All = append(list.All, v)
				}
			}
		}
	}
	return list
}

// regret adds to a row how much longer NCCL's choice took than the best.
func (r *benchRun) regret(op *gpubench.Op, t units.Time, f *benchFacts) {
	times := r.rivals[*op]
	if len(times) == 0 || t <= 0 {
		return
	}
	best := t
	f.Best = "NCCL's choice"
	for _, a := range coll.Algorithms() {
		for _, p := range coll.Protocols() {
			if us, ok := times[contender{a, p}]; ok && us < best {
				best, f.Best = us, contender{a, p}.String()
			}
		}
	}
	ratio := float64(t) / float64(best)
	f.Regret = &ratio
}

// force implements forcer: NCCL reads both variables when a communicator is
// made (graph/tuning.cc:419 and 424).
func (g *gpuBackend) force(ctx context.Context, r *benchRun, v contender) (backend, error) {
	for _, kv := range [][2]string{{"NCCL_ALGO", v.Algo.String()}, {"NCCL_PROTO", v.Proto.String()}} {
		before, set := r.app.getenv(kv[0])
		if err := nccl.Setenv(kv[0], kv[1]); err != nil {
			return nil, err
		}
		defer func() {
			if set {
				_ = nccl.Setenv(kv[0], before)
			} else {
				_ = nccl.Unsetenv(kv[0])
			}
		}()
	}
	s, err := gpubench.Open(ctx, g.cfg)
	if err != nil {
		return nil, err
	}
	return &gpuBackend{session: s, lib: g.lib, driver: g.driver, all: g.all, by: gpubench.NCCL, cfg: g.cfg}, nil
}
