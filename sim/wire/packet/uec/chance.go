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

// setup draws what is fixed before the first packet, in order.
type setup struct{ seed, n uint64 }

func (s *setup) next() uint32 {
	s.n++
	return draw(s.seed, 1<<48, s.n) >> 1
}

// jenkins mixes a flow, its path and the salt of a switch (the hash of
// FreeBSD's if_bridge).
func jenkins(flow, path, salt uint32) uint32 {
	a, b, c := 0x9e3779b9+flow, 0x9e3779b9+salt, path
	for _, s := range [3][3]uint{{13, 8, 13}, {12, 16, 5}, {3, 10, 15}} {
		a = (a - b - c) ^ c>>s[0]
		b = (b - c - a) ^ a<<s[1]
		c = (c - a - b) ^ b>>s[2]
	}
	return c
}
