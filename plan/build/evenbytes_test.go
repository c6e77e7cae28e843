package build

import (
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/rules"
)

// TestLastGrain: what the chunks of the last iteration of an AllReduce are rounded up
// to, of a ring by LL128 with 20 warps and of NVLS with 16 (enqueue.cc:225 of v2.21.5;
// device/all_reduce.h:33, 385 of v2.22.3, :400 of v2.23.4).
func TestLastGrain(t *testing.T) {
	for release, want := range map[string][2]int64{"2.21.5": {9600, 4096}, "2.22.3": {16, 16},
		"2.23.4": {16, 16384}, "2.30.7": {16, 16384}} {
		r, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		l := &connect.Layout{Rules: r}
		ring := base{comm: l, req: plan.Request{Proto: coll.LL128, Warps: 20}, split: plan.Split{ElemSize: 4}}
		heads := base{comm: l, req: plan.Request{Proto: coll.Simple, Warps: 16},
			split: plan.Split{ElemSize: 4}}
		if got := [2]int64{ring.lastGrain(ringGrain), heads.lastGrain(r.Plan.NVLSGrain)}; got != want {
			t.Errorf("NCCL %s: grains %d, want %d", release, got, want)
		}
	}
}
