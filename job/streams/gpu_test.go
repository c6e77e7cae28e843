package streams

import (
	"testing"

	"github.com/simccl/simccl/units"
)

// TestTrafficFollowsTheRate: beside a compute kernel that uses half of the memory's rate at its full pace, a
// call takes longer by half of Traffic; where the kernel has half of its SMs it also moves half as much.
func TestTrafficFollowsTheRate(t *testing.T) {
	const text = `workload 1
ranks 2
comm a *
work 1 product blocks=24 bytes=50000000
list x 0-1
  call 1 a all_reduce float sum 1024
  compute 0 100000000 work=1
`
	for _, x := range []struct {
		sms  int32 // of the call, of 12
		want string
	}{
		// Two waves on 12 SMs, 100 us: 500 GB/s of 1,000. On 6 SMs it has four waves and takes twice as
		// long, so that it moves 250 GB/s beside the call.
		{6, "50 125"},
		// On 12 SMs no block of the kernel begins before the call ends.
		{12, "40 140"},
	} {
		r := play(t, text, func(in *Input) {
			in.GPUs = []GPU{{SMs: 12, Memory: 1000, Traffic: 1}, {SMs: 12, Memory: 1000, Traffic: 1}}
			in.Costs[0].SMs, in.Costs[0].Time = x.sms, 40*us
		})
		if got := ends(r, 0); got != x.want {
			t.Errorf("a call of %d SMs: %s, want %s", x.sms, got, x.want)
		}
	}
}

// TestTailIsAtMostTheKernelsTime: of a kernel of one wave whose blocks wait for SMs, the last ones come a
// tile later, which is no longer than the kernel itself.
func TestTailIsAtMostTheKernelsTime(t *testing.T) {
	const text = `workload 1
ranks 2
comm a *
work 1 product blocks=12
list x 0-1
  call 1 a all_reduce float sum 1024
  compute 0 20000000 work=1
`
	for tail, want := range map[float64]string{10: "100 30", 20: "100 40", 80: "100 40"} {
		r := play(t, text, func(in *Input) {
			in.GPUs = []GPU{{SMs: 12, Tail: units.FromMicros(tail)}, {SMs: 12, Tail: units.FromMicros(tail)}}
			in.Costs[0].SMs, in.Costs[0].Time = 6, 100*us
		})
		if got := ends(r, 0); got != want {
			t.Errorf("a tail of %g us: %s, want %s", tail, got, want)
		}
	}
}
