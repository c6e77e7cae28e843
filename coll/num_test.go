package coll

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestEveryCodeReadsBack: small floats survive decoding and encoding.
func TestEveryCodeReadsBack(t *testing.T) {
	for _, typ := range []DataType{Float16, BFloat16, Float8e4m3, Float8e5m2} {
		n := 1 << (8 * typ.Size())
		b := make([]byte, typ.Size())
		for code := range n {
			setBits(typ, b, 0, uint64(code))
			v := Element(typ, b, 0)
			if math.IsNaN(v) || (math.IsInf(v, 0) && small[typ].saturate) {
				continue
			}
			PutElement(typ, b, 0, v)
			if got := bitsAt(typ, b, 0); got != uint64(code) {
				t.Fatalf("%v: code %#x is %v, which is written as %#x", typ, code, v, got)
			}
		}
	}
}

// TestKnownValues: constants of the formats' definitions.
func TestKnownValues(t *testing.T) {
	for _, tc := range []struct {
		typ  DataType
		v    float64
		bits uint64
	}{
		{Float16, 1, 0x3c00}, {Float16, 65504, 0x7bff}, {Float16, 65520, 0x7c00},
		{Float16, 5.960464477539063e-08, 1},
		{Float16, 2049, 0x6800}, // tie to even
		{BFloat16, -2, 0xc000}, {BFloat16, 3.3895313892515355e38, 0x7f7f},
		{Float8e4m3, 448, 0x7e}, {Float8e4m3, 1e9, 0x7e}, {Float8e4m3, 0.001953125, 1},
		{Float8e4m3, 17, 0x58},
		{Float8e5m2, 57344, 0x7b}, {Float8e5m2, 1e9, 0x7b}, {Float8e5m2, 1.5, 0x3e},
		{Int8, -1, 0xff}, {Uint32, 7, 7}, {Int64, -3, math.MaxUint64 - 2},
		{Float64, 0.5, math.Float64bits(0.5)},
	} {
		b := make([]byte, 8)
		PutElement(tc.typ, b, 0, tc.v)
		if got := bitsAt(tc.typ, b, 0); got != tc.bits {
			t.Errorf("%v %v: %#x, want %#x", tc.typ, tc.v, got, tc.bits)
		}
	}
}

// TestReduceLaws: the order of two operands does not matter, and small whole
// numbers come out exactly.
func TestReduceLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(DataTypes()).Draw(t, "type")
		op := rapid.SampledFrom(RedOps()).Draw(t, "op")
		x, y := float64(rapid.IntRange(0, 2).Draw(t, "x")), float64(rapid.IntRange(0, 2).Draw(t, "y"))
		n := int(typ.Size())
		a, b := make([]byte, 3*n), make([]byte, 3*n)
		for i := range 3 {
			PutElement(typ, a, i, x)
			PutElement(typ, b, i, y)
		}
		c := append([]byte(nil), b...)
		if err := ReduceElements(typ, op, c, a); err != nil {
			t.Fatal(err)
		}
		if err := ReduceElements(typ, op, a, b); err != nil {
			t.Fatal(err)
		}
		want := map[RedOp]float64{Sum: x + y, Avg: x + y, Prod: x * y,
			Max: max(x, y), Min: min(x, y)}[op]
		for i := range 3 {
			if Element(typ, a, i) != want || Element(typ, c, i) != want {
				t.Fatalf("%v %v of %v and %v: %v and %v, want %v", typ, op, x, y, Element(typ, a, i),
					Element(typ, c, i), want)
			}
		}
		DivideElements(typ, a, 1)
		if Element(typ, a, 2) != want {
			t.Fatalf("divided by one: %v", Element(typ, a, 2))
		}
	})
	if err := ReduceElements(Float32, Sum, make([]byte, 8), make([]byte, 4)); err == nil {
		t.Error("unequal sizes reduced")
	}
}

// TestIntegersWrap as in C.
func TestIntegersWrap(t *testing.T) {
	a, b := []byte{0x7f}, []byte{1}
	if err := ReduceElements(Int8, Sum, a, b); err != nil || Element(Int8, a, 0) != -128 {
		t.Errorf("127+1 as int8: %v %v", Element(Int8, a, 0), err)
	}
	a = []byte{0xff}
	if err := ReduceElements(Int8, Max, a, b); err != nil || Element(Int8, a, 0) != 1 {
		t.Errorf("max(-1,1): %v", Element(Int8, a, 0))
	}
	a = []byte{0xff}
	if err := ReduceElements(Uint8, Max, a, b); err != nil || Element(Uint8, a, 0) != 255 {
		t.Errorf("max(255,1): %v", Element(Uint8, a, 0))
	}
	a = []byte{0xf9} // -7
	if DivideElements(Int8, a, 2); Element(Int8, a, 0) != -3 {
		t.Errorf("-7/2: %v", Element(Int8, a, 0))
	}
}
