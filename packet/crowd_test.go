package packet

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkCrowd: thousands of flows whose frames begin at the same instants, in the order of the HPCC
// simulator's events as network run has it: what grows faster than the number of frames shows here.
func BenchmarkCrowd(b *testing.B) {
	for _, x := range []struct {
		name                string
		kind                CCKind
		hosts, leaf, spines int
		all                 bool
		bytes               int64
	}{
		{"permutation/hosts=256/dcqcn", DCQCN, 256, 16, 16, false, 1_000_000},
		{"permutation/hosts=1024/dcqcn", DCQCN, 1024, 32, 32, false, 1_000_000},
		{"alltoall/hosts=128/dcqcn", DCQCN, 128, 8, 8, true, 32_000},
		{"alltoall/hosts=128/hpcc", HPCC, 128, 8, 8, true, 32_000},
	} {
		b.Run(x.name, func(b *testing.B) {
			n, c := leafSpine(x.hosts/x.leaf, x.leaf, x.spines, 100e9, 0), settings(x.kind)
			c.Buffer.Bytes, c.EventOrder, c.Stream = 32<<20, true, 8
			var flows []Flow
			add := func(from, to int) {
				if from != to {
					flows = append(flows, Flow{Src: int32(from), Dst: int32(to), Bytes: x.bytes, Priority: 3,
						DstPort: 100})
				}
			}
			if x.all {
				for k := 1; k < x.hosts; k++ {
					for i := range x.hosts {
						add(i, (i+k)%x.hosts)
					}
				}
			} else {
				for i, to := range rand.New(rand.NewPCG(3, 1)).Perm(x.hosts) {
					add(i, to)
				}
			}
			hops, before := int64(0), cpu(b)
			for b.Loop() {
				r, err := Run(n, flows, c)
				if err != nil || r.Stall != nil {
					b.Fatal(err, r.Stall)
				}
				hops += r.DataPacketHops
			}
			b.ReportMetric(float64(hops)/(cpu(b)-before)/1e6, "Mhops/CPU-s")
		})
	}
}
