package lint

import (
	"go/token"
	"strconv"
	"strings"
)

// CheckTable reports entries of the tables that nothing needs: rooms without a package,
// worldly packages and third-party modules that no file imports or that have no reason. It
// has to see all packages of the module. Tests do not count, since the table does not hold
// them.
func CheckTable(packages []*Package) []Finding {
	used := map[string]bool{}
	for _, p := range packages {
		if r := roomOf(p.Path); r != nil {
			used[r.dir] = true
		}
		for _, dir := range append(append([]string{}, worldly...), pureInside...) {
			used[dir] = used[dir] || under(p.Path, dir)
		}
		for _, f := range p.Files {
			if f.Test {
				continue
			}
			for _, spec := range f.Syn.Imports {
				if path, err := strconv.Unquote(spec.Path.Value); err == nil {
					markModules(p.Path, path, used)
				}
			}
		}
	}
	var found []Finding
	report := func(entry, problem string) {
		found = append(found, Finding{Pos: token.Position{Filename: "dev/lint/table.go", Line: 1, Column: 1},
			Rule: "table", Message: entry + " " + problem})
	}
	for _, r := range rooms {
		if !used[r.dir] {
			report("room "+r.dir, "has no package; take it out")
		}
	}
	for _, dir := range append(append([]string{}, worldly...), pureInside...) {
		if !used[dir] {
			report(dir, "is listed as worldly or pure, and is no package; take it out")
		}
	}
	for _, m := range modules {
		for _, e := range m.by {
			if !used[e.to+" "+m.path] {
				report(e.to+" may import "+m.path, "and no file of it does; take the permission away")
			}
			if strings.TrimSpace(e.why) == "" {
				report(e.to+" may import "+m.path, "and the reason is empty; say what for")
			}
		}
	}
	return found
}

// markModules notes which permission an import of a third-party module makes use of.
func markModules(pkg, path string, used map[string]bool) {
	for _, m := range modules {
		for _, e := range m.by {
			if under(path, m.path) && under(pkg, e.to) {
				used[e.to+" "+m.path] = true
			}
		}
	}
}
