package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/simccl/simccl/trace/chrome"
)

// openTrace says what to do with a trace of that name.
func openTrace(name string) string {
	if strings.Contains(name, ".pftrace") {
		return "open it in https://ui.perfetto.dev"
	}
	return "open it in https://ui.perfetto.dev or chrome://tracing"
}

// wrote says on standard error, in one line, which file was written, how large it
// is, and what to do with it.
func (a *app) wrote(name, how string) {
	a.wroteOf(name, "", how)
}

// wroteTrace is wrote of a trace; nothing where there is none.
func (a *app) wroteTrace(name string, w *chrome.Writer) {
	if w == nil {
		return
	}
	n, _ := w.Progress()
	a.wroteOf(name, fmt.Sprintf("%d events, ", n), openTrace(name))
}

func (a *app) wroteOf(name, what, how string) {
	at, err := os.Stat(name)
	if err != nil || !at.Mode().IsRegular() { // a pipe or a device: who named it knows where it is
		return
	}
	fmt.Fprintf(a.err, "simccl: wrote %s: %s%s; %s\n", name, what, fileSize(at.Size()), how)
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
