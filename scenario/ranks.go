package scenario

import (
	"strconv"
	"strings"
)

// allRanks is the word for every rank.
const allRanks = "all"

// parseRanks reads 0-7,16 of n ranks; nil is every rank. Where it is not ok, bad is the part
// that cannot be read.
func parseRanks(s string, n int) (which func(int) bool, bad string, ok bool) {
	if s == "" || s == allRanks {
		return nil, "", true
	}
	want := make([]bool, n)
	for part := range strings.SplitSeq(s, ",") {
		a, b, ranged := strings.Cut(part, "-")
		if !ranged {
			b = a
		}
		lo, err1 := strconv.Atoi(a)
		hi, err2 := strconv.Atoi(b)
		if err1 != nil || err2 != nil || lo < 0 || hi < lo || hi >= n {
			return nil, part, false
		}
		for i := lo; i <= hi; i++ {
			want[i] = true
		}
	}
	return func(r int) bool { return want[r] }, "", true
}
