package bench

import (
	"testing"

	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/real/internal/device"
	"github.com/simccl/simccl/units"
)

// The median decides, one outlier does not; and the method of the size before
// stays unless another is clearly faster.
func TestJudgeTakesTheMedianAndHolds(t *testing.T) {
	methods := []device.Method{device.Free(cuda.OneShot), device.Free(cuda.TwoShot), device.Free(cuda.Push)}
	us := func(v ...float64) (t []units.Time) {
		for _, x := range v {
			t = append(t, units.FromMicros(x))
		}
		return t
	}
	for _, c := range []struct {
		name  string
		times map[device.Method][]units.Time
		last  device.Method
		want  device.Method
	}{
		{"one outlier", map[device.Method][]units.Time{device.Free(cuda.OneShot): us(40, 7, 7, 7, 7),
			device.Free(cuda.TwoShot): us(8, 8, 8, 8, 8)}, device.NCCL, device.Free(cuda.OneShot)},
		{"within the hold", map[device.Method][]units.Time{device.Free(cuda.OneShot): us(100, 100, 100),
			device.Free(cuda.TwoShot): us(98, 98, 98)}, device.Free(cuda.OneShot), device.Free(cuda.OneShot)},
		{"beyond the hold", map[device.Method][]units.Time{device.Free(cuda.OneShot): us(100, 100, 100),
			device.Free(cuda.TwoShot): us(90, 90, 90)}, device.Free(cuda.OneShot), device.Free(cuda.TwoShot)},
		{"given up after one measure", map[device.Method][]units.Time{device.Free(cuda.OneShot): us(91),
			device.Free(cuda.TwoShot): us(90, 90, 90)}, device.Free(cuda.OneShot), device.Free(cuda.TwoShot)},
		{"one shape alone", map[device.Method][]units.Time{device.Free(cuda.Push): us(5, 5, 5)},
			device.Free(cuda.OneShot), device.Free(cuda.Push)},
	} {
		got := judge(methods, c.times, c.last)
		if got.by != c.want || len(got.picks) != len(c.times) {
			t.Errorf("%s: %v of %v, want %v", c.name, got.by, got.picks, c.want)
		}
	}
}
