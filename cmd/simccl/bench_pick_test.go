package main

import (
	"testing"

	gpubench "github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/real/cuda"
	"github.com/simccl/simccl/units"
)

// The median decides, one outlier does not; and the shape of the size before
// stays unless another is clearly faster.
func TestJudgeTakesTheMedianAndHolds(t *testing.T) {
	shapes := []cuda.Shape{cuda.OneShot, cuda.TwoShot, cuda.Push}
	us := func(v ...float64) (t []units.Time) {
		for _, x := range v {
			t = append(t, units.FromMicros(x))
		}
		return t
	}
	for _, c := range []struct {
		name  string
		times map[cuda.Shape][]units.Time
		last  cuda.Shape
		want  cuda.Shape
	}{
		{"one outlier", map[cuda.Shape][]units.Time{cuda.OneShot: us(40, 7, 7, 7, 7), cuda.TwoShot: us(8, 8, 8, 8, 8)}, gpubench.NCCL, cuda.OneShot},
		{"within the hold", map[cuda.Shape][]units.Time{cuda.OneShot: us(100, 100, 100), cuda.TwoShot: us(98, 98, 98)}, cuda.OneShot, cuda.OneShot},
		{"beyond the hold", map[cuda.Shape][]units.Time{cuda.OneShot: us(100, 100, 100), cuda.TwoShot: us(90, 90, 90)}, cuda.OneShot, cuda.TwoShot},
		{"given up after one measure", map[cuda.Shape][]units.Time{cuda.OneShot: us(91), cuda.TwoShot: us(90, 90, 90)}, cuda.OneShot, cuda.TwoShot},
		{"one shape alone", map[cuda.Shape][]units.Time{cuda.Push: us(5, 5, 5)}, cuda.OneShot, cuda.Push},
	} {
		got := judge(shapes, c.times, c.last)
		if got.shape != c.want || len(got.rivals) != len(c.times) {
			t.Errorf("%s: %v of %v, want %v", c.name, got.shape, got.rivals, c.want)
		}
	}
}
