package lint

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/topo"
)

// Summary counts the errors and warnings that Check finds in one file.
type Summary struct {
	File             string
	Errors, Warnings int
}

// String formats the counts: "1 error, 2 warnings".
func (s Summary) String() string {
	var parts []string
	if s.Errors > 0 {
		parts = append(parts, numbered(s.Errors, "error"))
	}
	if s.Warnings > 0 {
		parts = append(parts, numbered(s.Warnings, "warning"))
	}
	return strings.Join(parts, ", ")
}

// numbered formats a number and its noun, in the plural unless n is 1.
func numbered(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// AmongNodes returns the Params with which a file is checked: as one of several nodes, so that NICs matter.
func AmongNodes(p topo.Params) topo.Params {
	p.NRanks = 1 << 16
	return p
}

// Summarise counts the findings of Check. ok is false if there are none besides those of the parser. left
// lists the findings of rule LeftOut.
func Summarise(spec *topo.Spec, p topo.Params) (s Summary, left []Finding, ok bool) {
	s.File = spec.Name
	for _, f := range Check(spec, AmongNodes(p)) {
		switch f.Severity {
		case Error:
			s.Errors++
		case Warning:
			s.Warnings++
		default:
			continue
		}
		ok = ok || f.Rule != "parser"
		if f.Rule == LeftOut {
			left = append(left, f)
		}
	}
	return s, left, ok
}
