package units

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseBytes(t *testing.T) {
	for in, want := range map[string]Bytes{
		"8": 8, "0": 0, "32M": 32 << 20, "32m": 32 << 20, "1.5G": 3 << 29, "1e3": 1000, "4 K": 4096,
		" 7 ": 7, "32MB": 32 << 20, "32MiB": 32 << 20, "0.3K": 307, "2.9": 2,
	} {
		if got, err := ParseBytes(in); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for in, part := range map[string]string{
		"": "empty", "M": "not a number", "32X": "not a number", "32B": "not a unit", "32KM": "not a unit",
		"-1":  "negative",
		"nan": "not a number", "inf": "too large", "1e30": "too large", "9999999999G": "too large",
		"K32": "not a number",
	} {
		if got, err := ParseBytes(in); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("ParseBytes(%q) = %d, %v; want a complaint of %q", in, got, err, part)
		}
	}
}

func TestTimePrintsFromIntegers(t *testing.T) {
	for in, want := range map[Time]string{
		0: "0.000000us", 1: "0.000001us", -1: "-0.000001us", 1500000: "1.500000us", 3*Second +
			20: "3000000.000020us",
	} {
		if got := in.String(); got != want {
			t.Errorf("%d ps prints %s, want %s", int64(in), got, want)
		}
	}
}

// TestOver: a byte at 400 Gb/s lasts 20 ps, and in general the time is the
// nearest picosecond to bytes ÷ rate, by exact arithmetic.
func TestOver(t *testing.T) {
	if got := Bytes(1).Over(50); got != 20 {
		t.Errorf("a byte at 50 GB/s lasts %d ps", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		b := Bytes(rapid.Int64Range(0, 1<<40).Draw(t, "bytes"))
		r := GBps(rapid.Float32Range(0.001, 5000).Draw(t, "rate"))
		got := new(big.Rat).SetInt64(int64(b.Over(r)))
		want := new(big.Rat).Quo(new(big.Rat).SetInt64(int64(b)*1000), new(big.Rat).SetFloat64(float64(r)))
		off, _ := new(big.Rat).Sub(got, want).Float64()
		exact, _ := want.Float64()
		if off < 0 {
			off = -off
		}
		if off > 0.5+exact*1e-15 {
			t.Fatalf("%d bytes at %v: %v ps, off by %v", b, r, b.Over(r), off)
		}
	})
	defer func() {
		if recover() == nil {
			t.Error("a link without a rate passed")
		}
	}()
	Bytes(1).Over(0)
}

func TestMicrosGoThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Time(rapid.Int64Range(-1<<50, 1<<50).Draw(t, "ps"))
		if got := FromMicros(want.Micros()); got != want {
			t.Fatalf("%d became %d", want, got)
		}
	})
}

func TestOpt(t *testing.T) {
	var unset Opt[int]
	if unset.Or(7) != 7 || Some(0).Or(7) != 0 {
		t.Error("an unset option takes the default, a set zero does not")
	}
}

func FuzzParseBytes(f *testing.F) {
	f.Add("32M")
	f.Add("1.5e3 GiB")
	f.Fuzz(func(t *testing.T, s string) {
		if b, err := ParseBytes(s); err == nil {
			if again, err := ParseBytes(fmt.Sprint(int64(b))); b < 0 || err != nil || b < 1<<53 &&
				again != b {
				t.Fatalf("%q gave %d, which reads back as %d, %v", s, b, again, err)
			}
		}
	})
}
