package packet

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/simccl/simccl/units"
)

// TestProperties: on random networks with random flows and every congestion
// control all flows end, none before its bytes can have crossed its links, no
// frame is lost or sent twice, and each data frame crosses each link of its
// route once.
func TestProperties(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		per, leaves, spines := 1+r.IntN(5), 2+r.IntN(3), 1+r.IntN(4)
		rate := []int64{25e9, 100e9, 400e9}[r.IntN(3)]
		n, hosts := leafSpine(leaves, per, spines, rate, 0), leaves*per
		kind := []CCKind{NoCC, DCQCN, HPCC, Timely, DCTCP}[r.IntN(5)]
		c := settings(kind)
		c.Seed, c.Marking[0].Rate, c.WholeNanos, c.Buffer.Bytes = seed, rate, r.IntN(2) == 0, 32<<20
		if r.IntN(3) == 0 {
			c.Buffer.Credits = 64 << 10
		}
		var flows []Flow
		var frames int64
		for range 1 + r.IntN(20) {
			src := r.IntN(hosts)
			f := Flow{Src: int32(src), Dst: int32((src + 1 + r.IntN(hosts-1)) % hosts), Bytes: 1 +
				r.Int64N(300_000), Priority: uint8(1 + r.IntN(7)), DstPort: 100,
				Start: units.Time(r.IntN(100)) * units.Microsecond}
			if k := len(flows); k > 0 && r.IntN(3) == 0 {
				f.Deps = []int32{int32(r.IntN(k))}
			}
			hops := int64(4)
			if int(f.Src)/per == int(f.Dst)/per {
				hops = 2
			}
			frames += hops * ((f.Bytes + 999) / 1000)
			flows = append(flows, f)
		}
		x, err := Run(n, flows, c)
		name := fmt.Sprintf("seed %d, %v, %d hosts, %d flows, credits %d", seed, kind, hosts, len(flows),
			c.Buffer.Credits)
		if err != nil || x.Stall != nil {
			t.Errorf("%s: %v, %v", name, err, x.Stall)
			continue
		}
		if x.DataPacketHops != frames || x.Retransmitted != 0 || x.Drops != 0 {
			t.Errorf("%s: %d data-packet-hops, want %d; %s", name, x.DataPacketHops, frames, brief(x))
		}
		for i, f := range flows {
			got := x.Flows[i]
			least := units.Time(f.Bytes*8_000_000_000_000/rate) + 4*units.Microsecond
			if c.WholeNanos { // each frame may be cut by a nanosecond
				least -= units.Time((f.Bytes+999)/1000) * units.Nanosecond
			}
			if got.Start < f.Start || got.End-got.Start < least {
				t.Errorf("%s: flow %d of %d bytes took %v, at least %v", name, i, f.Bytes, got.End-got.Start,
					least)
			}
			for _, d := range f.Deps {
				if got.Start < x.Flows[d].End+units.Nanosecond {
					t.Errorf("%s: flow %d starts at %v, before flow %d ended at %v", name, i, got.Start, d,
						x.Flows[d].End)
				}
			}
		}
	}
}
