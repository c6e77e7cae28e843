// Package subcommand is the main function of programs whose first argument says what they do.
package subcommand

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// Run calls the function that the first argument names, and leaves the others to it in os.Args, after its
// name. Without such an argument the program ends with status 2.
func Run(programs map[string]func()) {
	if len(os.Args) > 1 {
		if run := programs[os.Args[1]]; run != nil {
			os.Args = os.Args[1:]
			run()
			return
		}
	}
	names := slices.Sorted(maps.Keys(programs))
	fmt.Fprintln(os.Stderr, "the first argument is one of", strings.Join(names, ", "))
	os.Exit(2)
}
