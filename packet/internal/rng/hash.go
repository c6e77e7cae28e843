package rng

import "github.com/simccl/simccl/internal/variates"

// Kinds of draws, mixed into Hash.
const (
	Mark = iota
	Loss
	Path
)

// Hash returns a number in [0,1) that depends only on the seed, a link, a kind of draw and the number of the
// draw on that link, not on any order between links (finalizer of SplitMix64).
func Hash(seed uint64, link int32, kind, n uint64) float64 {
	x := seed + 0x9e3779b97f4a7c15*(n+1) + uint64(uint32(link))*0xd1342543de82ef95 + kind<<56
	x = variates.Mix(variates.Mix(x))
	return float64(x>>11) / (1 << 53)
}
