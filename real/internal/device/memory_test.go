package device

import (
	"context"
	"testing"
)

// TestMemoryIsToldByWhatTookIt: two buffers of a mebibyte at least, arenas, and
// what the first run of a plan takes.
func TestMemoryIsToldByWhatTookIt(t *testing.T) {
	d, control := driver(t)
	s, err := team(t, d)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Memory()
	if err != nil || m.Buffers < 2<<20 || m.Init <= 0 || m.Work != 0 {
		t.Errorf("opened: %+v, %v", m, err)
	}
	if _, err := s.Measure(context.Background(), allReduce(t, 4096), Planned, Options{Iters: 1}); err != nil {
		t.Fatal(err)
	}
	after, err := s.Memory()
	if err != nil || after.Work <= 0 || after.Buffers != m.Buffers || after.Init != m.Init {
		t.Errorf("after an operation: %+v, before %+v, %v", after, m, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	empty(t, control)
}
