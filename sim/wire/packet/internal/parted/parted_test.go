package parted

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestParts: each port has what leaves by it, once, in the order of time and of numbers.
func TestParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ports, span := rapid.IntRange(1, 200).Draw(t, "ports"), rapid.Int64Range(1, 1<<38).Draw(t, "span")
		at := rapid.SliceOfN(rapid.Int64Range(0, min(span-1, rapid.SampledFrom([]int64{3, 1000, span}).Draw(t, "crowd"))), 0, 300).Draw(t, "at")
		var p Parts
		p.Begin(rapid.IntRange(1, 200).Draw(t, "before"))
		p.Add(0, 1)
		p.End()
		p.Begin(ports)
		keys := p.Room(len(at))
		want := make([][]uint64, ports)
		for i, x := range at {
			to := rapid.IntRange(0, ports-1).Draw(t, "port")
			keys[i] = Key(x, i)
			p.Add(uint16(to), keys[i])
			want[to] = append(want[to], Key(x, i))
		}
		p.End()
		for k := range want {
			slices.Sort(want[k])
			if got := p.Leaving(k, span); !slices.Equal(got, want[k]) || (p.Used[k/64]>>(k%64)&1 != 0) != (len(got) > 0) {
				t.Fatalf("port %d: %v, want %v", k, got, want[k])
			}
		}
		all := slices.Sorted(slices.Values(keys))
		if got := p.All(keys, span); !slices.Equal(got, all) {
			t.Fatalf("all: %v, want %v", got, all)
		}
	})
}
