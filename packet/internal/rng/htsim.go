package rng

// MT19937 is the Mersenne Twister (Matsumoto and Nishimura, 1998). htsim draws with it everything that is
// fixed before the first packet.
type MT19937 struct {
	x  [624]uint32
	at int
}

func NewMT19937(seed uint64) *MT19937 {
	s := &MT19937{at: 624}
	s.x[0] = uint32(seed)
	for i := 1; i < len(s.x); i++ {
		s.x[i] = 1812433253*(s.x[i-1]^s.x[i-1]>>30) + uint32(i)
	}
	return s
}

// Next returns the next 31 random bits.
func (s *MT19937) Next() uint32 {
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

// PathHash is htsim's ECMP hash of a flow, its path and a switch's salt (FreeBSD's if_bridge).
func PathHash(flow, path, salt uint32) uint32 {
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

// Shuffled returns the ports first to first+count-1 in random order.
func Shuffled(first, count int, c *MT19937) []uint16 {
	up := make([]uint16, count)
	for s := range up {
		up[s] = uint16(first + s)
	}
	for i := range up {
		k, last := int(c.Next())%(len(up)-i), len(up)-1-i
		up[k], up[last] = up[last], up[k]
	}
	return up
}
