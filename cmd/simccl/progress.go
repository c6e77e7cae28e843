package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// progress tells on a terminal how far a long command is: nothing within the
// first two seconds, then one line that is rewritten, taken away for what the
// command prints, and at the end removed.
type progress struct {
	w     io.Writer // nil: not a terminal
	now   func() time.Time
	what  string
	total int
	begun time.Time
	over  chan struct{}
	// reached, where set, counts what is done with the parts of what is under way.
	reached func() float64

	mu    sync.Mutex
	done  int
	shown time.Time
	width int
}

const (
	patience = 2 * time.Second
	refresh  = 200 * time.Millisecond
)

// progress starts to count. It shows itself if standard error is a terminal.
func (a *app) progress(what string, total int) *progress {
	p := &progress{now: time.Now, what: what, total: total, over: make(chan struct{})}
	p.begun = p.now()
	if isTerminal(a.err) {
		p.w = raw(a.err)
		go p.watch()
	}
	return p
}

// follow counts the parts of what is under way.
func (p *progress) follow(reached func() float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reached = reached
}

// watch rewrites the line while one thing takes long.
func (p *progress) watch() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-p.over:
			return
		case <-tick.C:
			p.mu.Lock()
			p.show()
			p.mu.Unlock()
		}
	}
}

// step notes that one more is done.
func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	p.show()
}

// show writes the line, unless it is too early, or was just written.
func (p *progress) show() {
	if p.w == nil {
		return
	}
	now := p.now()
	spent := now.Sub(p.begun)
	if spent < patience || now.Sub(p.shown) < refresh {
		return
	}
	p.shown = now
	line := fmt.Sprintf("%d of %d %s, %s so far", p.done, p.total, p.what, spent.Round(time.Second))
	done := float64(p.done)
	if p.reached != nil {
		done = max(done, p.reached())
	}
	if done > 0 {
		rate := done / spent.Seconds()
		left := time.Duration((float64(p.total) - done) / rate * float64(time.Second))
		line = fmt.Sprintf("%d of %d %s, %.0f %%, %.2g/s, %s left", p.done, p.total, p.what, 100*done/float64(p.total), rate, left.Round(time.Second))
	}
	fmt.Fprintf(p.w, "\r%-*s", p.width, line)
	p.width = len(line)
}

// clear takes the line away, for something else to be printed.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w != nil && p.width > 0 {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", p.width))
		p.width, p.shown = 0, time.Time{}
	}
}

// end removes the line for good.
func (p *progress) end() {
	if p.w != nil {
		close(p.over)
	}
	p.clear()
}
