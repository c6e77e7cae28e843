package scenario

import (
	"context"
	"slices"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// TestGroupsAndJobsHaveOnePrice: a group of equal calls takes as long as a row of operations
// that are launched together as they take an intercepted program.
func TestGroupsAndJobsHaveOnePrice(t *testing.T) {
	for _, x := range []struct {
		f     coll.Func
		bytes string
		calls int
	}{{coll.AllReduce, "16K", 2}, {coll.AllReduce, "4M", 3}, {coll.AllGather, "1M", 5},
		{coll.Broadcast, "64K", 2}, {coll.SendRecv, "1M", 3}} {
		s := small(x.f.TestName(), x.bytes)
		s.Workload.Group, s.Engine.Launch, s.Engine.NoProof = x.calls, "graph", true
		r, err := Prepare(s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := r.Site.Session(&s)
		if err != nil {
			t.Fatal(err)
		}
		at := r.Lines()[0].Operation
		row, err := r.Simulate(context.Background(), at, trace.Discard, nccl.Options{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ranks := make([]int32, r.Site.Comm.NRanks)
		for i := range ranks {
			ranks[i] = int32(i)
		}
		call := workload.Call{Func: x.f, Type: at.Type, Count: at.Count, RedOp: at.RedOp}
		price, err := m.Prices().Collectives(context.Background(), ranks, slices.Repeat([]workload.Call{call},
			x.calls))
		if err != nil {
			t.Fatal(err)
		}
		if each := row.Result.Elapsed; each <= 0 || each != price/units.Time(x.calls) {
			t.Errorf("%d times %v of %s: %v each, together %v", x.calls, x.f, x.bytes, each, price)
		}
	}
}
