package port

import (
	"math/rand/v2"
	"testing"
)

// TestStarts: the port that starts first is the lowest of those with the least time, whatever starts, waits
// or is paused.
func TestStarts(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 3))
	for range 100 {
		n := 1 + r.IntN(100)
		links, out, busy := make([]Link, n), make([]int32, n), make([]uint64, (n+63)/64)
		for i := range links {
			l := &links[i]
			l.ID, l.FromPort, l.Free, l.Waiting = int32(i), uint16(i), r.Int64N(50), uint16(r.IntN(2))
			out[i] = int32(i)
			busy[i/64] |= 1 << (i % 64)
		}
		var x Starts
		for x.Begin(links, out, busy, nil); r.IntN(500) > 0; {
			var first *Link
			for i := range links {
				if l := &links[i]; l.Waiting&^l.Paused != 0 && (first == nil || l.Free < first.Free) {
					first = l
				}
			}
			if first == nil && x.At() != never || first != nil &&
				(x.At() != first.Free || x.First() != first) {
				t.Fatalf("the first of %d starts at %d, want %v", n, x.At(), first)
			}
			l := &links[r.IntN(n)]
			switch k := r.IntN(4); {
			case k == 0:
				l.Waiting |= 1
				x.Join(l)
				continue
			case k == 1:
				l.Paused ^= 1
			case first != nil:
				l = first
				l.Free += 1 + r.Int64N(30)
				l.Waiting = uint16(r.IntN(8) / 2)
			}
			x.Update(l)
		}
	}
}
