package cuda

import (
	"testing"

	"github.com/simccl/simccl/units"
)

// Pieces cover a part without a gap, fit a slot, and every rank's spans add up
// to its share of the total.
func TestPiecesCoverTheBuffer(t *testing.T) {
	for _, ranks := range []int{2, 3, 4, 8} {
		for _, total := range []units.Bytes{16, 1000, 1 << 20, 64<<20 + 4, 1 << 30, 3 << 30} {
			part := (total + units.Bytes(16*ranks) - 1) / units.Bytes(16*ranks) * 16
			size, count, depth := pieces(part, ranks, total%3 == 0)
			if size%16 != 0 || depth < 2 || depth > maxDepth || size*units.Bytes(depth*ranks) > slotsSize ||
				units.Bytes(count)*size < part || units.Bytes(count-1)*size >= part {
				t.Errorf("%d ranks, part %d: %d pieces of %d", ranks, part, count, size)
			}
			sum := units.Bytes(0)
			for p := range ranks {
				for k := range count {
					sum += span(p, part, total, units.Bytes(k)*size, size)
				}
			}
			if sum != total {
				t.Errorf("%d ranks, %d bytes: spans add up to %d", ranks, total, sum)
			}
		}
	}
}

// TestHalvesHaveRandomBits: half-precision floats from 1 to 2, of either sign, of which each bit of the
// fraction is set in half.
func TestHalvesHaveRandomBits(t *testing.T) {
	text := randomHalves(20001, 3)
	set := make([]int, 16)
	for i := 0; i+1 < len(text); i += 2 {
		v := int(text[i]) | int(text[i+1])<<8
		if v>>10&0x1f != 15 {
			t.Fatalf("%#x at %d is not between 1 and 2", v, i)
		}
		for b := range set {
			set[b] += v >> b & 1
		}
	}
	for b, n := range set {
		if (b < 10 || b == 15) && (n < 4500 || n > 5500) {
			t.Errorf("bit %d is set in %d of 10000", b, n)
		}
	}
}
