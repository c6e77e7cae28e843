package compute

import (
	"math"
	"testing"

	"github.com/simccl/simccl/workload"
)

// TestLimitOfPower: below the data sheet's limit long products take as much longer as the cube root of what
// is left above the floor; at it, or above, nothing changes, and memory is as fast as before.
func TestLimitOfPower(t *testing.T) {
	c, _ := Find("H100")
	product := workload.Work{Shape: workload.Shape{Op: workload.ProductShape, M: 16384, N: 16384, K: 16384},
		FLOPs: 2 << 42}
	bytes := workload.Work{Bytes: 1 << 30}
	whole, _ := c.Time(&product)
	stream, _ := c.Time(&bytes)
	for watts, want := range map[float64]float64{700: 1, 900: 1, 500: math.Cbrt(0.8 / (500.0/700 - 0.2))} {
		l, ok := c.Limited(watts)
		if !ok {
			t.Fatal(watts)
		}
		got, _ := l.Time(&product)
		if r := float64(got) / float64(whole); math.Abs(r-want) > 0.005 {
			t.Errorf("%g W: %.3f times as long, want %.3f", watts, r, want)
		}
		if same, _ := l.Time(&bytes); same != stream {
			t.Errorf("%g W: memory takes %v, %v without", watts, same, stream)
		}
	}
	if _, ok := c.Limited(300); ok {
		t.Error("a limit below half")
	}
}

// TestFlash2: FlashAttention-2 on an H100 reaches what its authors' successor has published (Shah et al.,
// FlashAttention-3, 2024, figure 5: heads of 128, causal), within 6 %, and backward passes (figure 6) of keys
// that are not masked; other peaks have none.
func TestFlash2(t *testing.T) {
	c, _ := Find("H100")
	old, ok := c.WithFlash2()
	if !ok {
		t.Fatal("nothing of FlashAttention-2")
	}
	for seq, want := range map[int64][2]float64{1024: {260, 260}, 2048: {298, 291}, 4096: {319, 310},
		8192: {333, 318}, 16384: {335, 322}} {
		const heads, batch = 16, 16384
		for i, op := range []workload.ShapeOp{workload.ForwardShape, workload.BackwardShape} {
			m := seq
			if i == 1 {
				m = 2 * seq // of a causal mask, which leaves as many keys
			}
			flops := int64(1) << 46
			w := workload.Work{FLOPs: flops, Shape: workload.Shape{Op: op, M: m, N: m, K: 128,
				Count: heads * batch / seq}}
			d, _ := old.Time(&w)
			if got := float64(flops) / d.Micros() / 1e6; math.Abs(got/want[i]-1) > 0.06 {
				t.Errorf("%v of %d: %.0f TFLOP/s, want %.0f", op, seq, got, want[i])
			}
		}
	}
	if b, _ := Find("B200"); b.Flash2Forward.Efficiency != 0 {
		t.Error("B200 has what an H200 reaches")
	}
}
