package overlap_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/simccl/simccl/internal/golden"
	"github.com/simccl/simccl/internal/overlap"
	"github.com/simccl/simccl/internal/session"
	"github.com/simccl/simccl/internal/site"
	"github.com/simccl/simccl/scenario"
)

// machines are those of four H200 without multicast.
func machines(t *testing.T) overlap.Machines {
	known := map[string]*session.Machine{}
	return func(group string) (*session.Machine, error) {
		env := overlap.Settings(group)
		channels := env["NCCL_MAX_CTAS"]
		if m := known[channels]; m != nil {
			return m, nil
		}
		spec := scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "h200x4-4.xml", Count: 1}}, Multicast: "off"}}
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
	file := filepath.Join(golden.Root(t), "..", "shared", "workloads", "truth", "overlap.txt")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Skip("no measured overlaps beside the checkout:", err)
	}
	table, err := overlap.Parse(string(data), "overlap.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := table.Predict(context.Background(), machines(t))
	if err != nil {
		t.Fatal(err)
	}
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
			if k == "rate" {
				d = math.Abs(s - m)
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
	for k, most := range map[string]float64{"gemm rate": 0.05, "gemm x": 0.10, "two /max": 0.12, "late rank0": 0.05} {
		if e := errs[k]; e == nil || e.sum/float64(e.n) > most {
			t.Errorf("%s: %+v, at most %g in the mean", k, e, most)
		}
	}
}
