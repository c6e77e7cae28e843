package qp

import (
	"slices"
	"testing"

	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/frames"
)

// TestForget: a receiver that knows a flow which has ended at its sender begins anew, once, and only with
// what comes later.
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

// TestBoundByTimers: a window that follows DCQCN's rate is as large as the timers left it that were set
// before an event was planned. That of the decrease, 4 us, comes before what was planned 1 us ago for the
// same instant, and after what was 5 us ago.
func TestBoundByTimers(t *testing.T) {
	const us = 1_000_000
	c := &cc.Params{Kind: cc.DCQCN, VarWindow: true, Gain: 1. / 256, AlphaPeriod: us, DecreasePeriod: 4 * us,
		IncreasePeriod: 300 * us, MinRate: 1e8}
	for _, age := range []int64{us, 5 * us} {
		s := Sender{Rate: cc.Rate{Rate: 1e11, Line: 1e11}, Window: 10_000, Frames: 100, Nxt: 8, Una: 2,
			Dcqcn: cc.NewReaction(1e11)}
		s.Dcqcn.Notify(c, &s.Rate, 0, 0)
		if now := int64(4*us + 1000); s.Bound(c, 1000, false, now, age) != (age < 4*us) ||
			!s.Bound(c, 1000, false, now+1000, age) {
			t.Errorf("6,000 bytes in flight, rate %d after an event that was planned %d ps before: the "+
				"window before or after the cut holds", s.Rate.Rate, age)
		}
	}
}

// TestCNPsGoAheadOfAcknowledgements: of a marked frame a CNP goes back, before the acknowledgements that wait
// and behind the CNPs; none within the gap of its queue pair. The frame's mark is cleared in any case.
func TestCNPsGoAheadOfAcknowledgements(t *testing.T) {
	q := &frames.Ring{Buf: make([]frames.Frame, 8)}
	for flow := range int32(3) {
		q.Push(&frames.Frame{Flow: flow, Flags: frames.Ack})
	}
	r := &Receiver{Back: 7}
	for i, at := range []int64{100, 130, 149, 150} {
		f := &frames.Frame{Flow: int32(10 + i), At: at, Flags: frames.CE}
		if i == 1 {
			f.Flags = 0
		}
		SendCNP(r, f, &cc.Params{CNPGap: 50, CNPBytes: 64}, q)
		if f.Flags != 0 {
			t.Errorf("frame %d keeps its mark", i)
		}
	}
	var flows []int32
	for i := q.Head; i != q.Tail; i++ {
		f := q.At(i)
		flows = append(flows, f.Flow)
		if f.Flow >= 10 && (f.Flags != cnpFlags || f.Route != 7 || f.Size != 64) {
			t.Errorf("%+v", f)
		}
	}
	if want := []int32{10, 13, 0, 1, 2}; !slices.Equal(flows, want) {
		t.Errorf("flows %v, want %v", flows, want)
	}
}
