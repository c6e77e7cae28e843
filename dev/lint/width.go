package lint

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// maxWidth is the column at which lines end, a tab counting as four.
const maxWidth = 110

// wide lists the lines of a source text, from 1, that are longer than maxWidth, but for
// comments that hold a URL, which cannot be wrapped, and directives.
func wide(text []byte) []int {
	var out []int
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimRight(line, "\r\n")
		s := strings.TrimSpace(string(line))
		exempt := strings.HasPrefix(s, "//go:") || strings.HasPrefix(s, "//") && strings.Contains(s, "://")
		if width := utf8.RuneCount(line) + 3*bytes.Count(line, []byte("\t")); width > maxWidth && !exempt {
			out = append(out, n)
		}
	}
	return out
}

// checkWidth reports lines that are too long.
func checkWidth(r *reporter) {
	for _, f := range r.p.Files {
		file := r.p.Fset.File(f.Syn.Package)
		for _, line := range f.Wide {
			r.report(f, file.LineStart(line), "width", "the line is longer than %d columns (a tab is 4); wrap it", maxWidth)
		}
	}
}
