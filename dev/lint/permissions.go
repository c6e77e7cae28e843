package lint

import (
	"fmt"
	"go/token"
	"strconv"
	"strings"
)

// CheckTable reports permissions of the table that no import needs, and those
// without a reason. It has to see all packages of the module: of a part of
// them it would call permissions unused that the others use. Tests do not
// count, since the table does not hold them.
func CheckTable(packages []*Package) []Finding { return checkTable(rooms, packages) }

// permission is one edge of one room.
type permission struct{ room, to string }

func checkTable(rooms []room, packages []*Package) []Finding {
	used := map[permission]bool{}
	for _, p := range packages {
		for _, f := range p.Files {
			home := roomIn(rooms, p.Path)
			if f.Test || home == nil {
				continue
			}
			for _, spec := range f.Syn.Imports {
				if path, err := strconv.Unquote(spec.Path.Value); err == nil {
					markUsed(rooms, home, path, used)
				}
			}
		}
	}
	var found []Finding
	for _, r := range rooms {
		for _, e := range append(append([]edge{}, r.may...), r.modules...) {
			report := func(problem string) {
				found = append(found, Finding{Pos: token.Position{Filename: "dev/lint/table.go", Line: 1, Column: 1}, Rule: "table",
					Message: fmt.Sprintf("%s may import %s%s", r.dir, e.to, problem)})
			}
			if !used[permission{r.dir, e.to}] {
				report(", and no file of it does; take the permission away")
			}
			if strings.TrimSpace(e.why) == "" {
				report(", and the reason is empty; say what for")
			}
		}
	}
	return found
}

// markUsed notes which permission of a room an import makes use of.
func markUsed(rooms []room, home *room, path string, used map[permission]bool) {
	rel, ours := strings.CutPrefix(path, module+"/")
	if !ours {
		for _, e := range home.modules {
			if under(path, e.to) {
				used[permission{home.dir, e.to}] = true
			}
		}
		return
	}
	to := roomIn(rooms, rel)
	if to == nil || to == home {
		return
	}
	for _, e := range home.may {
		if e.to == "*" || e.to == to.dir {
			used[permission{home.dir, e.to}] = true
		}
	}
}
