package config

import (
	"fmt"
	"math"
	"strings"

	"github.com/simccl/simccl/internal/cnum"
)

// ParseNumber reads a number as NCCL does, by strtoll with base 0: blanks, a
// sign, then 0x… hexadecimal, 0… octal or decimal digits; what follows is
// dropped, and no digits give 0. ok is false where it does not fit into 64
// bits; NCCL then keeps the default. rest is what was dropped.
func ParseNumber(s string) (v int64, rest string, ok bool) {
	i := 0
	for i < len(s) && (s[i] == ' ' || s[i] >= '\t' && s[i] <= '\r') {
		i++
	}
	neg := false
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		neg = s[i] == '-'
		i++
	}
	base := uint64(10)
	if i < len(s) && s[i] == '0' {
		base = 8
		if i+2 < len(s) && (s[i+1] == 'x' || s[i+1] == 'X') && cnum.Digit(s[i+2]) < 16 {
			base = 16
			i += 2
		}
	}
	limit := uint64(math.MaxInt64)
	if neg {
		limit++
	}
	var u uint64
	start, over := i, false
	for ; i < len(s) && cnum.Digit(s[i]) < base; i++ {
		d := cnum.Digit(s[i])
		if u > (limit-d)/base {
			over = true
			continue
		}
		u = u*base + d
	}
	switch {
	case i == start:
		return 0, s, true
	case over:
		return 0, s[i:], false
	case neg:
		return int64(-u), s[i:], true
	}
	return int64(u), s[i:], true
}

// numberTrouble words what is odd about a number that NCCL takes in silence.
func numberTrouble(text string) (problem, hint string) {
	v, rest, ok := ParseNumber(text)
	switch {
	case !ok:
		return "does not fit into 64 bits; NCCL keeps the default", "write a smaller number"
	case rest == "":
		if t := strings.TrimLeft(text, " +-\t"); len(t) > 1 && t[0] == '0' && t[1] != 'x' && t[1] != 'X' {
			return fmt.Sprintf("the leading 0 makes it octal: %d", v), "write it without the 0"
		}
		return "", ""
	case rest == text:
		return "is no number; NCCL takes it for 0", "write a number" + wordHint(text)
	}
	return fmt.Sprintf("NCCL reads %d and drops %q", v, rest), "write a number alone"
}

// wordHint translates the words that people write for switches.
func wordHint(text string) string {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "yes", "on", "enable", "enabled":
		return ", here 1"
	case "false", "no", "off", "disable", "disabled":
		return ", here 0"
	}
	return ""
}
