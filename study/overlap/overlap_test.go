package overlap_test

import (
	"context"
	"math"
	"os"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/overlap"
)

// machines are those of H200 without multicast.
func machines(t *testing.T, topo string) overlap.Machines {
	known := map[string]*job.Machine{}
	return func(group string) (*job.Machine, error) {
		env := overlap.Settings(group)
		channels := env["NCCL_MAX_CTAS"]
		if m := known[channels]; m != nil {
			return m, nil
		}
		spec := scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: topo, Count: 1}},
			Multicast: "off"}}
		spec.NCCL.Env = env
		opt := site.Options()
		opt.Files = site.Files(t)
		s, err := scenario.Load(&spec, opt)
		if err != nil {
			return nil, err
		}
		known[channels], err = s.Session(&spec)
		return known[channels], err
	}
}

// TestMeasuredOverlaps: how much collectives and compute, and two communicators,
// slow each other, beside what was measured.
func TestMeasuredOverlaps(t *testing.T) {
	rows := predict(t, "h200x4", "h200x4-4.xml")
	pair := predict(t, "h200x2", "h200x4-2.xml")
	golden.Text(t, golden.Root(t, "docs", "results", "OVERLAP.md"), page(rows, pair))
	limits(t, rows, map[string]float64{"gemm rate": 0.05, "gemm x": 0.06, "gemm 1/x": 0.04, "two /max": 0.08,
		"two graph": 0.06, "late rank0": 0.03,
		"solo graph_us": 0.08, "group g_separate": 0.08})
	limits(t, pair, map[string]float64{"gemm rate": 0.05, "gemm x": 0.05, "gemm 1/x": 0.03,
		"solo graph_us": 0.08, "group g_separate": 0.10})
}

// predict simulates a machine's table.
func predict(t *testing.T, machine, topo string) []overlap.Prediction {
	data, err := os.ReadFile(golden.Root(t, "testdata", "measured", machine, "overlap.txt"))
	if err != nil {
		t.Fatal(err)
	}
	table, err := overlap.Parse(string(data), "overlap.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := table.Predict(context.Background(), machines(t, topo))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// limits checks mean errors, by section and figure.
func limits(t *testing.T, rows []overlap.Prediction, limits map[string]float64) {
	type mean struct {
		sum float64
		n   int
	}
	errs := map[string]*mean{}
	for _, r := range rows {
		for k, m := range r.Measured {
			s, ok := r.Simulated[k]
			if !ok {
				t.Errorf("%s %s: %s is not simulated", r.Section, r.Case, k)
				continue
			}
			e := errs[r.Section+" "+k]
			if e == nil {
				e = &mean{}
				errs[r.Section+" "+k] = e
			}
			d := math.Abs(s/m - 1)
			switch k {
			case "rate":
				d = math.Abs(s - m)
			case "x":
				inverse := errs[r.Section+" 1/x"]
				if inverse == nil {
					inverse = &mean{}
					errs[r.Section+" 1/x"] = inverse
				}
				inverse.sum, inverse.n = inverse.sum+math.Abs(1/s-1/m), inverse.n+1
			}
			e.sum, e.n = e.sum+d, e.n+1
			if d > 0.25 {
				t.Logf("%-6s %-48s %-10s measured %10.3f simulated %10.3f", r.Section, r.Case, k, m, s)
			}
		}
	}
	for k, e := range errs {
		t.Logf("%-24s mean error %5.1f %% of %d", k, 100*e.sum/float64(e.n), e.n)
	}
	for k, most := range limits {
		if e := errs[k]; e == nil || e.sum/float64(e.n) > most {
			t.Errorf("%s: %+v, at most %g in the mean", k, e, most)
		}
	}
}
