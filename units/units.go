// Package units defines the quantities of all other packages: bytes, picoseconds and link rates. All
// conversions between them are here.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size in memory or on a wire.
type Bytes int64

// Time is a span or an instant of a run in picoseconds. A byte at 400 Gb/s
// lasts 20 ps, so nanoseconds would round every packet; int64 spans 106 days.
type Time int64

// Spans of time.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// GBps is a rate of 10⁹ bytes per second, float32 as NCCL computes with it.
type GBps float32

// Micros returns t in microseconds.
func (t Time) Micros() float64 { return float64(t) / float64(Microsecond) }

// FromMicros converts microseconds to picoseconds, rounded.
func FromMicros(us float64) Time { return Time(math.RoundToEven(us * float64(Microsecond))) }

// String prints t in microseconds with six decimals, from integers only, so
// that equal times always give equal text.
func (t Time) String() string {
	sign := ""
	if t < 0 {
		sign, t = "-", -t
	}
	return fmt.Sprintf("%s%d.%06dus", sign, t/Microsecond, t%Microsecond)
}

// Over returns the time that b bytes take at rate r; it panics on r <= 0
// because a link without a rate is a bug of the caller.
func (b Bytes) Over(r GBps) Time {
	if r <= 0 {
		panic("units: rate must be positive")
	}
	return Time(math.RoundToEven(float64(b) * 1000 / float64(r)))
}

// ParseBytes parses a size like nccl-tests (common.cu:227): a decimal number, then optionally K, M or G
// (binary, either case); a fraction of a byte is truncated: "8", "32M", "1.5G", "32 MB". nccl-tests ignores
// everything after the letter; here only "B" and "iB" may follow. The error says what to write instead.
func ParseBytes(s string) (Bytes, error) {
	bad := func(why string) (Bytes, error) {
		return 0, fmt.Errorf("size %q: %s; write a number with K, M or G, for example 32M", s, why)
	}
	text := strings.TrimSpace(s)
	if text == "" {
		return bad("empty")
	}
	num := strings.TrimRight(text, "KMGBkmgbi ")
	mult := 1.0
	switch strings.ToLower(strings.TrimSpace(text[len(num):])) {
	case "":
	case "k", "kb", "kib":
		mult = 1 << 10
	case "m", "mb", "mib":
		mult = 1 << 20
	case "g", "gb", "gib":
		mult = 1 << 30
	default:
		return bad("not a unit of size")
	}
	v, err := strconv.ParseFloat(num, 64)
	switch {
	case err != nil || math.IsNaN(v):
		return bad("not a number")
	case v < 0:
		return bad("negative")
	case v*mult > math.MaxInt64/2:
		return bad("too large")
	}
	return Bytes(v * mult), nil
}

// Opt is a setting that may be absent; the zero Opt is unset. NCCL's -2
// ("computed") never leaves the config room.
type Opt[T any] struct {
	Value T
	Set   bool
}

// Some returns a set Opt.
func Some[T any](v T) Opt[T] { return Opt[T]{Value: v, Set: true} }

// Or returns the value, or def where it is unset.
func (o Opt[T]) Or(def T) T {
	if o.Set {
		return o.Value
	}
	return def
}
