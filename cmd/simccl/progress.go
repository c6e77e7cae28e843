package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// progress tells on a terminal how far a long command is: nothing within the
// first two seconds, then one line that is rewritten, and at the end removed.
type progress struct {
	w     io.Writer // nil: not a terminal
	now   func() time.Time
	what  string
	total int
	done  int
	begun time.Time
	shown time.Time
	width int
}

const (
	patience = 2 * time.Second
	refresh  = 200 * time.Millisecond
)

// progress starts to count. It shows itself if standard error is a terminal
// that the table does not go to as well: there the rows tell enough.
func (a *app) progress(what string, total int) *progress {
	p := &progress{now: time.Now, what: what, total: total}
	if isTerminal(a.err) && !isTerminal(a.out) {
		p.w = a.err
	}
	p.begun = p.now()
	return p
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// step notes that one more is done.
func (p *progress) step() {
	p.done++
	if p.w == nil {
		return
	}
	now := p.now()
	spent := now.Sub(p.begun)
	if spent < patience || now.Sub(p.shown) < refresh {
		return
	}
	p.shown = now
	rate := float64(p.done) / spent.Seconds()
	left := time.Duration(float64(p.total-p.done) / rate * float64(time.Second))
	line := fmt.Sprintf("%d of %d %s, %.1f/s, %s left", p.done, p.total, p.what, rate, left.Round(time.Second))
	fmt.Fprintf(p.w, "\r%-*s", p.width, line)
	p.width = len(line)
}

// end removes the line.
func (p *progress) end() {
	if p.w != nil && p.width > 0 {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", p.width))
	}
}
