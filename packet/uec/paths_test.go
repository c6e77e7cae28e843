package uec

import (
	"math/rand/v2"
	"testing"

	"github.com/simccl/simccl/packet/internal/rng"
)

// oneByOne is the next path of a bitmap by looking at each: the rule that next follows by bits.
func oneByOne(p *paths, seed uint64, flow int32) uint16 {
	v := (p.index ^ p.xor) & p.mask
	for tries := 0; p.skip[v] > 0; {
		if tries == 0 {
			p.skip[v]--
		}
		if tries++; tries > int(p.mask)+1 {
			break
		}
		p.step(seed, flow)
		v = (p.index ^ p.xor) & p.mask
	}
	p.step(seed, flow)
	return v | p.upper
}

// TestPathsAreSkipped: whatever share of the paths is to be skipped, the same follow each other as where
// each is looked at.
func TestPathsAreSkipped(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		c := &Config{Balance: Bitmap, Paths: 1 << r.IntN(9)}
		bits, want := newPaths(c, rng.NewMT19937(seed)), newPaths(c, rng.NewMT19937(seed))
		bits.penalties(make([]uint8, c.Paths), make([]uint64, (c.Paths+63)/64))
		want.penalties(make([]uint8, c.Paths), make([]uint64, (c.Paths+63)/64))
		marks := r.IntN(4)
		for i := range 2000 {
			if got, w := bits.next(seed, 3), oneByOne(&want, seed, 3); got != w {
				t.Fatalf("seed %d, %d paths, packet %d: path %d, want %d", seed, c.Paths, i, got, w)
			}
			for range r.IntN(1 + marks) {
				path, how := uint16(r.IntN(c.Paths)), r.IntN(expired+1)
				bits.learn(path, how)
				want.learn(path, how)
			}
		}
	}
}
