// Package terminal writes for people at a terminal: a line of progress that is
// rewritten in place, and colours. Where a stream is no terminal, neither shows.
package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Progress shows the progress of a long command on a terminal: nothing in the first two seconds, then one
// line that is rewritten, cleared while the command prints, and removed at the end.
type Progress struct {
	now   func() time.Time
	doing string // the purpose of the counted items; empty: none is shown
	what  string // the counted items, in the plural
	begun time.Time
	over  chan struct{}
	ended sync.Once
	// reached, where set, counts what is done including parts of the current item.
	reached func() float64
	// counts, if set, returns the numbers of done and of all items of the phase.
	counts func() (done, total int64)
	// later is the time of the phases after this one, relative to this one's.
	later float64

	mu    sync.Mutex
	w     io.Writer // nil: not a terminal, or over
	done  int64
	total int64 // 0: not known
	shown time.Time
	width int
}

const (
	firstShown = 2 * time.Second
	refresh    = 200 * time.Millisecond
)

// Start begins to count. It shows itself if w is a terminal.
func Start(w io.Writer, what string, total int) *Progress {
	p := &Progress{now: time.Now, what: what, total: int64(total), over: make(chan struct{})}
	p.begun = p.now()
	if Is(w) {
		p.w = Raw(w)
		go p.watch()
	}
	return p
}

// Follow sets a function that returns the number of done items including parts of the current one.
func (p *Progress) Follow(reached func() float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reached = reached
}

// Phase starts another phase of the work; counts returns the numbers of done and of all items.
func (p *Progress) Phase(doing string, counts func() (done, total int64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing, p.counts, p.reached, p.done, p.begun, p.later = doing, counts, nil, 0, p.now(), 0
}

// Before sets the time of later phases relative to this one's, for the estimate of the remaining time.
func (p *Progress) Before(later float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.later = later
}

// watch rewrites the line every second, also while one item takes long.
func (p *Progress) watch() {
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

// Step counts one more done item.
func (p *Progress) Step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	p.show()
}

// show writes the line, unless it is too early, or was just written.
func (p *Progress) show() {
	if p.w == nil {
		return
	}
	now := p.now()
	spent := now.Sub(p.begun)
	if spent < firstShown || now.Sub(p.shown) < refresh {
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

// line returns the line to show after an elapsed time.
func (p *Progress) line(spent time.Duration) string {
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
		left := time.Duration((total*(1+p.later) - done) / rate * float64(time.Second))
		parts = append(parts, fmt.Sprintf("%.0f %%", 100*done/total))
		if p.total > 0 {
			parts = append(parts, fmt.Sprintf("%.2g/s", rate))
		}
		whole := ""
		if p.later > 0 {
			whole = " with the next part"
		}
		parts = append(parts, fmt.Sprintf("%s left%s", left.Round(time.Second), whole))
	} else {
		parts = append(parts, fmt.Sprintf("%s so far", spent.Round(time.Second)))
	}
	line := strings.Join(parts, ", ")
	if p.doing != "" {
		line = p.doing + ": " + line
	}
	return line
}

// Clear removes the line so that something else can be printed.
func (p *Progress) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w != nil && p.width > 0 {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", p.width))
		p.width, p.shown = 0, time.Time{}
	}
}

// End removes the line and stops.
func (p *Progress) End() {
	p.ended.Do(func() {
		close(p.over)
		p.Clear()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.w = nil
	})
}
