package process

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/simccl/simccl/internal/interrupt"
	"github.com/simccl/simccl/internal/terminal"
	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/trace/chrome"
)

// Guard replaces standard output and error by writers that escape control characters: names in topologies,
// fabrics and traces come from other people. Only the program's own colours, which carry a random mark, pass.
// The returned function ends the output: it completes a truncated character, and adds a write error to the
// command's error.
func (p *Process) Guard() (end func(error) error) {
	p.mark = rand.Text()
	out, err := termtext.NewWriter(p.Out, p.mark), termtext.NewWriter(p.Err, p.mark)
	kept := &output{Writer: out}
	p.Out, p.Err = kept, err
	return func(of error) error {
		_, _ = out.Flush(), err.Flush() // a full disk has been met before
		if kept.err != nil && !errors.Is(of, kept.err) {
			of = errors.Join(of, kept.err) // most prints ignore write errors; report the first one here
		}
		return of
	}
}

// output remembers the first write error.
type output struct {
	io.Writer
	err error
}

// Unwrap returns the underlying writer.
func (o *output) Unwrap() io.Writer { return o.Writer }

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

// Paint returns the palette of a stream.
func (p *Process) Paint(w io.Writer) terminal.Palette {
	return terminal.PaletteOf(w, p.mark, p.Getenv)
}

// PrintText prints a text report with bold headings.
func (p *Process) PrintText(text string) error {
	_, err := fmt.Fprint(p.Out, p.Paint(p.Out).Headings(text))
	return err
}

// PrintJSON prints one document, indented.
func (p *Process) PrintJSON(v any) error { return p.Encode(" ", false, v) }

// Encode prints one document of JSON; html escapes <, > and &.
func (p *Process) Encode(indent string, html bool, v any) error {
	enc := json.NewEncoder(p.Out)
	enc.SetEscapeHTML(html)
	enc.SetIndent("", indent)
	return enc.Encode(v)
}

// Notes returns the writer for warnings, progress and notes on written files: standard error, or none with
// --quiet. Requested output (--nccl-log) and errors go to Err itself.
func (p *Process) Notes() io.Writer {
	if p.Quiet {
		return io.Discard
	}
	return p.Err
}

// Warn prints what a user should know, on standard error.
func (p *Process) Warn(format string, args ...any) {
	fmt.Fprintf(p.Notes(), "simccl: %s %s\n", p.Paint(p.Err).Yellow("warning:"), fmt.Sprintf(format, args...))
}

// warnOf prints a warning about a Spec.
func (p *Process) warnOf(err error) {
	switch w := err.(type) {
	case *scenario.LintWarning:
		if w.File != ThisTopology {
			fmt.Fprintf(p.Notes(), "topo lint: %s (simccl topo lint %s)\n", w.Summary, w.File)
		}
	case *scenario.ReleaseNote:
		fmt.Fprintf(p.Notes(), "simccl: %v\n", w)
	case *scenario.NearError, *scenario.WindowError:
		if line := p.Line.showing.Load(); line != nil {
			line.Clear()
		}
		fmt.Fprintf(p.Notes(), "simccl: %v\n", w)
	default:
		if p.Named != nil {
			err = p.Named(err)
		}
		p.Warn("%v", err)
	}
}

// Progress starts a progress line.
func (p *Process) Progress(what string, total int) *terminal.Progress {
	line := terminal.Start(p.Notes(), what, total)
	if p.Line != nil {
		p.Line.showing.Store(line)
	}
	return line
}

// Interrupted prints one line about a signal.
func (p *Process) Interrupted(why *interrupt.Error) {
	if line := p.Line.showing.Load(); line != nil {
		line.End()
	}
	fmt.Fprintf(p.Err, "%s %v\n", p.Paint(p.Err).Red("simccl:"), why)
}

// OpenTrace returns the instruction how to open a trace of that name.
func OpenTrace(name string) string {
	switch {
	case strings.HasSuffix(name, ".zst"):
		return "unpack it (zstd -d) and open it in https://ui.perfetto.dev"
	case strings.Contains(name, ".pftrace"):
		return "open it in https://ui.perfetto.dev"
	}
	return "open it in https://ui.perfetto.dev or chrome://tracing"
}

// CloseTrace completes a trace file and prints its name.
func (p *Process) CloseTrace(name string, w *chrome.Writer) error {
	line := p.Progress("events", 0)
	defer line.End()
	line.Phase("writing trace", w.Progress)
	if err := w.Close(); err != nil {
		return err
	}
	line.End()
	n, _ := w.Progress()
	p.WroteOf(name, fmt.Sprintf("%d events, ", n), OpenTrace(name))
	return nil
}

// Wrote prints on standard error, on one line, the name and size of a written file and how to open it.
func (p *Process) Wrote(name, how string) { p.WroteOf(name, "", how) }

// WroteOf is Wrote with a word on what is in the file.
func (p *Process) WroteOf(name, what, how string) {
	at, err := os.Stat(name)
	if err != nil || !at.Mode().IsRegular() { // a pipe or a device: who named it knows where it is
		return
	}
	fmt.Fprintf(p.Notes(), "simccl: wrote %s: %s%s; %s\n", name, what, fileSize(at.Size()), how)
}

// fileSize writes a number of bytes for people, in decimal units.
func fileSize(n int64) string {
	unit, x := "bytes", float64(n)
	for _, next := range []string{"kB", "MB", "GB"} {
		if x < 1000 {
			break
		}
		unit, x = next, x/1000
	}
	if unit == "bytes" {
		return fmt.Sprintf("%d %s", n, unit)
	}
	return fmt.Sprintf("%.1f %s", x, unit)
}
