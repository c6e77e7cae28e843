package accuracy

import (
	"os"
	"slices"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/study/calibrate"
)

// measured plans every point of some directories of testdata/measured/h200x4.
func measured(t testing.TB, dirs ...string) []calibrate.Point {
	t.Helper()
	points, err := Measured(os.DirFS(golden.Root(t, "testdata", "topos")),
		os.DirFS(golden.Root(t, "testdata", "measured", "h200x4")), dirs...)
	if err != nil {
		t.Fatal(err)
	}
	return points
}

// simulated adds the times of the measured class.
func simulated(t testing.TB, points []calibrate.Point) []Point {
	t.Helper()
	class := gpu.NVSwitch90()
	out, err := Simulate(t.Context(), points, &class)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDefaultAllReduce is the first line drawn: NCCL's own choices on four
// H200, all sizes, within 10 % on average.
func TestDefaultAllReduce(t *testing.T) {
	var s sum
	for _, p := range simulated(t, slices.DeleteFunc(measured(t, "procs"), func(p calibrate.Point) bool {
		return p.Run.File != "procs/pb_default_4.txt" || p.Op.Func != coll.AllReduce
	})) {
		s.add(p.Off())
	}
	if s.n != 28 || s.mean() > 0.10 {
		t.Fatalf("default_4 all_reduce: %d points, mean error %.1f %%, want 28 and at most 10 %%", s.n,
			100*s.mean())
	}
	t.Logf("mean error %.1f %%, max %.1f %%", 100*s.mean(), 100*s.max)
}
