package packet

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/simccl/simccl/units"
)

// TestLinesCountAllData: over all lines the bytes of data frames are those of the frames that crossed them,
// and the busiest line of an incast is the receiver's, which carries each flow once, whichever path of the
// engine moves the frames.
func TestLinesCountAllData(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 5))
		kind := []CCKind{NoCC, DCQCN, HPCC, DCTCP}[r.IntN(4)]
		c := settings(kind)
		c.Seed, c.Workers, c.Buffer.Bytes = seed, 1+r.IntN(3), 32<<20
		if r.IntN(2) == 0 {
			c.Every = 3 * units.Microsecond
		}
		c.EventOrder = r.IntN(2) == 0
		n, senders := leafSpine(2, 5, 1+r.IntN(3), 100e9, 0), 2+r.IntN(7)
		var flows []Flow
		var want int64
		for i := range senders {
			f := Flow{Src: int32(i + 1), Dst: 0, Bytes: 1 + r.Int64N(200_000), Priority: 3, DstPort: 100}
			want += f.Bytes + (f.Bytes+999)/1000*int64(c.Frames.Header)
			flows = append(flows, f)
		}
		x, err := Run(n, flows, c)
		name := fmt.Sprintf("seed %d, %v, %d senders, %d workers, samples %v", seed, kind, senders, c.Workers,
			c.Every)
		if err != nil || x.Stall != nil || x.Retransmitted > 0 {
			t.Fatalf("%s: %v, %v", name, err, x)
		}
		if x.Busiest.Link[1] != 0 || x.Busiest.Data != want {
			t.Errorf("%s: line %v carried %d bytes of data, the receiver's %d", name, x.Busiest.Link,
				x.Busiest.Data, want)
		}
	}
}
