package main

import (
	"testing"

	gpubench "github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/real/cuda"
	"github.com/simccl/simccl/units"
)

// The median decides, one outlier does not; and the method of the size before
// stays unless another is clearly faster.
func TestJudgeTakesTheMedianAndHolds(t *testing.T) {
	methods := []gpubench.Method{gpubench.Free(cuda.OneShot), gpubench.Free(cuda.TwoShot), gpubench.Free(cuda.Push)}
	us := func(v ...float64) (t []units.Time) {
		for _, x := range v {
			t = append(t, units.FromMicros(x))
		}
		return t
	}
	for _, c := range []struct {
		name  string
		times map[gpubench.Method][]units.Time
		last  gpubench.Method
		want  gpubench.Method
	}{
		{"one outlier", map[gpubench.Method][]units.Time{gpubench.Free(cuda.OneShot): us(40, 7, 7, 7, 7), gpubench.Free(cuda.TwoShot): us(8, 8, 8, 8, 8)}, gpubench.NCCL, gpubench.Free(cuda.OneShot)},
		{"within the hold", map[gpubench.Method][]units.Time{gpubench.Free(cuda.OneShot): us(100, 100, 100), gpubench.Free(cuda.TwoShot): us(98, 98, 98)}, gpubench.Free(cuda.OneShot), gpubench.Free(cuda.OneShot)},
		{"beyond the hold", map[gpubench.Method][]units.Time{gpubench.Free(cuda.OneShot): us(100, 100, 100), gpubench.Free(cuda.TwoShot): us(90, 90, 90)}, gpubench.Free(cuda.OneShot), gpubench.Free(cuda.TwoShot)},
		{"given up after one measure", map[gpubench.Method][]units.Time{gpubench.Free(cuda.OneShot): us(91), gpubench.Free(cuda.TwoShot): us(90, 90, 90)}, gpubench.Free(cuda.OneShot), gpubench.Free(cuda.TwoShot)},
		{"one shape alone", map[gpubench.Method][]units.Time{gpubench.Free(cuda.Push): us(5, 5, 5)}, gpubench.Free(cuda.OneShot), gpubench.Free(cuda.Push)},
	} {
		got := judge(methods, c.times, c.last)
		if got.by != c.want || len(got.rivals) != len(c.times) {
			t.Errorf("%s: %v of %v, want %v", c.name, got.by, got.rivals, c.want)
		}
	}
}
