package streams

import (
	"fmt"
	"testing"

	"github.com/simccl/simccl/units"
)

// TestTiles: a persistent kernel of 26 tiles on 6 clusters of 2 SMs has 5 rounds of 10 us.
// A collective launched behind it begins in the last round, where 4 clusters are idle. A
// cluster that waits for the collective's SMs begins with the 2 tiles that are its own: they
// come last where it waits until others are through, and not where it begins before.
func TestTiles(t *testing.T) {
	const text = `workload 1
ranks 2
comm a *
work 1 product blocks=12 persm=1 tiles=26 cluster=2 persistent
list x 0-1
%s`
	const product, call = "  compute 0 50000000 work=1\n", "  call 1 a all_reduce float sum 1024\n"
	for _, x := range []struct {
		first, second string
		sms           int32
		time          float64
		want          string
	}{
		{product, call, 4, 10, "50 50"},
		{product, call, 9, 10, "50 60"}, // 8 SMs are idle: its blocks take them, and begin when it has all
		{call, product, 2, 200, "200 60"},
		{call, product, 2, 25, "25 50"},
		{call, product, 2, 38, "38 58"},
		{call, product, 12, 30, "30 80"},
	} {
		r := play(t, fmt.Sprintf(text, x.first+x.second), func(in *Input) {
			in.GPUs = []GPU{{SMs: 12}, {SMs: 12}}
			in.Costs[0].SMs, in.Costs[0].Time = x.sms, units.FromMicros(x.time)
		})
		if got := ends(r, 0); got != x.want {
			t.Errorf("%d SMs for %g us: %s, want %s", x.sms, x.time, got, x.want)
		}
	}
}
