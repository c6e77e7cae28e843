package simfiles

import (
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/termtext"
)

// rateUnits are ns-3's units of rate in bit/s (network/utils/data-rate.cc).
var rateUnits = []struct {
	names string
	bits  float64
}{
	{"bps b/s", 1}, {"Bps B/s", 8}, {"kbps kb/s Kbps Kb/s", 1e3}, {"kBps kB/s KBps KB/s", 8e3},
	{"Kib/s", 1024}, {"KiB/s", 8192},
	{"Mbps Mb/s", 1e6}, {"MBps MB/s", 8e6}, {"Mib/s", 1 << 20}, {"MiB/s", 8 << 20},
	{"Gbps Gb/s", 1e9}, {"GBps GB/s", 8e9}, {"Gib/s", 1 << 30}, {"GiB/s", 8 << 30},
}

func takeRate(t *wordList, what string) (int64, error) {
	w, err := t.Take(what)
	if err != nil {
		return 0, err
	}
	v, unit, ok := cut(w.Text)
	bits := 0.0
	for _, u := range rateUnits {
		for _, n := range strings.Fields(u.names) {
			if n == unit {
				bits = u.bits
			}
		}
	}
	if unit == "" {
		bits = 1
	}
	if !ok || bits == 0 || !(v*bits >= 0 && v*bits <= 1e15) {
		return 0, t.Fail(w, "%s: %s is not a rate: write one like 100Gbps or 40Mb/s", what,
			termtext.Quote(w.Text, 40))
	}
	return int64(v * bits), nil
}

// cut splits a number from its unit.
func cut(s string) (v float64, unit string, ok bool) {
	n := strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune("+-0123456789.", r) })
	if n < 0 {
		n = len(s)
	}
	v, err := strconv.ParseFloat(s[:n], 64)
	return v, s[n:], err == nil && !math.IsInf(v, 0)
}

// takeDelay takes a delay in whole nanoseconds, truncated as ns-3 does.
func takeDelay(t *wordList, what string) (int64, error) {
	w, err := t.Take(what)
	if err != nil {
		return 0, err
	}
	v, unit, ok := cut(w.Text)
	switch unit { // fractions of a nanosecond are truncated
	case "ps":
		v, unit = math.Floor(v/1e3), "ns"
	case "fs":
		v, unit = math.Floor(v/1e6), "ns"
	}
	factor, known := map[string]uint64{"s": 1e9, "": 1e9, "ms": 1e6, "us": 1e3, "ns": 1}[unit]
	if !ok || !known || !(v >= 0 && v*float64(factor) <= 1e9) {
		return 0, t.Fail(w, "%s: %s is not a delay: write one like 1000ns or 1us, at most 1s", what,
			termtext.Quote(w.Text, 40))
	}
	return fixed(v, factor), nil
}

// fixed returns v·factor in ns-3's fixed-point arithmetic: 64 bits of fraction, truncated
// (core/model/int64x64-128.h).
func fixed(v float64, factor uint64) int64 {
	whole := math.Floor(v)
	hi, _ := bits.Mul64(uint64((v-whole)*(1<<64)), factor)
	return int64(whole)*int64(factor) + int64(hi)
}
