package overlap_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/study/overlap"
)

// besideRows is a table whose slow-downs are put in.
const besideRows = `# torch 2.11.0 nccl (2, 28, 9) NVIDIA H200 world 2 clock 1980 MHz

## solo: us
compute                  us
gemm8192            1483.23
add128M               66.33

## gemm: n collectives beside K compute kernels
op                  bytes group   n  compute    K  comm0_ms   comm_ms      x
all_reduce      134217728   ch4   2 gemm8192    6     0.1     0.2   1.5
all_reduce      134217728   ch4   3 gemm8192    8     0.1     0.2   1.5
all_reduce       16777216   ch4   3  add128M   40     0.1     0.2   1.5
all_reduce       16777216   ch4   4  add128M   50     0.1     0.2   1.5
`

// TestFitFindsWhatMadeTheRows: from slow-downs that a class made, Fit finds its quantities
// of sharing from others.
func TestFitFindsWhatMadeTheRows(t *testing.T) {
	table, err := overlap.Parse(besideRows, "f")
	if err != nil || len(table.Rows) < 4 {
		t.Fatal(table, err)
	}
	load := machines(t, "h200x4-2.xml")
	var start gpu.Class
	on := func(c *gpu.Class) overlap.Machines {
		return func(group string) (*job.Machine, error) {
			m, err := load(group)
			if err == nil && c != nil {
				m.Sim.Class = c
			}
			return m, err
		}
	}
	m, err := load("ch4")
	if err != nil {
		t.Fatal(err)
	}
	start = *m.Sim.Class
	made := start
	made.Share.Busy, made.Share.Traffic = 0.8, 0.5
	rows, err := table.Predict(context.Background(), on(&made))
	if err != nil {
		t.Fatal(err)
	}
	for i := range table.Rows {
		if x := rows[i].Simulated["x"]; x > 0 {
			table.Rows[i].Measured["x"] = x
		}
	}
	got, by, err := table.Fit(context.Background(), on, start)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(got.Share.Busy-0.8) > 0.1 || math.Abs(got.Share.Traffic-0.5) > 0.25 ||
		by.After > by.Before/2 {
		t.Errorf("busy %g, want 0.8; traffic %g, want 0.5; %+v", got.Share.Busy, got.Share.Traffic, by)
	}
	by.Describe(&got)
	if o := got.Origins["beside_busy"]; o.Source != gpu.Measured || o.Uncertainty <= 0 || by.Text() == "" {
		t.Errorf("origin %+v", o)
	}
	table.Rows = table.Rows[:2]
	if _, _, err := table.Fit(context.Background(), on, start); !errors.Is(err, overlap.ErrFewRows) {
		t.Errorf("two rows: %v", err)
	}
}
