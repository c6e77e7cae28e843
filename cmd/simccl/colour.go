package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/simccl/simccl/internal/termtext"
)

// palette colours words on a terminal, and nowhere else. Its mark tells the
// writer to the terminal that the colour is ours (guard).
type palette struct {
	on   bool
	mark string
}

// guard puts writers before standard output and error that escape the control
// characters of whatever is printed: names in topologies, fabrics and traces are
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

// raw is the writer below those that guard and count: for a line that is
// rewritten in its place.
func raw(w io.Writer) io.Writer {
	for {
		switch o := w.(type) {
		case *output:
			w = o.Writer
		case *termtext.Writer:
			w = o.Unwrap()
		default:
			return w
		}
	}
}

// paint is the palette of a stream: off where it is no terminal, where NO_COLOR
// is set (no-color.org), and on terminals that say they know no colours.
func (a *app) paint(w io.Writer) palette {
	none, set := a.getenv("NO_COLOR")
	term, _ := a.getenv("TERM")
	return palette{isTerminal(w) && !(set && none != "") && term != "dumb", a.mark}
}

func isTerminal(w io.Writer) bool {
	f, ok := raw(w).(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p palette) in(code, s string) string {
	if !p.on {
		return s
	}
	esc := "\x1b" + p.mark
	return esc + "[" + code + "m" + s + esc + "[0m"
}

func (p palette) bold(s string) string   { return p.in("1", s) }
func (p palette) red(s string) string    { return p.in("31", s) }
func (p palette) green(s string) string  { return p.in("32", s) }
func (p palette) yellow(s string) string { return p.in("33", s) }

// severities colours the word that says how bad a finding is.
func (p palette) severities(line string) string {
	line = strings.Replace(line, " error: ", " "+p.red("error:")+" ", 1)
	return strings.Replace(line, " warning: ", " "+p.yellow("warning:")+" ", 1)
}

// printText prints a report for people, its headings bold.
func (a *app) printText(text string) error {
	if p := a.paint(a.out); p.on {
		lines := strings.SplitAfter(text, "\n")
		for i, l := range lines {
			if bare := strings.TrimRight(l, "\n"); strings.HasSuffix(bare, ":") && !strings.HasPrefix(bare, " ") {
				lines[i] = p.bold(bare) + l[len(bare):]
			}
		}
		text = strings.Join(lines, "")
	}
	_, err := fmt.Fprint(a.out, text)
	return err
}

// warn tells a user what he should know, on standard error.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.err, "simccl: %s %s\n", a.paint(a.err).yellow("warning:"), fmt.Sprintf(format, args...))
}
