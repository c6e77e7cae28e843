package scenario

import (
	"context"
	"errors"
	"testing"
)

// TestEqualPartsAreAlltoall: an all_to_all_v without counts, with imbalance 1 or with equal
// counts takes what alltoall takes; one busy receiver takes longer; more than the ranks can
// have is refused.
func TestEqualPartsAreAlltoall(t *testing.T) {
	times := func(w Workload) Row {
		t.Helper()
		r, err := Run(context.Background(), Spec{Machine: Machine{Nodes: []Nodes{{Count: 2}}, GPUs: 2}, Workload: w}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r.Rows[0]
	}
	sizes := []string{"1M"}
	want := times(Workload{Op: "alltoall", Sizes: sizes})
	row := []int64{65536, 65536, 65536, 65536}
	for i, w := range []Workload{{Op: "all_to_all_v", Sizes: sizes}, {Op: "alltoallv_perf", Sizes: sizes, Imbalance: 1}, {Op: "all_to_all_v", Counts: [][]int64{row, row, row, row}}} {
		if got := times(w); got.Out != want.Out || got.In != want.In || got.Bytes != want.Bytes || got.Facts.Counts == nil || got.Facts.Counts.Imbalance != 1 || got.Func != "all_to_all_v" {
			t.Errorf("%d: %+v, alltoall %+v", i, got, want)
		}
	}
	if got := times(Workload{Op: "all_to_all_v", Sizes: sizes, Imbalance: 3}); !got.Out.Checked || got.Out.Time < want.Out.Time*5/4 || got.Facts.Counts.Imbalance != 3 || got.Count != want.Count {
		t.Errorf("one receiver gets 3 times the mean: %+v, alltoall %+v", got, want)
	}
	var field *FieldError
	if _, err := Run(context.Background(), Spec{Machine: Machine{GPUs: 2}, Workload: Workload{Op: "all_to_all_v", Sizes: sizes, Imbalance: 5}}, Options{}); !errors.As(err, &field) || field.Path != "workload.imbalance" {
		t.Errorf("5 times the mean of 4 ranks: %v", err)
	}
}
