package sim

// normal returns a standard normal variate that is a pure function of its
// keys: every rank, channel and piece has a stream of its own, so that adding
// a consumer disturbs no other. It is the sum of twelve uniforms less six.
func normal(seed, a, b, c uint64) float64 {
	x := mix(seed ^ mix(a+0x632be59bd9b4e019) ^ mix(b+0x9e6c63d0876a9a47) ^ mix(c+0xd1b54a32d192ed03))
	var sum uint64
	for range 3 {
		x = mix(x + 0x9e3779b97f4a7c15)
		sum += x&0xffff + x>>16&0xffff + x>>32&0xffff + x>>48
	}
	return float64(sum)/65536 - 6
}

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
