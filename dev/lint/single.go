package lint

import (
	"fmt"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// small is the length below which a package with a single importer is better a part of it.
const small = 300

// alone are packages with one importer and under 300 lines that stay packages, with the
// reason. A second implementation, a file format of its own, a dependency that others must
// not link and state that others must not reach are reasons; order is none.
var alone = []edge{
	{"app/web/page", "it links net/http, a megabyte, which a program without the page leaves out"},
	{"app/web/page/site", "it embeds the built page by a build tag; app/web/page is tested without"},
	{"study/sweep/sqlite", "it owns the module modernc.org/sqlite, which sweeps of other formats do without"},
	{"tuning/netplugin", "what vendors' network plugins set, a table of releases beside its data"},
}

// Single is a package with one importer and under 300 lines. Tests are neither importers
// nor lines.
type Single struct {
	Path, Importer string
	Lines          int
}

// singles lists them by path, but for what the tests of two further packages import.
func singles(packages []*Package) []Single {
	importers, tests := map[string]map[string]bool{}, map[string]map[string]bool{}
	length := map[string]int{}
	for _, p := range packages {
		for _, f := range p.Files {
			by := importers
			if f.Test {
				by = tests
			} else {
				length[p.Path] += f.Lines
			}
			for _, spec := range f.Syn.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if rel, ours := strings.CutPrefix(path, module+"/"); err == nil && ours && rel != p.Path {
					add(by, rel, p.Path)
				}
			}
		}
	}
	var out []Single
	for path, by := range importers { //lint:sorted the list is sorted below
		if len(by) != 1 || length[path] >= small || length[path] == 0 {
			continue
		}
		s := Single{Path: path, Lines: length[path]}
		for s.Importer = range by { //lint:sorted there is one
		}
		further := len(tests[path])
		if tests[path][s.Importer] {
			further--
		}
		if further < 2 {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b Single) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// reason returns why a package stays one, empty where the table does not have it.
func (s *Single) reason() string {
	for _, e := range alone {
		if e.to == s.Path {
			return e.why
		}
	}
	return ""
}

// CheckSingle reports packages with one importer and under 300 lines that have no reason,
// and reasons that no package needs. It has to see all packages of the module.
func CheckSingle(packages []*Package) []Finding {
	var found []Finding
	report := func(file, problem string) {
		at := token.Position{Filename: file, Line: 1, Column: 1}
		found = append(found, Finding{Pos: at, Rule: "single", Message: problem})
	}
	needed := map[string]bool{}
	for _, s := range singles(packages) {
		needed[s.Path] = true
		if s.reason() == "" {
			report(s.Path,
				fmt.Sprintf("%d lines and one importer, %s: make it a part of that package, or say in "+
					"alone of "+
					"dev/lint/single.go why it is a package", s.Lines, s.Importer))
		}
	}
	for _, e := range alone {
		if !needed[e.to] {
			report("dev/lint/single.go",
				e.to+" has a second importer, 300 lines, or is no package; take its reason out")
		}
	}
	return found
}
