// Package cnum reads numbers as NCCL's C code reads them from text, and PCI
// addresses as NCCL keeps them. It knows nothing of where the text comes from.
package cnum

import (
	"fmt"
	"strconv"
	"strings"
)

// Int reads a number as C's strtol with base 0: leading blanks, a sign, 0x or
// 0 for base 16 or 8, and it stops at the first character that does not fit.
// ok reports whether the whole of s was one number.
func Int(s string) (n int64, ok bool) {
	t := strings.TrimLeft(s, " \t\n\v\f\r")
	neg := false
	if t != "" && (t[0] == '-' || t[0] == '+') {
		neg, t = t[0] == '-', t[1:]
	}
	base := uint64(10)
	switch {
	case len(t) > 2 && t[0] == '0' && (t[1] == 'x' || t[1] == 'X') && Digit(t[2]) < 16:
		base, t = 16, t[2:]
	case len(t) > 0 && t[0] == '0':
		base = 8
	}
	v, rest := digits(t, base, 1<<63-1)
	n = int64(v)
	if neg {
		n = -n
	}
	return n, len(rest) == 0 && len(t) > 0
}

// Hex parses like C's strtoull with base 16.
func Hex(s string) uint64 {
	t := strings.TrimLeft(s, " \t\n\v\f\r")
	if len(t) > 2 && t[0] == '0' && (t[1] == 'x' || t[1] == 'X') && Digit(t[2]) < 16 {
		t = t[2:]
	}
	v, _ := digits(t, 16, 1<<64-1)
	return v
}

// digits reads the leading digits of a base, saturating at limit.
func digits(t string, base, limit uint64) (v uint64, rest string) {
	for t != "" {
		d := Digit(t[0])
		if d >= base {
			break
		}
		if v > (limit-d)/base {
			v = limit
		} else {
			v = v*base + d
		}
		t = t[1:]
	}
	return v, t
}

// Digit is the value of a digit, also of a hexadecimal one; 99 of what is none.
func Digit(c byte) uint64 {
	switch {
	case c >= '0' && c <= '9':
		return uint64(c - '0')
	case c >= 'a' && c <= 'f':
		return uint64(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return uint64(c-'A') + 10
	}
	return 99
}

// BusID packs a PCI address "dddd:bb:dd.f" into NCCL's integer: its hex digits
// in order, stopping at the first other character (utils.cc:30).
func BusID(s string) int64 {
	var hex []byte
	for i := 0; i < len(s) && len(hex) < 16; i++ {
		if s[i] == '.' || s[i] == ':' {
			continue
		}
		hex = append(hex, s[i])
	}
	v, _ := digits(string(hex), 16, 1<<63-1)
	return int64(v)
}

// BusIDText formats NCCL's integer bus id as a PCI address (utils.cc:25).
func BusIDText(id int64) string {
	return fmt.Sprintf("%04x:%02x:%02x.%01x", uint64(id)>>20, uint64(id)&0xff000>>12, uint64(id)&0xff0>>4,
		uint64(id)&0xf)
}

// Float reads the leading number of s as C's strtof does, 0 without one.
func Float(s string) float32 {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	for n := len(s); n > 0; n-- {
		if v, err := strconv.ParseFloat(s[:n], 32); err == nil {
			return float32(v)
		}
	}
	return 0
}
