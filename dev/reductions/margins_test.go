package reductions

import (
	"context"
	"testing"

	"github.com/simccl/simccl/units"
)

// held has the pair of a request, whose near time must be within its margin.
func held(t *testing.T, r Request) {
	t.Helper()
	var s Sites
	p, err := s.Compare(context.Background(), r, Within{Time: 20 * units.Second, Memory: 1 << 30})
	if err != nil || p.Skipped != "" {
		t.Fatalf("%s: not compared: %v %s", r, err, p.Skipped)
	}
	if p.Broken() {
		t.Errorf("%s: %.1f us, exactly %.1f: %+.1f %%, margin %.0f %%",
			r, p.Near, p.Exact, 100*p.Off(), 100*p.Margin)
	}
}

// TestNearRingsKeepUnequalChannelsApart: channels whose parts differ in size leave lockstep, and
// share ports and threads otherwise than in it. Treated as one, they were 7 to 10 % too slow.
func TestNearRingsKeepUnequalChannelsApart(t *testing.T) {
	const sockets = " --env NCCL_PROTO=LL --env NCCL_IB_DISABLE=1 --sizes 5000000 --launch graph --fold near"
	held(t, "all_gather --nodes 13"+sockets)
	held(t, "all_gather --nodes 20"+sockets)
}
