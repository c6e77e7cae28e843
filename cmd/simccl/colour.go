package main

import (
	"crypto/rand"
	"fmt"
	"io"

	"github.com/simccl/simccl/internal/terminal"
	"github.com/simccl/simccl/internal/termtext"
)

// guard puts writers before standard output and error that escape the control
// characters of what is printed: names in topologies, fabrics and traces are
// other people's text. Only colours that carry our mark pass. It returns what
// writes the end of an unfinished character.
func (a *app) guard() (flush func()) {
	a.mark = rand.Text()
	out, err := termtext.NewWriter(a.out, a.mark), termtext.NewWriter(a.err, a.mark)
	a.out, a.err = out, err
	return func() {
		_, _ = out.Flush(), err.Flush() // a full disk has been met before
	}
}

// paint is the palette of a stream.
func (a *app) paint(w io.Writer) terminal.Palette {
	return terminal.PaletteOf(w, a.mark, a.getenv)
}

// printText prints a report for people, its headings bold.
func (a *app) printText(text string) error {
	_, err := fmt.Fprint(a.out, a.paint(a.out).Headings(text))
	return err
}

// warn prints what a user should know, on standard error.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.err, "simccl: %s %s\n", a.paint(a.err).Yellow("warning:"), fmt.Sprintf(format, args...))
}

// progress starts to show how far a command is.
func (a *app) progress(what string, total int) *terminal.Progress {
	p := terminal.Start(a.err, what, total)
	if a.last != nil {
		a.last.showing.Store(p)
	}
	return p
}
