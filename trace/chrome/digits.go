package chrome

import "bytes"

// whole parses an integer of up to 18 digits; ok is false for other text.
func whole(b []byte) (v int64, ok bool) {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	if negative {
		v = -v
	}
	return v, true
}

// powers of ten that a float64 represents exactly.
var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// fraction parses a number of up to 15 digits with a decimal point: both the digits and the power of ten are
// exact, so one division rounds as strconv does. It returns false for other text.
func fraction(b []byte) (float64, bool) {
	at := bytes.IndexByte(b, '.')
	if at < 0 || len(b) > 16 {
		return 0, false
	}
	digits := b
	if digits[0] == '-' {
		digits = digits[1:]
	}
	v, n := int64(0), 0
	for _, c := range digits {
		if c == '.' {
			continue
		}
		if c < '0' || c > '9' {
			return 0, false
		}
		v, n = v*10+int64(c-'0'), n+1
	}
	if n > 15 {
		return 0, false
	}
	x := float64(v) / powers[len(b)-1-at]
	if b[0] == '-' {
		x = -x
	}
	return x, true
}
