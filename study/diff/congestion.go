package diff

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/congestion"
)

// Met is the congestion that messages of one side meet, at the size of an operation
// whose times differ the most.
type Met struct {
	Side string `json:"side"`
	Op   string `json:"op"`
	Size int64  `json:"size"` // as it was asked for
	*congestion.Report
}

// meet determines the congestion on the sides whose network is simulated frame by frame.
func (d *Document) meet(ctx context.Context, sides [2]*Side) error {
	worst := map[string]int{}
	var ops []string
	for i := range d.Times {
		t := &d.Times[i]
		k, ok := worst[t.Op]
		if !ok {
			ops = append(ops, t.Op)
		}
		if t.Ratio > 0 && (!ok || math.Abs(math.Log(t.Ratio)) > math.Abs(math.Log(d.Times[k].Ratio))) {
			worst[t.Op] = i
		}
	}
	for _, op := range ops {
		i, ok := worst[op]
		if !ok || d.Times[i].Ratio == 1 {
			continue
		}
		for _, s := range sides {
			if s.Spec.Network.Model == "" || s.Planner != nil {
				continue
			}
			spec := s.Spec
			spec.Workload = scenario.Workload{Op: named(op),
				Sizes: []string{strconv.FormatInt(int64(d.Times[i].Size), 10)}}
			r, err := congestion.Run(ctx, spec, s.opt)
			if err != nil {
				return &SideError{Name: s.Name, Err: s.restarted(err)}
			}
			if r.Eventful() {
				d.Met = append(d.Met, Met{Side: s.Name, Op: op, Size: int64(d.Times[i].Size), Report: r})
			}
		}
	}
	return nil
}

// metText formats the congestion of both sides.
func (d *Document) metText() string {
	var b strings.Builder
	for i := range d.Met {
		m := &d.Met[i]
		fmt.Fprintf(&b, "\n%s, %s of %d B", m.Side, m.Op, m.Size)
		b.WriteString(strings.TrimPrefix(m.Text(), "\nNetwork"))
	}
	return b.String()
}

// named returns the name of an operation in workloads.
func named(op string) string {
	if f, err := coll.ParseFunc(op); err == nil {
		return f.TestName()
	}
	return op
}
