package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	clock := time.Unix(0, 0)
	p := &progress{w: &out, now: func() time.Time { return clock }, what: "sizes", total: 10, begun: clock}
	for range 3 { // within two seconds: silent
		clock = clock.Add(500 * time.Millisecond)
		p.step()
	}
	if out.Len() != 0 {
		t.Errorf("told within %v: %q", clock.Sub(p.begun), out.String())
	}
	clock = clock.Add(2500 * time.Millisecond)
	p.step()
	if got := out.String(); got != "\r4 of 10 sizes, 1.0/s, 6s left" {
		t.Errorf("got %q", got)
	}
	p.step() // at once: too soon to rewrite
	p.end()
	if got := out.String(); strings.Count(got, "\r") != 3 || !strings.HasSuffix(got, " \r") {
		t.Errorf("got %q", got)
	}
}

// Where nobody looks nothing is written.
func TestProgressIsForTerminals(t *testing.T) {
	var errs bytes.Buffer
	a := &app{out: &bytes.Buffer{}, err: &errs}
	p := a.progress("sizes", 2)
	p.begun = p.begun.Add(-time.Hour)
	p.step()
	p.end()
	if errs.Len() != 0 {
		t.Errorf("wrote %q", errs.String())
	}
}
