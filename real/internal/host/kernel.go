package host

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
)

// kernel is the arithmetic of one element type and reduction.
type kernel struct {
	typ  coll.DataType
	red  coll.RedOp
	size int
	// combine reduces src into dst, element by element; both hold whole
	// elements and have equal length.
	combine func(dst, src []byte)
	// scale is the last step of avg: it divides by the number of ranks.
	scale func(val []byte, n int)
	// put encodes a small integer.
	put func(b []byte, v int)
}

type number interface {
	~int8 | ~uint8 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

// newKernel returns the reduction red over elements of type t.
func newKernel(t coll.DataType, red coll.RedOp) (*kernel, error) {
	k := &kernel{typ: t, red: red, size: int(t.Size())}
	switch t {
	case coll.Int8:
		native[int8](k)
	case coll.Uint8:
		native[uint8](k)
	case coll.Int32:
		native[int32](k)
	case coll.Uint32:
		native[uint32](k)
	case coll.Int64:
		native[int64](k)
	case coll.Uint64:
		native[uint64](k)
	case coll.Float32:
		native[float32](k)
	case coll.Float64:
		native[float64](k)
	case coll.Float16:
		narrow(k, 5, 10)
	case coll.BFloat16:
		narrow(k, 8, 7)
	case coll.Float8e5m2:
		narrow(k, 5, 2)
	case coll.Float8e4m3:
		narrow(k, 4, 3)
	default:
		return nil, &exec.NotImplementedError{Feature: fmt.Sprintf("host arithmetic of %v", t),
			Missing: "its number format"}
	}
	return k, nil
}

func native[T number](k *kernel) {
	f := combiner[T](k.red)
	view := func(b []byte) []T {
		if len(b) == 0 {
			return nil
		}
		if uintptr(unsafe.Pointer(&b[0]))%unsafe.Sizeof(T(0)) != 0 {
			return nil
		}
		return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/k.size)
	}
	k.combine = func(dst, src []byte) {
		d, s := view(dst), view(src)
		if d == nil || s == nil {
			unaligned(dst, src, k.size, f)
			return
		}
		for i := range d {
			d[i] = f(d[i], s[i])
		}
	}
	k.scale = func(val []byte, n int) {
		one := make([]byte, k.size)
		for i := 0; i+k.size <= len(val); i += k.size {
			copy(one, val[i:])
			p := (*T)(unsafe.Pointer(&one[0]))
			*p /= T(n)
			copy(val[i:], one)
		}
	}
	k.put = func(b []byte, v int) {
		x := T(v)
		copy(b, unsafe.Slice((*byte)(unsafe.Pointer(&x)), k.size))
	}
}

// unaligned reduces elements at unaligned addresses, one by one.
func unaligned[T number](dst, src []byte, size int, f func(a, b T) T) {
	var a, b T
	pa, pb := unsafe.Slice((*byte)(unsafe.Pointer(&a)), size), unsafe.Slice((*byte)(unsafe.Pointer(&b)), size)
	for i := 0; i+size <= len(dst); i += size {
		copy(pa, dst[i:i+size])
		copy(pb, src[i:i+size])
		a = f(a, b)
		copy(dst[i:], pa)
	}
}

func combiner[T number](red coll.RedOp) func(a, b T) T {
	switch red {
	case coll.Prod:
		return func(a, b T) T { return a * b }
	case coll.Max:
		return func(a, b T) T { return max(a, b) }
	case coll.Min:
		return func(a, b T) T { return min(a, b) }
	}
	return func(a, b T) T { return a + b }
}

// narrow sets up a floating-point type without hardware support: combined in float32 and rounded to nearest
// even after each step.
func narrow(k *kernel, expBits, manBits int) {
	f := combiner[float32](k.red)
	get := func(b []byte) float32 {
		u := uint32(b[0])
		if k.size == 2 {
			u = uint32(binary.LittleEndian.Uint16(b))
		}
		return widen(u, expBits, manBits)
	}
	put := func(b []byte, v float32) {
		u := round(v, expBits, manBits)
		b[0] = byte(u)
		if k.size == 2 {
			binary.LittleEndian.PutUint16(b, uint16(u))
		}
	}
	k.combine = func(dst, src []byte) {
		for i := 0; i+k.size <= len(dst); i += k.size {
			put(dst[i:], f(get(dst[i:]), get(src[i:])))
		}
	}
	k.scale = func(val []byte, n int) {
		for i := 0; i+k.size <= len(val); i += k.size {
			put(val[i:], get(val[i:])/float32(n))
		}
	}
	k.put = func(b []byte, v int) { put(b, float32(v)) }
}

// widen decodes a float with the given field widths. e4m3 has no infinities: its top exponent holds numbers,
// and all ones is NaN.
func widen(u uint32, expBits, manBits int) float32 {
	man := u & (1<<manBits - 1)
	exp := int(u>>manBits) & (1<<expBits - 1)
	sign := float64(1)
	if u>>(expBits+manBits)&1 == 1 {
		sign = -1
	}
	bias := 1<<(expBits-1) - 1
	top := 1<<expBits - 1
	switch {
	case exp == top && expBits != 4:
		if man != 0 {
			return float32(math.NaN())
		}
		return float32(math.Inf(int(sign)))
	case exp == top && man == 1<<manBits-1:
		return float32(math.NaN())
	case exp == 0:
		return float32(sign * math.Ldexp(float64(man), 1-bias-manBits))
	}
	return float32(sign * math.Ldexp(float64(man|1<<manBits), exp-bias-manBits))
}

// round encodes to nearest even; too large values become infinity, or the largest number in e4m3.
func round(v float32, expBits, manBits int) uint32 {
	sign := uint32(0)
	if math.Signbit(float64(v)) {
		sign = 1 << (expBits + manBits)
	}
	bias := 1<<(expBits-1) - 1
	top := uint32(1<<expBits-1) << manBits
	a := math.Abs(float64(v))
	switch {
	case a != a:
		return sign | top | (1<<manBits - 1)
	case a == 0:
		return sign
	}
	_, e := math.Frexp(a)
	exp := max(e-1, 1-bias)
	man := uint32(math.RoundToEven(math.Ldexp(a, manBits-exp)))
	u := man
	if man >= 1<<manBits {
		u = uint32(exp+bias)<<manBits + man - 1<<manBits
	}
	if expBits == 4 {
		return sign | min(u, top|(1<<manBits-2))
	}
	return sign | min(u, top)
}
