package check

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// maxSetRanks is the number of ranks up to which sets list their members.
const maxSetRanks = 1 << 14

// listed are sets as bits by rank.
type listed struct {
	sets   [][]uint64 // set id → members
	byKey  map[string]int32
	key    []byte  // scratch
	unions []union // the last ones, by a hash of the two
}

// union is that of two sets, of which 1 + the ids are a and b.
type union struct{ a, b, id int32 }

// newListed returns the sets of each of n ranks alone, and that of all.
func newListed(n int) (m *listed, all int32) {
	m = &listed{byKey: map[string]int32{}, unions: make([]union, 1<<min(16, bits.Len(uint(16*n*n-1))))}
	words := (n + 63) / 64
	whole := make([]uint64, words)
	for r := range n {
		one := make([]uint64, words)
		one[r/64] = 1 << (r % 64)
		whole[r/64] |= 1 << (r % 64)
		m.intern(one)
	}
	return m, m.intern(whole)
}

func (m *listed) intern(set []uint64) int32 {
	m.key = m.key[:0]
	for _, w := range set {
		m.key = binary.LittleEndian.AppendUint64(m.key, w)
	}
	if id, ok := m.byKey[string(m.key)]; ok {
		return id
	}
	id := int32(len(m.sets))
	m.sets = append(m.sets, set)
	m.byKey[string(m.key)] = id
	return id
}

func (m *listed) union(a, b int32) (int32, error) {
	kept := &m.unions[scramble(uint64(a)<<32|uint64(b))&uint64(len(m.unions)-1)]
	if kept.a == a+1 && kept.b == b+1 {
		return kept.id, nil
	}
	sum := slices.Clone(m.sets[a])
	for i, w := range m.sets[b] {
		if both := sum[i] & w; both != 0 {
			return 0, fmt.Errorf("contribution of rank %d twice", i*64+bits.TrailingZeros64(both))
		}
		sum[i] |= w
	}
	*kept = union{a + 1, b + 1, m.intern(sum)}
	return kept.id, nil
}

func (m *listed) members(id int32) string {
	var out []int
	for i, w := range m.sets[id] {
		for ; w != 0; w &= w - 1 {
			out = append(out, i*64+bits.TrailingZeros64(w))
		}
	}
	if len(out) > 8 {
		return fmt.Sprintf("%v… (%d)", out[:8], len(out))
	}
	return fmt.Sprint(out)
}

// summed are sets of many ranks, each known by how many members it has and by two
// sums of 64 bits that are drawn for each member: what is there twice or missing
// shows in them, save by a chance of 1 in 2^128 for each set.
type summed struct {
	sums  []sum // set id → its sum
	byKey map[sum]int32
}

type sum struct {
	a, b uint64
	n    int64
}

// newSummed returns the sets of each of n ranks alone, and that of all.
func newSummed(n int) (m *summed, all int32) {
	m = &summed{byKey: make(map[sum]int32, 2*n)}
	var whole sum
	for r := range uint64(n) {
		one := sum{scramble(2*r + 1), scramble(2*r + 2), 1}
		m.intern(one)
		whole = whole.with(one)
	}
	return m, m.intern(whole)
}

// scramble is the output function of SplitMix64 (Steele, Lea and Flood, Fast
// splittable pseudorandom number generators, 2014) at the x-th state.
func scramble(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (s sum) with(o sum) sum { return sum{s.a + o.a, s.b + o.b, s.n + o.n} }

func (m *summed) intern(s sum) int32 {
	if id, ok := m.byKey[s]; ok {
		return id
	}
	id := int32(len(m.sums))
	m.sums = append(m.sums, s)
	m.byKey[s] = id
	return id
}

// union adds the members of both. One that is in both makes a sum that no set has,
// which is found where the result is compared.
func (m *summed) union(a, b int32) (int32, error) { return m.intern(m.sums[a].with(m.sums[b])), nil }

func (m *summed) members(id int32) string {
	if s := m.sums[id]; s.n > 1 {
		return fmt.Sprintf("%d contributions", s.n)
	}
	return fmt.Sprintf("[%d]", id)
}
