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
	now   func() time.Time
	doing string // what the counted things are counted for; empty: their name says it
	what  string // what is counted
	begun time.Time
	over  chan struct{}
	ended sync.Once
	// reached, where set, counts what is done with the parts of what is under way.
	reached func() float64
	// counts, where set, is how many of how many are done.
	counts func() (done, total int64)

	mu    sync.Mutex
	w     io.Writer // nil: not a terminal, or over
	done  int64
	total int64 // 0: not known
	shown time.Time
	width int
}

const (
	patience = 2 * time.Second
	refresh  = 200 * time.Millisecond
)

// progress starts to count. It shows itself if standard error is a terminal.
func (a *app) progress(what string, total int) *progress {
	p := &progress{now: time.Now, what: what, total: int64(total), over: make(chan struct{})}
	p.begun = p.now()
	if isTerminal(a.err) {
		p.w = raw(a.err)
		go p.watch()
	}
	if a.last != nil {
		a.last.showing.Store(p)
	}
	return p
}

// follow counts the parts of what is under way.
func (p *progress) follow(reached func() float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reached = reached
}

// phase begins another part of the work, of which a function knows how many of
// how many are done.
func (p *progress) phase(doing string, counts func() (done, total int64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing, p.counts, p.reached, p.done, p.begun = doing, counts, nil, 0, p.now()
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
	if p.counts != nil {
		p.done, p.total = p.counts()
	}
	line := p.line(spent)
	fmt.Fprintf(p.w, "\r%-*s", p.width, line)
	p.width = len(line)
}

// line is what is shown after so much time.
func (p *progress) line(spent time.Duration) string {
	var parts []string
	if p.total > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d %s", p.done, p.total, p.what))
	}
	done, total := float64(p.done), float64(max(p.total, 1))
	if p.reached != nil {
		done = max(done, p.reached())
	}
	if done > 0 {
		rate := done / spent.Seconds()
		left := time.Duration((total - done) / rate * float64(time.Second))
		parts = append(parts, fmt.Sprintf("%.0f %%", 100*done/total))
		if p.total > 0 {
			parts = append(parts, fmt.Sprintf("%.2g/s", rate))
		}
		parts = append(parts, fmt.Sprintf("%s left", left.Round(time.Second)))
	} else {
		parts = append(parts, fmt.Sprintf("%s so far", spent.Round(time.Second)))
	}
	line := strings.Join(parts, ", ")
	if p.doing != "" {
		line = p.doing + ": " + line
	}
	return line
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
	p.ended.Do(func() {
		close(p.over)
		p.clear()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.w = nil
	})
}
