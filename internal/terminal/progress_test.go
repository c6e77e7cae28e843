package terminal

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	clock := time.Unix(0, 0)
	p := &Progress{w: &out, now: func() time.Time { return clock }, what: "sizes", total: 10, begun: clock,
		over: make(chan struct{})}
	for range 3 { // within two seconds: silent
		clock = clock.Add(500 * time.Millisecond)
		p.Step()
	}
	if out.Len() != 0 {
		t.Errorf("told within %v: %q", clock.Sub(p.begun), out.String())
	}
	clock = clock.Add(2500 * time.Millisecond)
	p.Step()
	if got := out.String(); got != "\r4 of 10 sizes, 40 %, 1/s, 6s left" {
		t.Errorf("got %q", got)
	}
	p.Step() // at once: too soon to rewrite
	p.End()
	if got := out.String(); strings.Count(got, "\r") != 3 || !strings.HasSuffix(got, " \r") {
		t.Errorf("got %q", got)
	}
}

// Without a terminal nothing is written.
func TestProgressIsForTerminals(t *testing.T) {
	var errs bytes.Buffer
	p := Start(&errs, "sizes", 2)
	p.begun = p.begun.Add(-time.Hour)
	p.Step()
	p.End()
	if errs.Len() != 0 {
		t.Errorf("wrote %q", errs.String())
	}
}

// What a command prints comes on a line of its own, and one thing that takes
// long is reported as well.
func TestProgressMakesWay(t *testing.T) {
	var out bytes.Buffer
	clock := time.Unix(0, 0)
	p := &Progress{w: &out, now: func() time.Time { return clock }, what: "sizes", total: 2, begun: clock,
		over: make(chan struct{})}
	clock = clock.Add(3 * time.Second)
	p.show()
	if got := out.String(); got != "\r0 of 2 sizes, 3s so far" {
		t.Errorf("got %q", got)
	}
	p.Clear()
	out.WriteString("a row\n")
	p.Step()
	p.End()
	if lines := strings.Split(out.String(), "\n"); !strings.HasSuffix(lines[0], "\ra row") ||
		!strings.Contains(lines[1], "1 of 2 sizes, 50 %, 0.33/s, 3s left") {
		t.Errorf("got %q", out.String())
	}
}

// One size that takes long is reported by its parts.
func TestProgressWithinOneSize(t *testing.T) {
	var out bytes.Buffer
	clock := time.Unix(0, 0)
	p := &Progress{w: &out, now: func() time.Time { return clock }, what: "sizes", total: 1, begun: clock,
		over:    make(chan struct{}),
		reached: func() float64 { return 0.25 }}
	clock = clock.Add(5 * time.Second)
	p.show()
	if got := out.String(); got != "\r0 of 1 sizes, 25 %, 0.05/s, 15s left" {
		t.Errorf("got %q", got)
	}
}

// TestProgressOfPhases: what is done once the rows are there is reported by its own
// name, without numbers until it has some.
func TestProgressOfPhases(t *testing.T) {
	var out bytes.Buffer
	clock := time.Unix(0, 0)
	p := &Progress{w: &out, now: func() time.Time { return clock }, what: "events", begun: clock,
		over: make(chan struct{})}
	p.Phase("simulating for the trace", nil)
	p.Follow(func() float64 { return 0.5 })
	show := func(want string) {
		t.Helper()
		out.Reset()
		clock = clock.Add(5 * time.Second)
		p.show()
		if got := strings.TrimRight(strings.TrimPrefix(out.String(), "\r"), " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	show("simulating for the trace: 50 %, 5s left")
	p.Before(1)
	show("simulating for the trace: 50 %, 30s left with the next part")
	written, total := int64(0), int64(0)
	p.Phase("writing trace", func() (int64, int64) { return written, total })
	show("writing trace: 5s so far")
	written, total = 250, 1000
	show("writing trace: 250 of 1000 events, 25 %, 25/s, 30s left")
	p.End()
	p.End()
	out.Reset()
	clock = clock.Add(5 * time.Second)
	p.show()
	if out.Len() != 0 {
		t.Errorf("it goes on after its end: %q", out.String())
	}
}

// Colours are for terminals; NO_COLOR and a terminal without any say no.
func TestColoursAreForTerminals(t *testing.T) {
	getenv := func(name, value string) func(string) (string, bool) {
		return func(n string) (string, bool) {
			if n == name {
				return value, true
			}
			return "", false
		}
	}
	if p := PaletteOf(&bytes.Buffer{}, "", getenv("", "")); p.On || p.Red("x") != "x" {
		t.Error("a buffer is no terminal")
	}
	if got := (Palette{On: true}).Red("x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("red is %q", got)
	}
	tty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no pseudo terminal: ", err)
	}
	defer tty.Close()
	for _, c := range []struct {
		name, value string
		on          bool
	}{{"", "", true}, {"NO_COLOR", "", true}, {"NO_COLOR", "1", false}, {"TERM", "dumb", false}} {
		if p := PaletteOf(tty, "", getenv(c.name, c.value)); p.On != c.on {
			t.Errorf("with %s=%s colours are %v", c.name, c.value, p.On)
		}
	}
}
