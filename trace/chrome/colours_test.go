package chrome

import (
	"bytes"
	"testing"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// TestColours: what time is spent on has a colour of its own in a file, comes back from
// it, and two events that differ in nothing else are not mixed up.
func TestColours(t *testing.T) {
	var out bytes.Buffer
	w := New(&out, Options{})
	id := w.Track(trace.Track{Process: 1, Thread: 2})
	for tint := range trace.NumTints {
		w.Emit(&trace.Event{Track: id, Start: units.Time(tint) * units.Microsecond, Dur: units.Microsecond,
			Name: "x", Tint: tint})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	next := trace.Plain
	if _, err := Read(bytes.NewReader(out.Bytes()), func(e *Event) error {
		if e.Phase == 'X' {
			if e.Tint != next {
				t.Errorf("tint %d is read as %d", next, e.Tint)
			}
			next++
		}
		return nil
	}); err != nil || next != trace.NumTints {
		t.Error(err, next)
	}
	if n := bytes.Count(out.Bytes(), []byte(`"cname":"`)); n != int(trace.NumTints)-1 {
		t.Errorf("%d colours in the file", n)
	}
}
