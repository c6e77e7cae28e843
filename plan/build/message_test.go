package build

import (
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
)

// TestMessages: one message between two ranks is a plan that moves its bytes, and
// nothing else; ranks that are none are refused.
func TestMessages(t *testing.T) {
	c := draw.Plain(4, 2, 8)
	for _, m := range [][2]int32{{0, 1}, {1, 0}, {2, 7}, {5, 5}} {
		for _, count := range []int64{1, 1 << 20} {
			p, err := Plan(c, plan.Request{Func: coll.Send, Count: count, Type: coll.Float32, Root: m[0],
				Peer: m[1]})
			if err != nil {
				t.Fatal(err)
			}
			if err := check.Plan(p); err != nil {
				t.Errorf("%v: %v", m, err)
			}
			for r := range int32(8) {
				if n := len(p.Programs(r)); (n > 0) != (r == m[0] || r == m[1]) {
					t.Errorf("message %v: rank %d has %d programs", m, r, n)
				}
			}
		}
	}
	if _, err := Plan(c, plan.Request{Func: coll.Send, Count: 1, Type: coll.Float32, Root: 0,
		Peer: 8}); err == nil {
		t.Error("a message to rank 8 of 8")
	}
}
