// Package variates generates random variates that are pure functions of their keys: one stream for each rank,
// channel and piece, so that an additional consumer does not change the others.
package variates

// Normal returns a standard normal variate that is a pure function of its
// keys: every rank, channel and piece has a stream of its own, so that adding
// a consumer disturbs no other. It is the sum of twelve uniforms less six.
func Normal(seed, a, b, c uint64) float64 { return StreamOf(seed, a, b).Normal(c) }

// Stream is all of a variate's keys but the last.
type Stream uint64

// StreamOf returns the stream of a seed and two keys.
func StreamOf(seed, a, b uint64) Stream {
	return Stream(seed ^ Mix(a+0x632be59bd9b4e019) ^ Mix(b+0x9e6c63d0876a9a47))
}

// Normal returns variate c of the stream, approximately normal: the centred sum of twelve uniform variates.
func (s Stream) Normal(c uint64) float64 {
	x := Mix(uint64(s) ^ Mix(c+0xd1b54a32d192ed03))
	var sum uint64
	for range 3 {
		x = Mix(x + 0x9e3779b97f4a7c15)
		sum += x&0xffff + x>>16&0xffff + x>>32&0xffff + x>>48
	}
	return float64(sum)/65536 - 6
}

// Mix hashes 64 bits to 64 bits; it is the finaliser of SplitMix64, a bijection.
func Mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Uniform returns a variate in (0, 1) that is a pure function of its keys.
func Uniform(seed, a, b uint64) float64 {
	x := Mix(seed ^ Mix(a+0x632be59bd9b4e019) ^ Mix(b+0x9e6c63d0876a9a47))
	return (float64(Mix(x+0x9e3779b97f4a7c15)>>11) + 0.5) / (1 << 53)
}

// Multiset identifies a multiset: two sums of 64-bit hashes, which do not depend
// on the order in which its members are added. The zero value is the empty one.
type Multiset struct{ a, b uint64 }

// Add adds n copies of an element to the multiset.
func (p *Multiset) Add(thing uint64, n int32) {
	p.a += Mix(thing+0x9e3779b97f4a7c15) * uint64(n)
	p.b += Mix(thing^0xd1b54a32d192ed03) * uint64(n)
}

// Key returns a hash of the multiset, independent of the order of Add.
func (p *Multiset) Key() uint64 { return p.a }
