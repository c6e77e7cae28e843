package main

import (
	"cmp"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"

	"github.com/simccl/simccl/dev/golist"
)

func affectedPackages() {
	base := flag.String("base", "main", "revision that the change is against")
	seconds := flag.Float64("seconds", 100,
		"that the tests of farther packages may take in all, by the table")
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

// affected prints the packages of a change, and of one of which some tests alone read it the name and these
// tests, as go test -run has them.
func affected(dir string, w, left io.Writer, files []string, known bool, seconds float64) error {
	if !known {
		return everything(w, left, "the change is unknown")
	}
	m, err := golist.Load(dir)
	if err != nil {
		return err
	}
	var change []string
	reads := false
	for _, f := range files {
		of, read, ok := touched(m, f)
		reads = reads || read
		if !ok {
			return everything(w, left, f+" may be read by any package")
		}
		change = append(change, of...)
	}
	whole := affectedPrint(w, left, m.Path, m.Rings(change), seconds)
	if reads && !slices.Contains(whole, m.Path+"/"+reader) {
		fmt.Fprintln(w, m.Path+"/"+reader, readers)
	}
	return nil
}

func everything(w, left io.Writer, why string) error {
	fmt.Fprintln(left, "affected: all packages:", why)
	fmt.Fprintln(w, "./...")
	return nil
}

// elsewhere are files that no package holds: the packages whose tests read them, or none where a step of
// its own holds them, and whether the tests of pages do.
var elsewhere = []struct {
	prefix string
	by     string
	pages  bool
}{
	{"docs/", "dev/docs", true}, {"README.md", "dev/docs", true}, {"CONTRIBUTING.md", "dev/docs", true},
	{"Makefile", "", true}, {"CHANGELOG.md", "dev/docs", false}, {"SECURITY.md", "dev/docs", false},
	{"LICENSE", "", false}, {".ci/", "", false}, {".github/", "", false}, {".gitignore", "", false},
	{"Containerfile", "", false}, {"scripts/", "", false}, {"tools/", "", false}, {"web/", "", false},
}

// The tests that read pages, of a package whose others take minutes and read none.
const reader, readers = "cmd/simccl", "Documented|NoCommandIsOnlyText"

// touched names the packages whose tests a file changes at once: the one in whose folder, or below, it lies.
func touched(m *golist.Module, file string) (of []string, pages, known bool) {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if p := m.Path + "/" + dir; m.Packages[p] != nil {
			return []string{p}, false, true
		}
	}
	if strings.HasSuffix(file, ".go") {
		return []string{m.Path}, false, !strings.Contains(file, "/")
	}
	for _, e := range elsewhere {
		if file == e.prefix || strings.HasSuffix(e.prefix, "/") && strings.HasPrefix(file, e.prefix) {
			if e.by != "" {
				of = []string{m.Path + "/" + e.by}
			}
			return of, e.pages, true
		}
	}
	return nil, false, false
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

// affectedPrint lists rings of packages, those that take least first in each.
func affectedPrint(w, left io.Writer, module string, rings [][]string, seconds float64) (listed []string) {
	table := costs(secondsTable)
	cost := func(p string) float64 {
		return cmp.Or(table[strings.TrimPrefix(p, module+"/")], 1)
	}
	for far, ring := range rings {
		slices.SortStableFunc(ring, func(a, b string) int { return cmp.Compare(cost(a), cost(b)) })
		for _, p := range ring {
			switch s := cost(p); {
			case far > 0 && s > seconds:
				fmt.Fprintf(left, "affected: left to make test-all: %s, %.0f s\n", p, s)
				continue
			case far > 0:
				seconds -= s
			}
			fmt.Fprintln(w, p)
			listed = append(listed, p)
		}
	}
	return listed
}
