package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/fail"
)

// report prints an error, one line for each problem of a joined one, and
// returns the exit status.
func report(a *cli.App, err error) int {
	code := cli.ExitStatus(err)
	var given *fail.Error
	if err == nil || errors.As(err, &given) && given.Quiet {
		return code
	}
	for line := range strings.Lines(strings.TrimRight(err.Error(), "\n")) {
		fmt.Fprintf(a.Err, "%s %s\n", a.Paint(a.Err).Red("simccl:"), strings.TrimRight(line, "\n"))
	}
	var file *fs.PathError
	if code == cli.StatusInternal && !errors.As(err, &file) { // an I/O failure is not a bug in simccl
		fmt.Fprintf(a.Err,
			"simccl: this is a defect of simccl; please report it with the command line and the input\n")
	}
	return code
}
