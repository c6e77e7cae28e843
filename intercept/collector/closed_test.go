package collector

import "testing"

// TestWhoWaitsOnAClosedConnection: with a thread's connection its own wait ends, with that of its process the
// waits of all threads of the process; others wait on.
func TestWhoWaitsOnAClosedConnection(t *testing.T) {
	for _, whole := range []bool{false, true} {
		p, other := &process{}, &process{}
		own, beside, far := &thread{p: p, id: 1}, &thread{p: p, id: 2}, &thread{p: other, id: 3}
		c := &Core{feeding: true, threads: map[*thread]bool{}}
		for _, x := range []*thread{own, beside, far} {
			c.waiting = append(c.waiting, &waiter{t: x, done: make(chan reply, 1)})
		}
		was := append([]*waiter(nil), c.waiting...)
		closing := own
		if whole {
			closing = &thread{p: p, whole: true}
		}
		c.closed(closing)
		for i, want := range []bool{true, whole, false} {
			if ended := len(was[i].done) == 1; ended != want {
				t.Errorf("process %t: thread %d ended %t", whole, i+1, ended)
			}
		}
		if want := map[bool]int{false: 2, true: 1}[whole]; len(c.waiting) != want {
			t.Errorf("process %t: %d wait on, not %d", whole, len(c.waiting), want)
		}
	}
}
