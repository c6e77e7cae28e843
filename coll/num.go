package coll

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Element returns element i of b as a float64. 64-bit integers beyond 2⁵³ lose
// their low bits.
func Element(t DataType, b []byte, i int) float64 {
	switch t {
	case Float16, BFloat16, Float8e4m3, Float8e5m2:
		f := small[t]
		return f.decode(uint32(bitsAt(t, b, i)))
	case Float32:
		return float64(math.Float32frombits(uint32(bitsAt(t, b, i))))
	case Float64:
		return math.Float64frombits(bitsAt(t, b, i))
	case Uint8, Uint32, Uint64:
		return float64(bitsAt(t, b, i))
	}
	return float64(signed(t, bitsAt(t, b, i)))
}

// PutElement stores v, rounded to the type (to nearest, ties to even; toward zero for
// integers), as element i.
func PutElement(t DataType, b []byte, i int, v float64) {
	var bits uint64
	switch t {
	case Float16, BFloat16, Float8e4m3, Float8e5m2:
		f := small[t]
		bits = uint64(f.encode(v))
	case Float32:
		bits = uint64(math.Float32bits(float32(v)))
	case Float64:
		bits = math.Float64bits(v)
	case Uint64:
		bits = uint64(v)
	default:
		bits = uint64(int64(v))
	}
	setBits(t, b, i, bits)
}

// ReduceElements combines src into dst element by element: dst = dst op src. Integers
// wrap. Avg adds, as NCCL does before it scales.
func ReduceElements(t DataType, op RedOp, dst, src []byte) error {
	size := int(t.Size())
	if size == 0 || !op.Valid() || len(dst) != len(src) || len(dst)%size != 0 {
		return fmt.Errorf("cannot reduce %d and %d bytes of %v by %v", len(dst), len(src), t, op)
	}
	for i := range len(dst) / size {
		if t.IsFloat() {
			PutElement(t, dst, i, floatOp(t, op, Element(t, dst, i), Element(t, src, i)))
			continue
		}
		setBits(t, dst, i, intOp(t, op, bitsAt(t, dst, i), bitsAt(t, src, i)))
	}
	return nil
}

// DivideElements divides every element by n: the scaling of Avg, toward zero for
// integers.
func DivideElements(t DataType, b []byte, n int) {
	for i := range len(b) / int(t.Size()) {
		switch {
		case t.IsFloat():
			PutElement(t, b, i, Element(t, b, i)/float64(n))
		case t == Uint64 || t == Uint32 || t == Uint8:
			setBits(t, b, i, bitsAt(t, b, i)/uint64(n))
		default:
			setBits(t, b, i, uint64(signed(t, bitsAt(t, b, i))/int64(n)))
		}
	}
}

// ScaleElements multiplies elements by one; products of integers wrap.
func ScaleElements(t DataType, b, scalar []byte) {
	le := binary.LittleEndian
	if t == Int64 || t == Uint64 {
		by := le.Uint64(scalar)
		for ; len(b) >= 8; b = b[8:] {
			le.PutUint64(b, le.Uint64(b)*by)
		}
		return
	}
	by := Element(t, scalar, 0)
	for k := range len(b) / int(t.Size()) {
		PutElement(t, b, k, Element(t, b, k)*by)
	}
}

func floatOp(t DataType, op RedOp, a, b float64) float64 {
	switch op {
	case Prod:
		if t == Float32 {
			return float64(float32(a) * float32(b))
		}
		return a * b
	case Max:
		return math.Max(a, b)
	case Min:
		return math.Min(a, b)
	}
	// The sum of two values of up to 32 bits is exact enough in float64 to be
	// rounded once more.
	return a + b
}

func intOp(t DataType, op RedOp, a, b uint64) uint64 {
	less := a < b
	if t != Uint8 && t != Uint32 && t != Uint64 {
		less = signed(t, a) < signed(t, b)
	}
	switch op {
	case Prod:
		return a * b
	case Max:
		if less {
			return b
		}
		return a
	case Min:
		if less {
			return a
		}
		return b
	}
	return a + b
}

// signed extends the sign of an element's bits.
func signed(t DataType, bits uint64) int64 {
	shift := 64 - 8*uint(t.Size())
	return int64(bits<<shift) >> shift
}

func bitsAt(t DataType, b []byte, i int) uint64 {
	switch t.Size() {
	case 1:
		return uint64(b[i])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b[2*i:]))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return binary.LittleEndian.Uint64(b[8*i:])
}

func setBits(t DataType, b []byte, i int, v uint64) {
	switch t.Size() {
	case 1:
		b[i] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b[2*i:], uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
	default:
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
}

// format describes a small float. Where inf, the highest exponent means
// infinity and NaN; otherwise only all ones is NaN. Where saturate, overflow
// gives the largest finite value, as CUDA's conversion to FP8 does.
type format struct {
	exp, man      int
	inf, saturate bool
}

var small = [NumDataTypes]format{
	Float16:    {5, 10, true, false},
	BFloat16:   {8, 7, true, false},
	Float8e4m3: {4, 3, false, true},
	Float8e5m2: {5, 2, true, true},
}

func (f format) bias() int { return 1<<(f.exp-1) - 1 }

func (f format) decode(b uint32) float64 {
	man := b & (1<<f.man - 1)
	exp := int(b >> f.man & (1<<f.exp - 1))
	sign := 1.0
	if b>>(f.exp+f.man)&1 == 1 {
		sign = -1
	}
	top := 1<<f.exp - 1
	switch {
	case exp == top && f.inf && man == 0:
		return math.Inf(int(sign))
	case exp == top && (f.inf || man == 1<<f.man-1):
		return math.NaN()
	case exp == 0:
		return sign * math.Ldexp(float64(man), 1-f.bias()-f.man)
	}
	return sign * math.Ldexp(float64(man|1<<f.man), exp-f.bias()-f.man)
}

func (f format) encode(v float64) uint32 {
	sign := uint32(0)
	if math.Signbit(v) {
		sign, v = 1<<(f.exp+f.man), -v
	}
	top := uint32(1<<f.exp - 1)
	if math.IsNaN(v) {
		return top<<f.man | (1<<f.man - 1)
	}
	infinity := top << f.man // also the first code beyond the largest with inf
	if !f.inf {
		infinity = top<<f.man | (1<<f.man - 1)
	}
	// The codes of positive values are in the order of the values, so the code
	// is the value in units of the last place of its binade, plus the binade.
	if v == 0 {
		return sign
	}
	_, e := math.Frexp(min(v, math.MaxFloat64))
	e = max(e-1, 1-f.bias())
	code := infinity
	if e <= f.bias()+1 {
		code = uint32(math.RoundToEven(math.Ldexp(v, f.man-e))) + uint32(e-1+f.bias())<<f.man
	}
	if code >= infinity {
		code = infinity
		if f.saturate {
			code = infinity - 1
		}
	}
	return sign | code
}
