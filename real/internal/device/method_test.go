package device

import (
	"testing"

	"github.com/simccl/simccl/real/internal/cuda"
)

// TestMethodsAreDistinct: every free algorithm has a method of its own, which
// gives it back and has its name; NCCL and Planned are none of them.
func TestMethodsAreDistinct(t *testing.T) {
	names := map[string]bool{}
	for _, m := range []Method{NCCL, Planned} {
		if s, ok := m.shape(); ok {
			t.Errorf("%v is the free algorithm %v", m, s)
		}
		names[m.String()] = true
	}
	shapes := []cuda.Shape{cuda.OneShot, cuda.TwoWords, cuda.TwoShot, cuda.Push, cuda.Direct, cuda.Copies,
		cuda.Words, cuda.Lines, cuda.Relay}
	for _, s := range shapes {
		m := Free(s)
		if got, ok := m.shape(); !ok || got != s || m.String() != s.String() {
			t.Errorf("%v: shape %v, %t, called %v", s, got, ok, m)
		}
		names[m.String()] = true
	}
	if len(names) != 2+len(shapes) {
		t.Errorf("names are not distinct: %v", names)
	}
}
