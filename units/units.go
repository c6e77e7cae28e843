// Package units holds the quantities every other room measures with: bytes,
// picoseconds and link rates. It is the only place that converts between them.
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

// Mbps is the `speed` attribute of a <net> element: 10⁶ bits per second.
type Mbps int64

// Micros returns t in microseconds.
func (t Time) Micros() float64 { return float64(t) / float64(Microsecond) }

// FromMicros rounds a number of microseconds to picoseconds.
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

// ParseBytes reads a size as nccl-tests does ("8", "32M", "1.5G"; K, M, G
// binary, either case).
func ParseBytes(s string) (Bytes, error) {
	mult := 1.0
	num := strings.TrimSpace(s)
	if num == "" {
		return 0, fmt.Errorf("size %q: empty; write for example 32M", s)
	}
	switch num[len(num)-1] {
	case 'k', 'K':
		mult, num = 1<<10, num[:len(num)-1]
	case 'm', 'M':
		mult, num = 1<<20, num[:len(num)-1]
	case 'g', 'G':
		mult, num = 1<<30, num[:len(num)-1]
	}
	v, err := strconv.ParseFloat(num, 64)
	if err != nil || v < 0 || math.IsNaN(v) || v*mult > float64(math.MaxInt64/2) {
		return 0, fmt.Errorf("size %q: not a size; write a number with K, M or G, for example 32M", s)
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
