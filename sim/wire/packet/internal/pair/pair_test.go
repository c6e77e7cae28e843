package pair

import "testing"

// TestForget: a receiver that knows a flow which has ended at its sender begins anew, once, and only with what comes later.
func TestForget(t *testing.T) {
	s := Sender{Frames: 8, Una: 8, Moved: 100}
	r := Receiver{Expected: 8, LastNak: 5, NakAt: 70, Back: 3}
	if r.Forget(&s, 200) {
		t.Error("forgotten before the flow ended")
	}
	if s.Ending = true; r.Forget(&s, 100) {
		t.Error("forgotten when the flow ends")
	}
	if !r.Forget(&s, 101) || r.Expected != 0 || r.LastNak != 0 || r.NakAt != 0 || r.Back != 3 {
		t.Errorf("%+v after the flow ended", r)
	}
	if what := r.Take(6, 101, false, 500); what != Missing {
		t.Errorf("a frame that comes then is %d, not Missing", what)
	}
	if r.Expected = 8; r.Forget(&s, 900) {
		t.Error("forgotten twice")
	}
}

// TestLinger: a window keeps a sender whose flow has ended from sending the rest again.
func TestLinger(t *testing.T) {
	for window, want := range []uint32{5, 8} {
		s := Sender{Frames: 8, Una: 8, Nxt: 5, Window: int64(window)}
		if goes := s.Linger(); goes != (want < 8) || s.Nxt != want {
			t.Errorf("window %d: goes on: %v, with frame %d", window, goes, s.Nxt)
		}
	}
	s := Sender{Frames: 8, Una: 8, Class: 2}
	if !s.Held(1<<2) || s.Held(1<<1) {
		t.Error("a pause of another class holds it, or that of its own does not")
	}
}
