package cnum

import (
	"math"
	"strings"
	"testing"
)

// TestIntReadsAsStrtol: blanks, a sign, the base by 0x and 0, up to what does not fit; the largest where it
// is too large.
func TestIntReadsAsStrtol(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int64
		ok   bool
	}{
		{"", 0, false}, {"0", 0, true}, {"12", 12, true}, {" \t\n\v\f\r5", 5, true}, {"-7", -7, true},
		{"+7", 7, true}, {"-", 0, false}, {"--7", 0, false}, {"0x1F", 31, true}, {"0X1f", 31, true},
		{"-0xf", -15, true}, {"0x", 0, false}, {"0xg", 0, false}, {"010", 8, true}, {"017", 15, true},
		{"018", 1, false}, {"12a", 12, false}, {"12 ", 12, false}, {"9223372036854775807", math.MaxInt64,
			true},
		{"9223372036854775808", math.MaxInt64, true}, {"0x7fffffffffffffff", math.MaxInt64, true},
		{"99999999999999999999", math.MaxInt64, true},
	} {
		if n, ok := Int(c.text); n != c.n || ok != c.ok {
			t.Errorf("%q: %d %t, want %d %t", c.text, n, ok, c.n, c.ok)
		}
	}
}

// TestHexReadsAsStrtoull: of base 16, with 0x or without, the largest where it is too large.
func TestHexReadsAsStrtoull(t *testing.T) {
	for text, want := range map[string]uint64{"": 0, "ff": 255, "0xff": 255, " \t0XFF": 255, "0x": 0,
		"0xg": 0,
		"12g": 0x12, strings.Repeat("f", 16): math.MaxUint64, strings.Repeat("f", 17): math.MaxUint64,
		"1" + strings.Repeat("0", 16): math.MaxUint64, "10": 16} {
		if got := Hex(text); got != want {
			t.Errorf("%q: %#x, want %#x", text, got, want)
		}
	}
	for i, c := range "0123456789abcdef" {
		for _, s := range []string{string(c), strings.ToUpper(string(c))} {
			if got := Hex(s); got != uint64(i) {
				t.Errorf("%q: %d, want %d", s, got, i)
			}
		}
	}
	for _, c := range "/:@G`g" { // beside the digits
		if got := Hex("1" + string(c) + "1"); got != 1 {
			t.Errorf("%q is a digit: %#x", c, got)
		}
	}
}

// TestBusIDsAreTheirHexDigits: up to the first other character (utils.cc:30), and back (utils.cc:25).
func TestBusIDsAreTheirHexDigits(t *testing.T) {
	for text, want := range map[string]int64{"0000:3b:00.0": 0x3b000, "0001:a5:1f.7": 0x1a51f7,
		"0000:3b:zz.0": 0x3b, "": 0, "1234:56:78.1234567890": 0x1234567812345678,
		"ffff:ff:ff.ffffffff": math.MaxInt64} {
		if got := BusID(text); got != want {
			t.Errorf("%q: %#x, want %#x", text, got, want)
		}
	}
	for _, text := range []string{"0000:3b:00.0", "0001:a5:1f.7", "ffff:ff:ff.f", "12345:00:10.1"} {
		if got := BusIDText(BusID(text)); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// TestFloatReadsAsStrtof: the number at the begin.
func TestFloatReadsAsStrtof(t *testing.T) {
	for text, want := range map[string]float32{"": 0, "abc": 0, "1.5": 1.5, " 16.0 GT/s PCIe": 16, "1e": 1,
		"1e2x": 100, "-2.5x": -2.5, "\t\n8": 8, "5": 5} {
		if got := Float(text); got != want {
			t.Errorf("%q: %g, want %g", text, got, want)
		}
	}
}
