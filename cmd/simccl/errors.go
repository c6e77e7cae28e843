package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/simccl/simccl/app/process/status"
	"github.com/simccl/simccl/internal/fail"
)

// usage is an error of an option or argument.
func usage(format string, args ...any) error { return fail.Usage(format, args...) }

// input makes err an error of an input file; nil of nil.
func input(err error) error { return fail.Input(err) }

// failed is a check that was answered with no; what is wrong was printed.
func failed(format string, args ...any) error { return fail.Check(format, args...) }

// report prints an error, one line for each problem of a joined one, and
// returns the exit status.
func (a *app) report(err error) int {
	code := status.Of(err)
	var given *fail.Error
	if err == nil || errors.As(err, &given) && given.Quiet {
		return code
	}
	for line := range strings.Lines(strings.TrimRight(err.Error(), "\n")) {
		fmt.Fprintf(a.Err, "%s %s\n", a.Paint(a.Err).Red("simccl:"), strings.TrimRight(line, "\n"))
	}
	var file *fs.PathError
	if code == status.Internal && !errors.As(err, &file) { // an I/O failure is not a bug in simccl
		fmt.Fprintf(a.Err,
			"simccl: this is a defect of simccl; please report it with the command line and the input\n")
	}
	return code
}
