// Command affected lists the packages whose full tests a change needs: those that it touches, and those that
// import these, themselves or in their tests, the nearest first. A bound of time leaves the farther ones
// out, by the table seconds.txt; what is left out is named on the standard error.
//
//	go run ./dev/cmd/affected [-base REV] [-seconds N] [FILE...]
//
// Packages without tests are passed over, and what imports them is not.
//
// Files are those of the change, relative to the module's root; without any, those that differ from the merge
// base with REV (main), or from the last commit's parent where HEAD is REV itself, and those that git does not
// know. It prints ./... where the change is unknown, or reaches what every package depends on.
package main

import (
	"cmp"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"

	"github.com/simccl/simccl/dev/golist"
)

func main() {
	base := flag.String("base", "main", "revision that the change is against")
	seconds := flag.Float64("seconds", 240, "that the tests of farther packages may take in all, by the table")
	flag.Parse()
	files, known := flag.Args(), true
	if len(files) == 0 {
		files, known = changed(".", *base)
	}
	if err := affected(".", os.Stdout, os.Stderr, files, known, *seconds); err != nil {
		fmt.Fprintln(os.Stderr, "affected:", err)
		os.Exit(1)
	}
}

// changed lists the files of the change as git knows them; not known is what a checkout without history says.
func changed(dir, base string) (files []string, known bool) {
	git := func(args ...string) (string, bool) {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err == nil
	}
	head, _ := git("rev-parse", "HEAD")
	from, ok := git("merge-base", "HEAD", base)
	if !ok {
		from, ok = git("merge-base", "HEAD", "origin/"+base)
	}
	if !ok || from == head {
		if from, ok = git("rev-parse", "HEAD^"); !ok {
			return nil, false
		}
	}
	diff, ok := git("diff", "--name-only", "--no-renames", from)
	fresh, fine := git("ls-files", "--others", "--exclude-standard")
	return strings.Fields(diff + "\n" + fresh), ok && fine
}

// listed is a package with what it and its tests import.
type listed struct {
	ImportPath                         string
	TestGoFiles, XTestGoFiles          []string
	Module                             *struct{ Path string }
	Imports, TestImports, XTestImports []string
}

// affected prints the packages of a change.
func affected(dir string, w, left io.Writer, files []string, known bool, seconds float64) error {
	if !known {
		return everything(w, left, "the change is unknown")
	}
	all, err := golist.Packages[listed](golist.Query{Dir: dir, Patterns: []string{"./..."}})
	if err != nil {
		return err
	}
	m := module{packages: map[string]*listed{}}
	for _, l := range all {
		m.packages[l.ImportPath] = l
		if l.Module != nil {
			m.path = l.Module.Path
		}
	}
	ring := map[string]bool{}
	for _, f := range files {
		of, ok := m.touched(f)
		if !ok {
			return everything(w, left, f+" may be read by any package")
		}
		for _, p := range of {
			ring[p] = true
		}
	}
	m.print(w, left, ring, seconds)
	return nil
}

func everything(w, left io.Writer, why string) error {
	fmt.Fprintln(left, "affected: all packages:", why)
	fmt.Fprintln(w, "./...")
	return nil
}

type module struct {
	path     string
	packages map[string]*listed
}

// elsewhere are files that no package holds: the packages whose tests read them, or none where a step of
// its own holds them.
var elsewhere = []struct {
	prefix string
	by     []string
}{
	{"docs/", []string{"dev/docs", "cmd/simccl"}}, {"README.md", []string{"dev/docs", "cmd/simccl"}},
	{"CONTRIBUTING.md", []string{"dev/docs", "cmd/simccl"}}, {"Makefile", []string{"cmd/simccl"}},
	{"CHANGELOG.md", []string{"dev/docs"}}, {"SECURITY.md", []string{"dev/docs"}}, {"LICENSE", nil},
	{".ci/", nil}, {".github/", nil}, {".gitignore", nil}, {"Containerfile", nil}, {"scripts/", nil},
	{"tools/", nil}, {"web/", nil},
}

// touched names the packages whose tests a file changes at once: the one in whose folder, or below, it lies.
func (m *module) touched(file string) (of []string, known bool) {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if p := m.path + "/" + dir; m.packages[p] != nil {
			return []string{p}, true
		}
	}
	if strings.HasSuffix(file, ".go") {
		return []string{m.path}, !strings.Contains(file, "/")
	}
	for _, e := range elsewhere {
		if file == e.prefix || strings.HasSuffix(e.prefix, "/") && strings.HasPrefix(file, e.prefix) {
			for _, p := range e.by {
				of = append(of, m.path+"/"+p)
			}
			return of, true
		}
	}
	return nil, false
}

//go:embed seconds.txt
var secondsTable string

// costs are the seconds of the full tests of packages, from seconds.txt.
func costs(table string) map[string]float64 {
	of := map[string]float64{}
	for line := range strings.Lines(table) {
		var p string
		var s float64
		if n, _ := fmt.Sscan(line, &s, &p); n == 2 {
			of[p] = s
		}
	}
	return of
}

// print lists rings of packages, each of those that import the one before.
func (m *module) print(w, left io.Writer, ring map[string]bool, seconds float64) {
	table := costs(secondsTable)
	cost := func(p string) float64 {
		return cmp.Or(table[strings.TrimPrefix(strings.TrimPrefix(p, m.path), "/")], 1)
	}
	listed, reached := map[string]bool{}, maps.Clone(ring)
	near := ring // those with tests to run
	for far := 0; len(ring) > 0; far++ {
		list := slices.SortedFunc(maps.Keys(near), func(a, b string) int {
			return cmp.Or(cmp.Compare(cost(a), cost(b)), cmp.Compare(a, b))
		})
		for _, p := range list {
			if l := m.packages[p]; listed[p] || l == nil || len(l.TestGoFiles)+len(l.XTestGoFiles) == 0 {
				continue
			}
			listed[p] = true
			if s := cost(p); far > 0 && s > seconds {
				fmt.Fprintf(left, "affected: left to make test-all: %s, %.0f s\n", p, s)
				continue
			} else if far > 0 {
				seconds -= s
			}
			fmt.Fprintln(w, p)
		}
		ring, near = m.importers(ring, reached)
	}
}

// importers are the packages that import one of a ring and were not reached, and with them those whose
// tests alone do, which nobody reaches a change through.
func (m *module) importers(ring, reached map[string]bool) (next, near map[string]bool) {
	next, near = map[string]bool{}, map[string]bool{}
	in := func(imported string) bool { return ring[imported] }
	for name, p := range m.packages {
		switch {
		case slices.ContainsFunc(p.Imports, in):
			near[name] = true
			if !reached[name] {
				next[name], reached[name] = true, true
			}
		case slices.ContainsFunc(p.TestImports, in), slices.ContainsFunc(p.XTestImports, in):
			near[name] = true
		}
	}
	return next, near
}
