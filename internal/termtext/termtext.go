package termtext

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Control reports whether a character acts on a terminal, or on the order or
// the lines of the text around it, instead of being shown.
func Control(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r <= 0x9f: // C0, DEL and C1: U+009B begins a sequence as ESC [ does
		return true
	// direction
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	case r == 0x2028, r == 0x2029: // separators of lines and paragraphs
		return true
	}
	return false
}

var short = map[rune]string{'\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

// appendEscaped appends a control character in JSON's notation.
func appendEscaped(b []byte, r rune) []byte {
	if s, ok := short[r]; ok {
		return append(b, s...)
	}
	return fmt.Appendf(b, `\u%04x`, r)
}

// Escape returns s as text of one line: control characters, newlines and tabs
// too, as JSON escapes, and bytes that are no UTF-8 as U+FFFD.
func Escape(s string) string {
	if clean(s) {
		return s
	}
	b := make([]byte, 0, len(s)+16)
	for _, r := range s {
		if Control(r) {
			b = appendEscaped(b, r)
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return string(b)
}

// clean reports whether nothing in s needs escaping.
func clean(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, Control) < 0
}

// DefaultCut is the number of characters of a foreign word that an error shows.
const DefaultCut = 100

// Quote returns s escaped and in quotes, and no more than n characters of it:
// "0x99…" (1000000 bytes). n below 1 is DefaultCut.
func Quote(s string, n int) string {
	if n < 1 {
		n = DefaultCut
	}
	head, cut := Cut(s, n)
	text := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(head)
	text = Escape(text)
	if !cut {
		return text + `"`
	}
	return fmt.Sprintf(`%s…" (%d bytes)`, text, len(s))
}

// Short returns s escaped and no more than n characters of it, without quotes:
// for words that are printed bare. n below 1 is DefaultCut.
func Short(s string, n int) string {
	if n < 1 {
		n = DefaultCut
	}
	head, cut := Cut(s, n)
	if !cut {
		return Escape(s)
	}
	return fmt.Sprintf("%s… (%d bytes)", Escape(head), len(s))
}

// Cut returns the first n characters of s, and whether there are more.
func Cut(s string, n int) (head string, cut bool) {
	if len(s) <= n {
		return s, false
	}
	for i := range s {
		if n == 0 {
			return s[:i], true
		}
		n--
	}
	return s, false
}
