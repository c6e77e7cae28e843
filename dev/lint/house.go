package lint

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Shape is what the whole tree looks like from above; tests do not count.
type Shape struct {
	Packages int
	Single   []Single // packages with one importer and fewer than 300 lines
	Up       []string // imports of a room that is not on a lower floor
	Circles  []string // top-level folders that import each other, directly or by others
	Leaving  []string // imports of internal/ that lead to another room than units
	Lines    map[string]int
	Total    int
}

// ShapeOf reads the shape of all packages of the module.
func ShapeOf(packages []*Package) Shape {
	s := Shape{Packages: len(packages), Lines: map[string]int{}, Single: singles(packages)}
	reach := map[string]map[string]bool{}
	for _, p := range packages {
		home := topLevel(p.Path)
		for _, f := range p.Files {
			if f.Test {
				continue
			}
			s.Lines[home] += f.Lines
			s.Total += f.Lines
			for _, spec := range f.Syn.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				rel, ours := strings.CutPrefix(path, module+"/")
				if err == nil && ours {
					s.arrow(p.Path, rel, reach)
				}
			}
		}
	}
	s.circles(reach)
	for _, list := range []*[]string{&s.Up, &s.Circles, &s.Leaving} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return s
}

// arrow notes an import between rooms.
func (s *Shape) arrow(from, to string, reach map[string]map[string]bool) {
	a, b := topLevel(from), topLevel(to)
	if a == b {
		return
	}
	add(reach, a, b)
	if x, y := roomOf(from), roomOf(to); x == nil || y == nil || y.floor >= x.floor {
		s.Up = append(s.Up, from+" -> "+to)
	}
	if a == "internal" && b != "units" {
		s.Leaving = append(s.Leaving, from+" -> "+to)
	}
}

// circles finds top-level folders that reach themselves.
func (s *Shape) circles(reach map[string]map[string]bool) {
	for from := range reach { //lint:sorted the list is sorted by the caller
		seen := map[string]bool{}
		next := []string{from}
		for len(next) > 0 {
			at := next[0]
			next = next[1:]
			for to := range reach[at] { //lint:sorted every folder is visited once, in any order
				if to == from {
					s.Circles = append(s.Circles, from)
				}
				if !seen[to] {
					seen[to] = true
					next = append(next, to)
				}
			}
		}
	}
}

// Print writes the shape as a table.
func (s Shape) Print(w io.Writer) {
	largest := ""
	for room, n := range s.Lines { //lint:sorted the largest, of equal ones the first by name
		if largest == "" || n > s.Lines[largest] || n == s.Lines[largest] && room < largest {
			largest = room
		}
	}
	list := func(what string, of []string) {
		fmt.Fprintf(w, "%-58s %d\n", what, len(of))
		for _, x := range of {
			fmt.Fprintf(w, "  %s\n", x)
		}
	}
	fmt.Fprintf(w, "%-58s %d\n", "packages", s.Packages)
	fmt.Fprintf(w, "%-58s %d\n", "lines without tests", s.Total)
	fmt.Fprintf(w, "%-58s %s, %d lines, %.1f %%\n", "largest room", largest, s.Lines[largest],
		100*float64(s.Lines[largest])/float64(max(s.Total, 1)))
	fmt.Fprintf(w, "%-58s %d\n", "lines of cmd/simccl", s.Lines["cmd"])
	list("imports of a room that is not on a lower floor", s.Up)
	list("top-level folders in a circle", s.Circles)
	list("imports of internal/ that lead to another room than units", s.Leaving)
	var single []string
	for i := range s.Single {
		single = append(single, fmt.Sprintf("%-28s %s", s.Single[i].Path, s.Single[i].reason()))
	}
	list("packages with one importer and under 300 lines", single)
}

func topLevel(path string) string {
	first, _, _ := strings.Cut(path, "/")
	return first
}

func add(m map[string]map[string]bool, key, value string) {
	if m[key] == nil {
		m[key] = map[string]bool{}
	}
	m[key][value] = true
}
