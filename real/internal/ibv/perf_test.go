package ibv

import (
	"net"
	"testing"
)

// TestResultMayComeEarly: the peer ends and sends its result while this side still takes
// completions, and so looks for notes again. The result is not lost, for nothing comes after it.
func TestResultMayComeEarly(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	wrote := make(chan error, 1)
	go func() {
		err := writeLine(far, &note{Ended: true})
		if err == nil {
			err = writeLine(far, &note{Perf: &Perf{Iters: 20, Average: 3, Rate: 2}})
		}
		wrote <- err
	}()
	s := &side{t: newControl(near)}
	for s.t.result == nil {
		if err := s.listen(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-wrote; err != nil || !s.farEnded {
		t.Fatalf("the peer wrote with %v, has ended: %t", err, s.farEnded)
	}
	p, err := s.t.settle(&Perf{Iters: 10, Average: 1, Rate: 1}, nil, true)
	if err != nil || p.Iters != 20 || p.Average != 4 || p.Rate != 3 {
		t.Errorf("both directions: %+v, %v", p, err)
	}
}
