package uec

// draw returns 32 bits that depend on the seed, an object and the number of the
// draw there.
func draw(seed uint64, object, n uint64) uint32 {
	x := seed*0x9e3779b97f4a7c15 + object*0xd1342543de82ef95 + (n+1)*0xbf58476d1ce4e5b9
	x ^= x >> 31
	x *= 0x94d049bb133111eb
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	return uint32(x >> 32)
}

// setup draws what is fixed before the first packet, in the peer's order and with
// its generator, so that equal seeds hash flows to equal paths: the Mersenne
// Twister MT19937 (Matsumoto and Nishimura, 1998).
type setup struct {
	x  [624]uint32
	at int
}

// newSetup is the generator with a seed.
func newSetup(seed uint64) *setup {
	s := &setup{at: 624}
	s.x[0] = uint32(seed)
	for i := 1; i < len(s.x); i++ {
		s.x[i] = 1812433253*(s.x[i-1]^s.x[i-1]>>30) + uint32(i)
	}
	return s
}

// next is 31 bits.
func (s *setup) next() uint32 {
	n := len(s.x)
	if s.at == n {
		for i := range s.x {
			y := s.x[i]&(1<<31) | s.x[(i+1)%n]&(1<<31-1)
			s.x[i] = s.x[(i+397)%n] ^ y>>1 ^ y&1*0x9908b0df
		}
		s.at = 0
	}
	y := s.x[s.at]
	s.at++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return (y ^ y>>18) & (1<<31 - 1)
}

// jenkins mixes a flow, its path and the salt of a switch (the hash of
// FreeBSD's if_bridge).
func jenkins(flow, path, salt uint32) uint32 {
	a, b, c := 0x9e3779b9+flow, 0x9e3779b9+salt, path
	a = (a - b - c) ^ c>>13
	b = (b - c - a) ^ a<<8
	c = (c - a - b) ^ b>>13
	a = (a - b - c) ^ c>>12
	b = (b - c - a) ^ a<<16
	c = (c - a - b) ^ b>>5
	a = (a - b - c) ^ c>>3
	b = (b - c - a) ^ a<<10
	c = (c - a - b) ^ b>>15
	return c
}
