package ns3

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/termtext"
)

// Error is a complaint about a place of a file.
type Error struct {
	File      string
	Line, Col int
	Problem   string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Problem)
}

// word is a word of a file with its place.
type word struct {
	text      string
	line, col int
}

// text is a file in words.
type text struct {
	name  string
	words []word
	at    int
	end   word // where it ends
}

// split cuts a file into words.
func split(name string, data []byte) *text {
	t := &text{name: name, end: word{line: 1, col: 1}}
	for i, line := range strings.Split(string(data), "\n") {
		t.end = word{line: i + 1, col: len(line) + 1}
		for from := 0; from < len(line); {
			k := strings.IndexAny(line[from:], " \t\r\v\f")
			if k == 0 {
				from++
				continue
			}
			if k < 0 {
				k = len(line) - from
			}
			t.words = append(t.words, word{line[from : from+k], i + 1, from + 1})
			from += k
		}
	}
	return t
}

func (t *text) done() bool { return t.at >= len(t.words) }

// peek returns the next word without taking it.
func (t *text) peek() word {
	if t.done() {
		return t.end
	}
	return t.words[t.at]
}

func (t *text) fail(w word, format string, args ...any) error {
	return &Error{t.name, w.line, w.col, fmt.Sprintf(format, args...)}
}

// take returns the next word, or says what is missing.
func (t *text) take(what string) (word, error) {
	if t.done() {
		return t.end, t.fail(t.end, "the file ends where %s is expected", what)
	}
	t.at++
	return t.words[t.at-1], nil
}

// integer takes a whole number within bounds.
func (t *text) integer(what string, low, high int64) (int64, error) {
	w, err := t.take(what)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(w.text, 10, 64)
	if err != nil || v < low || v > high {
		return 0, t.fail(w, "%s: %s: write a whole number from %d to %d", what, termtext.Quote(w.text, 40), low, high)
	}
	return v, nil
}

// number takes a number within bounds.
func (t *text) number(what string, low, high float64) (float64, error) {
	w, err := t.take(what)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(w.text, 64)
	if err != nil || !(v >= low && v <= high) {
		return 0, t.fail(w, "%s: %s: write a number from %g to %g", what, termtext.Quote(w.text, 40), low, high)
	}
	return v, nil
}

// rateUnits are bit/s in the units that ns-3 knows (network/utils/data-rate.cc).
var rateUnits = []struct {
	names string
	bits  float64
}{
	{"bps b/s", 1}, {"Bps B/s", 8}, {"kbps kb/s Kbps Kb/s", 1e3}, {"kBps kB/s KBps KB/s", 8e3}, {"Kib/s", 1024}, {"KiB/s", 8192},
	{"Mbps Mb/s", 1e6}, {"MBps MB/s", 8e6}, {"Mib/s", 1 << 20}, {"MiB/s", 8 << 20},
	{"Gbps Gb/s", 1e9}, {"GBps GB/s", 8e9}, {"Gib/s", 1 << 30}, {"GiB/s", 8 << 30},
}

// rate takes a rate in bit/s.
func (t *text) rate(what string) (int64, error) {
	w, err := t.take(what)
	if err != nil {
		return 0, err
	}
	v, unit, ok := cut(w.text)
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
		return 0, t.fail(w, "%s: %s is not a rate: write one like 100Gbps or 40Mb/s", what, termtext.Quote(w.text, 40))
	}
	return int64(v * bits), nil
}

// cut parts a number from its unit.
func cut(s string) (v float64, unit string, ok bool) {
	n := strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune("+-0123456789.", r) })
	if n < 0 {
		n = len(s)
	}
	v, err := strconv.ParseFloat(s[:n], 64)
	return v, s[n:], err == nil && !math.IsInf(v, 0)
}

// delay takes a time in whole nanoseconds, cut as ns-3 cuts it.
func (t *text) delay(what string) (int64, error) {
	w, err := t.take(what)
	if err != nil {
		return 0, err
	}
	v, unit, ok := cut(w.text)
	factor, known := map[string]uint64{"s": 1e9, "": 1e9, "ms": 1e6, "us": 1e3, "ns": 1}[unit]
	if !ok || !known || !(v >= 0 && v*float64(factor) <= 1e9) {
		return 0, t.fail(w, "%s: %s is not a delay: write one like 1000ns or 1us, at most 1s", what, termtext.Quote(w.text, 40))
	}
	return fixed(v, factor), nil
}

// fixed is v×factor in ns-3's arithmetic: 64 bits of fraction, cut, not rounded
// (core/model/int64x64-128.h).
func fixed(v float64, factor uint64) int64 {
	whole := math.Floor(v)
	hi, _ := bits.Mul64(uint64((v-whole)*(1<<64)), factor)
	return int64(whole)*int64(factor) + int64(hi)
}
