// Command houselint prints where a module breaks the rules of the house (see
// dev/lint) and exits with 1 where it does.
//
//	go run ./dev/cmd/houselint [-summary] [-shape] DIR [PACKAGES]
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/simccl/simccl/dev/lint"
)

func main() {
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
	if err != nil {
		fmt.Fprintln(os.Stderr, "houselint:", err)
		os.Exit(2)
	}
	if *shape {
		lint.ShapeOf(packages).Print(os.Stdout)
		return
	}
	found, err := lint.CheckDocs(os.DirFS(dir))
	if err != nil {
		fmt.Fprintln(os.Stderr, "houselint:", err)
		os.Exit(2)
	}
	words, err := lint.CheckWords(os.DirFS(dir))
	if err != nil {
		fmt.Fprintln(os.Stderr, "houselint:", err)
		os.Exit(2)
	}
	found = append(found, words...)
	tracked, err := lint.Tracked(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "houselint: tracked files are not checked:", err)
	}
	files, err := lint.CheckFiles(os.DirFS(dir), tracked)
	if err != nil {
		fmt.Fprintln(os.Stderr, "houselint:", err)
		os.Exit(2)
	}
	found = append(found, files...)
	if flag.NArg() <= 1 { // all packages, so what none of them uses is unused
		found = append(found, lint.CheckTable(packages)...)
		found = append(found, lint.CheckSingle(packages)...)
	}
	for _, p := range packages {
		found = append(found, lint.Check(p)...)
	}
	count := map[string]int{}
	for _, f := range found {
		count[f.Rule]++
		if !*summary {
			fmt.Println(f)
		}
	}
	var rules []string
	for rule := range count {
		rules = append(rules, rule)
	}
	slices.Sort(rules)
	for _, rule := range rules {
		fmt.Fprintf(os.Stderr, "houselint: %-9s %d\n", rule, count[rule])
	}
	if len(found) > 0 {
		os.Exit(1)
	}
}
