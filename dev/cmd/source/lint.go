package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/simccl/simccl/dev/lint"
)

func lintHouse() {
	summary := flag.Bool("summary", false, "print counts by rule only")
	shape := flag.Bool("shape", false, "print the shape of the house in place of findings")
	flag.Parse()
	dir, patterns := ".", []string{"./..."}
	if flag.NArg() > 0 {
		dir = flag.Arg(0)
	}
	if flag.NArg() > 1 {
		patterns = flag.Args()[1:]
	}
	packages, err := lint.Load(dir, patterns...)
	if err == nil && *shape {
		lint.ShapeOf(packages).Print(os.Stdout)
		return
	}
	found, more := findings(dir, packages, flag.NArg() <= 1)
	if err = errors.Join(err, more); err != nil {
		fmt.Fprintln(os.Stderr, "lint:", err)
		os.Exit(2)
	}
	count := map[string]int{}
	for _, f := range found {
		count[f.Rule]++
		if !*summary {
			fmt.Println(f)
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(os.Stderr, "lint: %-9s %d\n", rule, count[rule])
	}
	if len(found) > 0 {
		os.Exit(1)
	}
}

// findings are those of all rules; whole: the packages are all, so that what none of them uses is unused.
func findings(dir string, packages []*lint.Package, whole bool) ([]lint.Finding, error) {
	tree := os.DirFS(dir)
	tracked, err := lint.Tracked(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "lint: tracked files are not checked:", err)
	}
	docs, err1 := lint.CheckDocs(tree)
	words, err2 := lint.CheckWords(tree)
	files, err3 := lint.CheckFiles(tree, tracked)
	found := slices.Concat(docs, words, files)
	if whole {
		found = append(append(found, lint.CheckTable(packages)...), lint.CheckSingle(packages)...)
	}
	for _, p := range packages {
		found = append(found, lint.Check(p)...)
	}
	return found, errors.Join(err1, err2, err3)
}
