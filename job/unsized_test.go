package job_test

import (
	"context"
	"testing"

	session "github.com/simccl/simccl/job"
	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/job/timeline"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// TestUnsizedCalls: a kernel of NCCL whose call is not known is communication: of 5 ms of it 3 are beside 3
// of compute, and 2 are exposed.
func TestUnsizedCalls(t *testing.T) {
	p, err := workload.Parse("workload 1\nranks 1\n"+
		"work 1 ncclDevKernel_AllReduce_Sum_f32_RING_LL communication\nwork 2 gemm\nlist a 0\n"+
		"  compute 0 3000000000 work=2\n  compute 1 5000000000 work=1\n", "p")
	if err != nil {
		t.Fatal(err)
	}
	r, err := streams.Run(context.Background(), &streams.Input{Program: p})
	if err != nil {
		t.Fatal(err)
	}
	res := &session.Result{Result: r, Program: p}
	if s := res.Rank(0); s.Compute != 3*units.Millisecond || s.Comm != 5*units.Millisecond ||
		s.Exposed != 2*units.Millisecond {
		t.Errorf("%+v", s)
	}
	line := timeline.Of(res)
	if a := line.Account(0); a.Compute != 3*units.Millisecond || a.Moving != 2*units.Millisecond {
		t.Errorf("%+v", a)
	}
	if shares := line.Shares(line.Path()); len(shares) != 1 || shares[0].Kind != timeline.Unknown {
		t.Errorf("%+v", shares)
	}
	hidden := timeline.Hide(line.Slices(0, 1), line.Computing(0, 0))
	if len(hidden) != 2 || hidden[0].Kind != timeline.Hides || hidden[0].To != 3*units.Millisecond ||
		hidden[1].Kind != timeline.Moves || hidden[1].To != 5*units.Millisecond {
		t.Errorf("%+v", hidden)
	}
}
