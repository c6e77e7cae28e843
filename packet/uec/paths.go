package uec

import (
	"math/bits"

	"github.com/simccl/simccl/packet/internal/rng"
)

// paths chooses a flow's entropy value for each packet (sim/uec_mp.cpp, sim/buffer_reps.cpp). A round visits
// all values as index XOR xor, with a new xor each round.
type paths struct {
	balance Balance
	mask    uint16
	upper   uint16       // constant bits above the mask
	xor     uint16       // of this round
	index   uint16       // in this round
	fixed   uint16       // of ECMP
	skip    []uint8      // Bitmap, Mixed: by path, how many more times it is skipped
	held    []uint64     // bits of paths with skip > 0
	recycle ring[uint16] // Mixed: paths of unmarked acknowledgements
	reps    reps
	draws   uint64
}

const maxPenalty = 15

// newPaths draws a flow's initial state with htsim's generator.
func newPaths(c *Config, r *rng.MT19937) paths {
	p := paths{balance: c.Balance, mask: uint16(c.Paths - 1)}
	switch c.Balance {
	case ECMP:
		p.fixed = uint16(r.Next() % uint32(c.Paths))
	case Oblivious, Bitmap, Mixed:
		p.upper = uint16(r.Next()%0xffff) &^ p.mask
		p.xor = uint16(r.Next() % uint32(c.Paths))
	}
	return p
}

func (p *paths) random(seed uint64, flow int32) uint16 {
	p.draws++
	return uint16(draw(seed, uint64(flow)|1<<40, p.draws)) & p.mask
}

// step advances the round.
func (p *paths) step(seed uint64, flow int32) {
	if p.index++; p.index > p.mask {
		p.index = 0
		p.xor = p.random(seed, flow)
	}
}

func (p *paths) next(seed uint64, flow int32) uint16 {
	switch p.balance {
	case ECMP:
		return p.fixed
	case REPS:
		if v, ok := p.reps.take(); ok {
			return v
		}
		return p.random(seed, flow)
	case Mixed:
		if !p.recycle.empty() {
			return p.recycle.pop()
		}
	}
	v := (p.index ^ p.xor) & p.mask
	if p.skip != nil && p.skip[v] > 0 {
		if p.skip[v]--; p.skip[v] == 0 {
			p.held[v/64] &^= 1 << (v % 64)
		}
		p.pass(seed, flow)
		v = (p.index ^ p.xor) & p.mask
	}
	p.step(seed, flow)
	return v | p.upper
}

// penalties sets the memory for skip and held. The bits beyond the number of paths are set, so that these
// paths are never chosen.
func (p *paths) penalties(skip []uint8, held []uint64) {
	p.skip, p.held = skip, held
	if n := len(skip); n < 64 {
		held[0] = ^uint64(0) << n
	}
}

// pass advances to the next path without a penalty; if every path has one, it goes once around.
func (p *paths) pass(seed uint64, flow int32) {
	for left := p.mask + 1; left > 0; { // steps
		p.step(seed, flow)
		left--
		n := p.ahead()
		if n <= left && p.index+n <= p.mask {
			p.index += n
			return
		}
		n = min(left, p.mask-p.index)
		p.index += n
		left -= n
	}
}

// ahead returns the distance to the next path of the round without a penalty, 64 at a time; if there is none,
// at least the number of paths left.
func (p *paths) ahead() uint16 {
	for i := p.index; i <= p.mask; i = i&^63 + 64 {
		free := ^p.held[(i^p.xor)&p.mask/64]
		if free == 0 {
			continue
		}
		if free = exchanged(free, p.xor%64) >> (i % 64); free != 0 {
			return i + uint16(bits.TrailingZeros64(free)) - p.index
		}
	}
	return p.mask + 1
}

// exchanged moves bit i of w to bit i XOR by, without a branch: a butterfly of conditional swaps.
func exchanged(w uint64, by uint16) uint64 {
	x := uint64(by)
	w ^= (w ^ (w>>1&0x5555555555555555 | w&0x5555555555555555<<1)) & -(x & 1)
	w ^= (w ^ (w>>2&0x3333333333333333 | w&0x3333333333333333<<2)) & -(x >> 1 & 1)
	w ^= (w ^ (w>>4&0x0f0f0f0f0f0f0f0f | w&0x0f0f0f0f0f0f0f0f<<4)) & -(x >> 2 & 1)
	w ^= (w ^ (w>>8&0x00ff00ff00ff00ff | w&0x00ff00ff00ff00ff<<8)) & -(x >> 3 & 1)
	return bits.RotateLeft64(w^(w^(w>>16&0x0000ffff0000ffff|w&0x0000ffff0000ffff<<16))&-(x>>4&1), int(x&32))
}

// Outcomes of a packet, for learn.
const (
	good = iota
	marked
	nacked
	expired
)

// learn records the outcome of a packet on a path: a mark adds 1 skip, a NACK 4, a timeout 15.
func (p *paths) learn(path uint16, how int) {
	if p.skip != nil {
		v := path & p.mask
		if p.skip[v] = min(maxPenalty, p.skip[v]+[...]uint8{0, 1, 4, maxPenalty}[how]); p.skip[v] > 0 {
			p.held[v/64] |= 1 << (v % 64)
		}
	}
	switch {
	case how == good && p.balance == Mixed:
		p.recycle.push(path)
	case how == good && p.balance == REPS:
		p.reps.add(path)
	}
}

const repsSize = 8

// reps is a ring of paths whose acknowledgements were unmarked; each is used once.
type reps struct {
	path  [repsSize]uint16
	valid [repsSize]bool
	head  int
	fresh int
}

func (r *reps) add(path uint16) {
	if !r.valid[r.head] {
		r.fresh++
	}
	r.path[r.head], r.valid[r.head] = path, true
	r.head = (r.head + 1) % repsSize
}

func (r *reps) take() (uint16, bool) {
	if r.fresh == 0 {
		return 0, false
	}
	i := (r.head - r.fresh + repsSize) % repsSize
	r.valid[i] = false
	r.fresh--
	return r.path[i], true
}
