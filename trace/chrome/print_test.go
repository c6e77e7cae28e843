package chrome

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// ints are numbers about every power of two and of ten.
func ints() (list []int64) {
	for p := range 64 {
		list = append(list, 1<<p, 1<<p-1, 1<<p+1)
	}
	for p := int64(1); p > 0 && p <= 1e18; p *= 10 {
		list = append(list, p, p-1, p+1, 5*p)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		list = append(list, r.Int64()>>r.IntN(63))
	}
	for _, v := range list[:len(list):len(list)] {
		list = append(list, -v)
	}
	return append(list, 0, math.MaxInt64, math.MinInt64)
}

func TestWholeNumbersAreThoseOfStrconv(t *testing.T) {
	for _, v := range ints() {
		if got, want := string(appendInt([]byte("x"), v)), "x"+strconv.FormatInt(v, 10); got != want {
			t.Fatalf("%d is printed as %s", v, got)
		}
		if got, want := string(appendUint(nil, uint64(v))), strconv.FormatUint(uint64(v), 10); got != want {
			t.Fatalf("%s is printed as %s", want, got)
		}
	}
}

func TestMicrosAreNanosecondsByAThousand(t *testing.T) {
	for _, v := range ints() {
		u, sign := uint64(v), ""
		if v < 0 {
			u, sign = -u, "-"
		}
		if got, want := string(appendMicros([]byte("x"), v)), fmt.Sprintf("x%s%d.%03d", sign, u/1000,
			u%1000); got != want {
			t.Fatalf("%d ns are printed as %s, want %s", v, got, want)
		}
	}
}

// reference is what a number is printed as by strconv alone.
func reference(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "null"
	case v == 0:
		return "0"
	case a < 1e15 && a >= 1e-6:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'e', -1, 64)
}

// Numbers as traces have them, their neighbours, and any bits at all are printed as
// by strconv, for the first time and again.
func TestFloatsAreThoseOfStrconv(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	list := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1e15, 1e-6, 1e12, 1e9,
		0.001, 0.0005, 1e-3 / 2, 999999999999.9995, math.MaxFloat64, math.SmallestNonzeroFloat64}
	for range 50000 {
		n := float64(r.Int64() >> (10 + r.IntN(53)))
		for _, v := range []float64{n / 1e3, n / 1e6, n * 1e-6, n * 1e-3, n / 100, n / 1e7, n} {
			list = append(list, v, -v, math.Nextafter(v, math.Inf(1)), math.Nextafter(v, 0))
		}
		list = append(list, math.Float64frombits(r.Uint64()), r.Float64(), r.ExpFloat64()*1e3)
	}
	var f floats
	for i, v := range list {
		want := reference(v)
		for range 2 {
			if got := string(f.Append(nil, v)); got != want {
				t.Fatalf("%x, the %d-th, is printed as %s, want %s", math.Float64bits(v), i, got, want)
			}
		}
	}
}

func FuzzFloats(f *testing.F) {
	f.Add(uint64(0x3ff0000000000000))
	f.Add(math.Float64bits(318.11666399999996))
	f.Fuzz(func(t *testing.T, bits uint64) {
		v := math.Float64frombits(bits)
		if got := string(new(floats).Append(nil, v)); got != reference(v) {
			t.Errorf("%x is printed as %s, want %s", bits, got, reference(v))
		}
	})
}
