package replay

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/load"
	"github.com/simccl/simccl/workload/rebuild"
)

// TestReproduced: a recording of which a replay, or else its own times without a machine, misses more than
// 15 % says so first; what is nearer says nothing.
func TestReproduced(t *testing.T) {
	p, err := workload.Parse("workload 1\nranks 1\nlist a 0\n  mark a\n  compute h0 1000000000\n"+
		"  compute 0 1000000000 after=0\n  compute h0 1000000000 after=1\n  mark b\n", "p")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mean       units.Time
		us         float64
		asRecorded bool
		want       string
	}{
		{3 * units.Millisecond, 3000, true, ""}, {3 * units.Millisecond, 2600, true, ""},
		{3 * units.Millisecond, 30, false, ""},
		{10 * units.Millisecond, 3000, true, "the recording is not reproduced, do not compare this job " +
			"with anything: an iteration takes 3.000 ms simulated and took 10.000 (-70.0 %)"},
		{3 * units.Millisecond, 3600, true, "(+20.0 %)"},
		{10 * units.Millisecond, 10000, false,
			"takes 3.000 ms with the recorded times of calls and took 10.000 (-70.0 %)"},
	} {
		took := us(c.mean)
		r := &Report{IterationUs: c.us, RecordedUs: &took, Notes: []string{"another"}}
		r.Reproduced(t.Context(), &load.Job{Program: p, Rebuilt: &rebuild.Result{Steps: []rebuild.Step{{Mean: c.mean}}}},
			c.asRecorded)
		if c.want == "" && len(r.Notes) != 1 || c.want != "" &&
			(len(r.Notes) != 2 || !strings.Contains(r.Notes[0], c.want)) {
			t.Errorf("%+v: %q", c, r.Notes)
		}
	}
}
