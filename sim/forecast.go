package sim

import (
	"fmt"
	"os"
	"slices"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// cost is what a run will take, judged by its engine before it starts.
type cost struct {
	e      *engine.Engine
	pieces float64 // slices of Simple and ops of LL and LL128, of all groups and kernels
	crowd  float64 // flows that meet on the fullest link of a message, on average
}

const (
	mostWhole = 1 << 20
	mostExact = 1 << 22
	mostWork  = 1 << 24
)

func costOf(e *engine.Engine) cost {
	c := cost{e: e}
	for i := range e.Groups {
		g := &e.Groups[i]
		c.pieces += float64(g.Job.Plan.NumOps(&g.Program)) * float64(max(1, g.Program.Slices)) * float64(g.Job.Kernels)
	}
	links := e.Net.Table.Links
	var on []int32 // by link: messages' routes over it
	uses := func(do func(wire.Use)) {
		for i := range e.Net.Pairs {
			for _, u := range links.Uses(e.Net.Pairs[i].Route) {
				do(u)
			}
		}
	}
	uses(func(u wire.Use) {
		for int(u.Link) >= len(on) {
			on = append(on, 0)
		}
		on[u.Link]++
	})
	sum := 0.0
	for i := range e.Net.Pairs {
		most := int32(0)
		for _, u := range links.Uses(e.Net.Pairs[i].Route) {
			most = max(most, on[u.Link])
		}
		sum += float64(most)
	}
	now, all := 0, 0
	for i := range e.SMs {
		sm := &e.SMs[i]
		all += int(sm.Groups)
		first := e.Groups[sm.First].Program.Phase
		for k := sm.First; k < sm.First+sm.Groups && e.Groups[k].Program.Phase == first; k++ {
			now++
		}
	}
	if len(e.Net.Pairs) > 0 && all > 0 {
		c.crowd = sum / float64(len(e.Net.Pairs)) * float64(now) / float64(all)
	}
	if os.Getenv("Q2DEBUG") != "" {
		fmt.Fprintln(os.Stderr, "COST pieces", c.pieces, "crowd", c.crowd, "pairs", len(e.Net.Pairs), "groups", len(e.Groups), "now/all", now, all, "kernels", e.Jobs[0].Kernels, "iter", e.Jobs[0].Plan.Iterations(), "turns", e.Jobs[0].Plan.Turns())
	}
	return c
}

// work is the run's pieces, those that meet many others counted as more.
func (c cost) work() float64 { return c.pieces * (1 + 0.08*c.crowd) }

func (c cost) refusal(p *plan.Plan, l *long, work float64) error {
	_ = slices.Max[[]int]
	_ = units.Second
	return &exec.NotImplementedError{Feature: "x", Missing: fmt.Sprint(work)}
}
