package sim

import (
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// TestOperationsFollowNoFasterThanTheirBytes: of two simulated operations, whose edges overlap, the second
// may end sooner after the first than the fullest link carries the bytes of one. Twenty of them take the
// first and 19 times what the link needs.
func TestOperationsFollowNoFasterThanTheirBytes(t *testing.T) {
	p := &plan.Plan{Comm: &connect.Layout{NRanks: 2}, Req: plan.Request{Func: coll.AllReduce,
		Type: coll.Int8}}
	us := units.Microsecond
	for _, c := range []struct {
		last, need, want units.Time // want: from an operation to the next
	}{
		{150 * us, 80 * us, 80 * us}, {150 * us, 20 * us, 50 * us}, {100 * us, 0, 0},
	} {
		load := exec.LinkLoad{Capacity: 1, Bytes: units.Bytes(c.need.Micros() * 1000)}
		x := Executor{cfg: Config{Launch: Graph}}
		r := x.result(p, &tally{kernels: 2, first: 100 * us, last: c.last, links: []exec.LinkLoad{{}, load}})
		if want := (100*us + 19*c.want) / 20; r.Elapsed != want {
			t.Errorf("ends at %v, the fullest link needs %v: %v each, want %v", c.last, c.need, r.Elapsed,
				want)
		}
	}
}
