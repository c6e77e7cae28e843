package lint

import (
	"bytes"
	"go/ast"
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

// checkWidth reports lines that are too long, but for those of raw strings: a break would be
// part of the text.
func checkWidth(r *reporter) {
	for _, f := range r.p.Files {
		file, raw := r.p.Fset.File(f.Syn.Package), map[int]bool{}
		ast.Inspect(f.Syn, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(lit.Value, "`") {
				for line := file.Line(lit.Pos()); line <= file.Line(lit.End()); line++ {
					raw[line] = true
				}
			}
			return true
		})
		for _, line := range f.Wide {
			if raw[line] {
				continue
			}
			r.report(f, file.LineStart(line), "width",
				"the line is longer than %d columns (a tab is 4); wrap it", maxWidth)
		}
	}
}
