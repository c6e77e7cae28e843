// Command houselint prints where a module breaks the rules of the house (see
// internal/lint) and exits with 1 where it does.
//
//	go run ./internal/cmd/houselint [-summary] DIR [PACKAGES]
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/simccl/simccl/internal/lint"
)

func main() {
	summary := flag.Bool("summary", false, "print counts by rule only")
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
	count := map[string]int{}
	total := 0
	for _, p := range packages {
		for _, f := range lint.Check(p) {
			count[f.Rule]++
			total++
			if !*summary {
				fmt.Println(f)
			}
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
	if total > 0 {
		os.Exit(1)
	}
}
