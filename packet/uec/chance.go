package uec

// draw returns 32 random bits that depend on the seed, an object (link or flow) and the number of its draw.
func draw(seed uint64, object, n uint64) uint32 {
	x := seed*0x9e3779b97f4a7c15 + object*0xd1342543de82ef95 + (n+1)*0xbf58476d1ce4e5b9
	x ^= x >> 31
	x *= 0x94d049bb133111eb
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	return uint32(x >> 32)
}
