package gen

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// gpt is the 22B model of Korthikanti et al., 2022, table 3.
func gpt() Config {
	c := small()
	c.Layers, c.Hidden, c.Heads, c.KVHeads, c.FFN, c.Vocab, c.Seq = 48, 6144, 64, 64, 4*6144, 51200, 2048
	c.MicroBatch, c.GlobalBatch = 4, 32
	return c
}

// TestActivations: a layer keeps s·b·h·(34/t - 2) bytes with sequence parallelism and (10 + 24/t - 2)
// without, and the sums of its scores (Korthikanti et al., 2022, equations 2 and 4, without masks of
// dropout and without scores), and the gradients within one layer; the first stage of 1F1B holds those of
// all layers, however many stages there are; done again, a layer keeps its input, and one layer all of it.
func TestActivations(t *testing.T) {
	const sbh = 2048 * 4 * 6144
	for _, x := range []struct {
		tp        int
		sp        bool
		layer, in float64 // in s·b·h bytes
		inner     float64 // gradients of one layer: 4·h before and after the activation function
	}{{1, false, 32, 2, 16}, {8, false, 8 + 24.0/8, 2, 2}, {8, true, 32.0 / 8, 2.0 / 8, 2}} {
		sums := 4.0 * 2048 * 4 * 64 / float64(x.tp)
		for _, pp := range []int{2, 4, 8} {
			c := gpt()
			c.TP, c.SequenceParallel, c.PP = x.tp, x.sp, pp
			j := makeJob(t, c)
			if got, want := float64(j.Folded.Memory.Activations), 48*(x.layer*sbh+sums)+
				x.inner*sbh; got/want < 0.9999 ||
				got/want > 1.0001 || j.Fullest != 0 {
				t.Errorf("tp %d sp %v pp %d: %.4g bytes of rank %d, want %.4g of the first stage", x.tp, x.sp,
					pp, got, j.Fullest, want)
			}
			c.Recompute = true
			if got, want := float64(makeJob(t, c).Folded.Memory.Activations), 48*x.in*sbh+
				(x.layer-x.in+x.inner)*sbh+
				sums; got/want < 0.9999 || got/want > 1.0001 {
				t.Errorf("tp %d sp %v pp %d, done again: %.4g bytes, want %.4g", x.tp, x.sp, pp, got, want)
			}
		}
	}
	// Schedules: GPipe holds all microbatches, interleaved stages (p-1)/(p·v) more than 1F1B (Korthikanti et
	// al., section 4.2.3).
	c := gpt()
	c.PP, c.Schedule = 4, GPipe
	first := func() float64 {
		g := newGenerator(&c, nil)
		g.passes()
		return float64((&writer{g: g}).activations()) - g.inner(dense) // beside those that are held
	}
	one := first() / 8
	c.Schedule = OneFOneB
	if got := first(); got/one < 3.99 || got/one > 4.01 {
		t.Errorf("1F1B holds %.3f microbatches of 8", got/one)
	}
	c.Schedule, c.Virtual = Interleaved, 2
	if got := first(); got/one/4 < 1+3.0/8-0.01 || got/one/4 > 1+3.0/8+0.01 {
		t.Errorf("interleaved stages hold %.3f of 1F1B, want %.3f", got/one/4, 1+3.0/8)
	}
}

// TestStates: of n parameters in 16 bits each GPU of N holds (2+2+12)·n bytes, with ZeRO 1 the last
// divided by N, with 2 also the gradients and with 3 all (Rajbhandari et al., 2020, figure 1), up to what
// of a unit is whole.
func TestStates(t *testing.T) {
	for stage, want := range [][3]float64{{2, 2, 12}, {2, 2, 12.0 / 64}, {2, 2.0 / 64, 12.0 / 64},
		{2.0 / 64, 2.0 / 64, 12.0 / 64}} {
		c := gpt()
		c.DP, c.FSDP, c.GlobalBatch, c.Prefetch = 64, stage, 4*64, 1
		j := makeJob(t, c)
		n, m := float64(j.Params), j.Folded.Memory
		unit := float64(2*6144+4*6144*6144+8*6144*6144) * 2 // of a layer
		for i, x := range []struct {
			got   units.Bytes
			whole float64 // units that are whole
		}{{m.Parameters, 2}, {m.Gradients, 1}, {m.Optimizer, 0}} {
			extra := float64(x.got) - want[i]*n
			if want[i] > 1 && i < 2 || i == 2 {
				x.whole = 0
			}
			if extra < x.whole*unit-1e6 || extra > x.whole*unit+1e6 {
				t.Errorf("ZeRO %d: part %d is %.5g bytes, want %.5g and %g layers", stage, i, float64(x.got),
					want[i]*n, x.whole)
			}
		}
	}
	c := gpt()
	c.Type, c.GradType = coll.Float32, coll.Float32
	if m := makeJob(t, c).Folded.Memory; m.Optimizer != 2*m.Parameters || m.Gradients != m.Parameters {
		t.Errorf("32 bits: %+v", m)
	}
}

// TestDoesNotFit: 70 billion parameters whole on each GPU do not fit, and it says by how much.
func TestDoesNotFit(t *testing.T) {
	u := workload.Memory{Parameters: 140 << 30, Gradients: 140 << 30, Optimizer: 840 << 30,
		Activations: 8 << 30}.Use(80 << 30)
	want := "the job does not fit: it needs about 1128.0 GB of each H100, which has 80.0 (estimated); " +
		"divide it further (--tp, --pp, --fsdp 3), or recompute"
	if diff := cmp.Diff(want, u.Problem("H100")); diff != "" || u.Total != 1128<<30 {
		t.Error(diff)
	}
	if p := (workload.Memory{Parameters: 1}).Use(80 << 30).Problem("H100"); p != "" {
		t.Error(p)
	}
}
