// Package quote writes text of an input into a message: quoted, with what is not
// printable escaped, and cut where it is long. An input may hold one attribute of
// 15 MB, or a name that moves the cursor of a terminal; a message holds neither.
package quote

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Max is how many characters of a text a message holds.
const Max = 100

// Text quotes s as Go would, and cuts it after Max characters:
//
//	Text("mlx5_0")               "mlx5_0"
//	Text(strings.Repeat("x", n)) "xxx…xxx" and 1234 bytes more
func Text(s string) string {
	head := Cut(s)
	if len(head) == len(s) {
		return strconv.Quote(s)
	}
	return fmt.Sprintf("%s and %d bytes more", strconv.Quote(head), len(s)-len(head))
}

// Cut returns the first Max characters of s. It does not look at what follows, so
// its cost does not grow with s.
func Cut(s string) string {
	at := 0
	for range Max {
		if at == len(s) {
			return s
		}
		_, n := utf8.DecodeRuneInString(s[at:])
		at += n
	}
	return s[:at]
}
