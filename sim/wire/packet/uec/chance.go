package uec

// crand is the additive generator behind rand() and random() of the GNU C
// library (r[i] = r[i-3] + r[i-31], the lowest bit dropped).
type crand struct {
	r [34]int32
	i int
}

func newCrand(seed uint32) *crand {
	c := &crand{}
	if seed == 0 {
		seed = 1
	}
	c.r[0] = int32(seed)
	for i := 1; i < 31; i++ {
		v := int64(16807) * int64(c.r[i-1]) % 2147483647
		if v < 0 {
			v += 2147483647
		}
		c.r[i] = int32(v)
	}
	// The ring holds the last 34; it starts with r[31..33] = r[0..2].
	for i := 31; i < 34; i++ {
		c.r[i] = c.r[i-31]
	}
	c.i = 34
	for range 310 {
		c.next()
	}
	return c
}

// next returns 31 bits.
func (c *crand) next() uint32 {
	v := c.r[(c.i-31)%34] + c.r[(c.i-3)%34]
	c.r[c.i%34] = v
	c.i++
	return uint32(v) >> 1
}

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
