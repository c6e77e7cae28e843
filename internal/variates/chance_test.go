package variates

import (
	"math"
	"testing"
)

// TestMixIsSplitMix64: the first three numbers of seed 0 are those of SplitMix64's reference
// (splitmix64.c of Vigna's).
func TestMixIsSplitMix64(t *testing.T) {
	const golden = 0x9e3779b97f4a7c15
	for i, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f} {
		if got := Mix(golden * uint64(i+1)); got != want {
			t.Errorf("number %d: %#x, want %#x", i, got, want)
		}
	}
}

// TestVariatesOfKeys: a change of any key is another variate, and exchanged keys are other keys.
func TestVariatesOfKeys(t *testing.T) {
	seen := map[uint64][]uint64{}
	for _, k := range [][]uint64{{1, 2, 3, 4}, {2, 1, 3, 4}, {1, 3, 2, 4}, {1, 2, 4, 3}, {0, 2, 3, 4},
		{1, 0, 3, 4}, {1, 2, 0, 4}, {1, 2, 3, 0}, {0, 0, 0, 0}} {
		for i, v := range []float64{Normal(k[0], k[1], k[2], k[3]), Uniform(k[0], k[1], k[2])} {
			if i == 1 && k[3] != 4 {
				continue // it has three keys
			}
			if was := seen[math.Float64bits(v)]; was != nil {
				t.Errorf("%v and %v: both %g", was, k, v)
			}
			seen[math.Float64bits(v)] = k
		}
	}
	if StreamOf(1, 2, 3) != 0x1f394db0900d5d64 || Normal(1, 2, 3, 4) != StreamOf(1, 2, 3).Normal(4) {
		t.Errorf("%#x: what runs draw has changed", StreamOf(1, 2, 3))
	}
}

// TestMoments: uniform variates lie evenly in (0, 1), normal ones have mean 0 and variance 1.
func TestMoments(t *testing.T) {
	const n = 20000
	var mean, square, normal, variance float64
	for i := range uint64(n) {
		u, x := Uniform(7, i, 1), Normal(7, 1, 2, i)
		if u <= 0 || u >= 1 {
			t.Fatalf("uniform %g", u)
		}
		mean, square, normal, variance = mean+u/n, square+u*u/n, normal+x/n, variance+x*x/n
	}
	for _, m := range []struct {
		name      string
		got, want float64
	}{{"mean", mean, 0.5}, {"square", square, 1.0 / 3}, {"normal", normal, 0}, {"variance", variance, 1}} {
		if math.Abs(m.got-m.want) > 0.02 {
			t.Errorf("%s %g, want %g", m.name, m.got, m.want)
		}
	}
}

// TestMultisetsForgetOrder: what was added counts, and how often, and not in which order.
func TestMultisetsForgetOrder(t *testing.T) {
	of := func(things ...uint64) (p Multiset) {
		for _, x := range things {
			p.Add(x, 1)
		}
		return p
	}
	var twice Multiset
	twice.Add(5, 2)
	twice.Add(9, 1)
	if of(5, 9, 5) != of(9, 5, 5) || of(5, 5, 9) != twice {
		t.Error("equal ones differ")
	}
	keys := map[uint64]int{}
	for i, p := range []Multiset{of(), of(0), of(5), of(5, 5), of(5, 9), of(9), twice} {
		if was, there := keys[p.Key()]; there {
			t.Errorf("%d and %d have one key", was, i)
		}
		keys[p.Key()] = i
	}
}
