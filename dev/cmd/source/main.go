// Command source answers questions about the source of this module, a subcommand a question:
//
//	go run ./dev/cmd/source affected [-base REV] [-seconds N] [FILE...]
//	go run ./dev/cmd/source api [-write]
//	go run ./dev/cmd/source crosscheck OS/ARCH PACKAGES...
//	go run ./dev/cmd/source draw -n 40 -seed 1 [-types] packet sim/internal job
//	go run ./dev/cmd/source lint [-summary] [-shape] DIR [PACKAGES]
//
// affected lists the packages whose full tests a change needs: those that it touches, and those that
// import these, themselves or in their tests, the nearest first. A bound of time leaves the farther ones
// out, by the table seconds.txt; what is left out is named on the standard error. Packages without tests are
// passed over, and what imports them is not. Files are those of the change, relative to the module's root;
// without any, those that differ from the merge base with REV (main), or from the last commit's parent where
// HEAD is REV itself, and those that git does not know. It prints ./... where the change is unknown, or
// reaches what every package depends on.
//
// api holds what docs/LIBRARY.md promises: it lists the exported names of the promised packages, a line a
// name with its type, and compares them with the list of the last state, dev/api. A line that went, or has
// another type, breaks programs outside; a new line is to be recorded, so that it is promised from then on.
// Names of parameters do not count. As with apidiff (golang.org/x/exp), a method that an interface gains
// breaks its implementations, and a struct that cannot be compared any more breaks programs that do; a field
// that a struct gains does not break it.
//
// crosscheck finds what would not compile on another system, without compiling: it type-checks packages and
// all that they import from source, as the build tags of that system and no cgo select it. It takes seconds
// where a build from a bare cache takes minutes. What only the linker sees, it does not.
//
// draw draws functions, or with -types comments, by a seed and prints them without their bodies: a reader who
// has not seen the code says what each does, and the code shows how many of the answers are right. Comments
// that do so are good.
//
// lint prints where the module breaks the rules of the house (dev/lint), and ends with status 1 where it
// does; with -shape it prints the shape of the tree.
package main

import "github.com/simccl/simccl/dev/subcommand"

func main() {
	subcommand.Run(map[string]func(){"affected": affectedPackages, "api": api, "crosscheck": crosscheck,
		"draw": drawFuncs, "lint": lintHouse})
}
