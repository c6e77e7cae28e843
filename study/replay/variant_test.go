package replay_test

import (
	"math"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/workload/transform"
)

// TestVariants: variants of a recording take what their unprofiled steps took (mean over
// ranks of median_ms of times_rank*.json), on average within 5 %. Where the host is named
// as the limit, its estimated time is part of what a variant takes: GPipe on four GPUs,
// whose host was busy for 47 of 48 ms.
func TestVariants(t *testing.T) {
	sum, n := 0.0, 0
	for _, c := range []struct {
		mode, setting string
		want          float64 // ms
	}{
		{"own", "schedule=gpipe", 210.89}, {"own", "microbatches=4", 113.82},
		{"ddp", "no-sync", 21.75}, {"ddp", "bucket=1MB", 24.90}, {"ddp", "bucket=100MB", 24.70},
		{"ddp", "bucket=2000MB", 25.85},
		{"ep", "skew=40,30,20,10", 26.35}, {"pp", "microbatches=4", 20.54}, {"pp", "schedule=gpipe", 47.98},
	} {
		t.Run(c.mode+" "+c.setting, func(t *testing.T) {
			dir := golden.Root(t, "..", "shared", "workloads", "truth", c.mode)
			if c.mode == "own" {
				dir = golden.Root(t, "testdata", "measured", "h200x2", "replay", "pp")
			}
			j := readJob(t, dir, "trace_rank", "meta")
			spec, err := transform.ParseVariant([]string{c.setting})
			if err != nil {
				t.Fatal(err)
			}
			if j.Program, _, err = transform.ApplyVariant(j.Program, spec); err != nil {
				t.Fatal(err)
			}
			r := run(t, j, replay.Options{})
			if r.Limit == replay.LimitHost {
				t.Logf("the host is the limit; without it %+.1f %%", 100*(r.IterationUs/1000/c.want-1))
				hosts, _ := replay.Unprofiled(j)
				r = run(t, j, replay.Options{Hosts: hosts})
			}
			e := r.IterationUs/1000/c.want - 1
			t.Logf("%.2f ms, %+.1f %% of %.2f; %s", r.IterationUs/1000, 100*e, c.want, r.Limit)
			sum, n = sum+math.Abs(e), n+1
		})
	}
	if n > 0 && sum/float64(n) > 0.05 {
		t.Errorf("%.1f %% off in the mean", 100*sum/float64(n))
	}
}
