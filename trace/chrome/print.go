package chrome

import (
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// pairs holds the numbers 00 to 99 as two digits each.
const pairs = "0001020304050607080910111213141516171819" +
	"2021222324252627282930313233343536373839" +
	"4041424344454647484950515253545556575859" +
	"6061626364656667686970717273747576777879" +
	"8081828384858687888990919293949596979899"

// wholePowers of ten: element i is the least number of i+1 digits; element 0 is 0.
var wholePowers = [...]uint64{0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14,
	1e15, 1e16, 1e17, 1e18, 1e19}

// width returns the number of decimal digits; 1 for 0.
func width(v uint64) int {
	n := bits.Len64(v|1) * 1233 >> 12 // log10 of 2, rounded down
	if v >= wholePowers[n] {
		n++
	}
	return n
}

// extend lengthens b by n bytes with undefined content.
func extend(b []byte, n int) []byte {
	if cap(b)-len(b) < n {
		b = slices.Grow(b, n)
	}
	return b[:len(b)+n]
}

// fill writes a number in decimal so that it ends at the end of b.
func fill(b []byte, v uint64) {
	i := len(b)
	for v >= 100 {
		q := v / 100
		r := 2 * (v - 100*q)
		i -= 2
		b[i], b[i+1] = pairs[r], pairs[r+1]
		v = q
	}
	if v >= 10 {
		b[i-2] = pairs[2*v]
	}
	b[i-1] = pairs[2*v+1]
}

// appendUint appends a number in decimal.
func appendUint(b []byte, v uint64) []byte {
	if v < 10 {
		return append(b, '0'+byte(v))
	}
	n := width(v)
	b = extend(b, n)
	fill(b[len(b)-n:], v)
	return b
}

// appendInt appends a number in decimal.
func appendInt(b []byte, v int64) []byte {
	if v < 0 {
		return appendUint(append(b, '-'), -uint64(v))
	}
	return appendUint(b, uint64(v))
}

// appendMicros appends a number of nanoseconds as microseconds with three decimals.
func appendMicros(b []byte, ns int64) []byte {
	u := uint64(ns)
	if ns < 0 {
		b, u = append(b, '-'), -u
	}
	whole := u / 1000
	f := u - 1000*whole
	n := width(whole)
	b = extend(b, n+4)
	fill(b[len(b)-n-4:len(b)-4], whole)
	h := f / 100
	r := 2 * (f - 100*h)
	end := b[len(b)-4:]
	end[0], end[1], end[2], end[3] = '.', '0'+byte(h), pairs[r], pairs[r+1]
	return b
}

// floats prints numbers as JSON does, with the fewest digits that parse to the same number. It caches the
// text of numbers that repeat; the zero value is ready. It is not safe for concurrent use.
type floats struct{ near [512]nearFloat }

// nearFloat is a cached number with its text; n is 0 if unused.
type nearFloat struct {
	bits uint64
	n    uint8
	text [23]byte
}

// Append appends a number; null for one that JSON cannot express.
func (f *floats) Append(b []byte, v float64) []byte {
	if thousandths := v * 1e3; thousandths >= 1 && thousandths < exact {
		if n := uint64(thousandths + 0.5); float64(n)/1e3 == v {
			return appendFixed(b, n, 1000)
		}
	}
	bits := math.Float64bits(v)
	m := &f.near[bits*0x9e3779b97f4a7c15>>(64-9)]
	if m.bits != bits || m.n == 0 {
		from := len(b)
		b = appendFloat(b, v)
		if n := len(b) - from; n <= len(m.text) {
			m.bits, m.n = bits, uint8(n)
			copy(m.text[:], b[from:])
		}
		return b
	}
	return append(b, m.text[:m.n]...)
}

// exact bounds numbers of 15 digits: no two of them with the same number of decimals are the same float64, so
// a float64 nearest to such a number is printed as that number.
const exact = 1e15

// appendFloat appends a number in the shortest text that reads as v; JSON has no NaN and infinity: null.
func appendFloat(b []byte, v float64) []byte {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return append(b, "null"...)
	case v == 0:
		return append(b, '0')
	case a >= exact || a < 1e-6:
		return strconv.AppendFloat(b, v, 'e', -1, 64)
	}
	if millionths := v * 1e6; millionths >= 1 && millionths < exact {
		if n := uint64(millionths + 0.5); float64(n)/1e6 == v {
			return appendFixed(b, n, 1000000)
		}
	}
	return strconv.AppendFloat(b, v, 'f', -1, 64)
}

// appendFixed appends n/one in decimal, without trailing zeros; one is a power of ten.
func appendFixed(b []byte, n, one uint64) []byte {
	whole := n / one
	b = appendUint(b, whole)
	f := n - whole*one
	if f == 0 {
		return b
	}
	b = append(b, '.')
	for f > 0 {
		one /= 10
		d := f / one
		b = append(b, '0'+byte(d))
		f -= d * one
	}
	return b
}
