package port

import (
	"testing"

	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/spec"
)

// TestHeadsOfFrames: a cut-through switch takes a frame when its first bytes have come, before the last,
// unless the port is faster than the link.
func TestHeadsOfFrames(t *testing.T) {
	const rate, at = 100e9, 1_000_000
	c := &spec.Config{}
	for _, x := range []struct {
		head, out, end int64
		taken          bool
	}{{1000, rate, at - 1000, true}, {1000, 2 * rate, at - 1000, false}, {1000, 2 * rate, at + 1, true},
		{0, rate, at - 1000, false}, {0, rate, at + 1, true}} {
		links := []Link{{Nominal: rate, Head: x.head}, {Nominal: x.out}}
		links[0].Wire.Grow()
		*links[0].Wire.Next() = frames.Frame{At: at, Size: 4096}
		h := Heads{Config: c, Links: links, Due: make([]int64, 2)}
		arriving := make([]int64, 1)
		got := h.Take([]int32{0}, []int32{1}, x.end, arriving, nil)
		if len(got) == 1 != x.taken || arriving[0] > 0 != x.taken {
			t.Errorf("head %d, port of %d bit/s, until %d: %d frames, %d bytes; ahead by %d", x.head, x.out,
				x.end, len(got), arriving[0], links[0].Lead(c, 4096, x.out))
		}
	}
}
