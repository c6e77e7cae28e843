package uec

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTimers: timers are due by time, those of one time in the order in which they were added, also after
// they were moved.
func TestTimers(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	var h timers
	var list []timer
	for now, added := int64(0), int32(0); now < 3000; now++ {
		for range r.IntN(3) {
			at := now + 1 + r.Int64N(40)
			h.add(added, at)
			list = append(list, timer{at, added, added})
			added++
		}
		for h.first() <= now {
			k := slices.Index(list, slices.MinFunc(list, func(x, y timer) int {
				return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.order, y.order))
			}))
			if want := list[k]; h.first() != want.at || h.First().flow != want.flow {
				t.Fatalf("flow %d is due at %d, want %d at %d", h.First().flow, h.first(), want.flow, want.at)
			}
			if r.IntN(3) > 0 {
				h.Pop()
				list = slices.Delete(list, k, k+1)
				continue
			}
			list[k].at = now + 1 + r.Int64N(20)
			h.move(list[k].at)
		}
	}
	if h.Len() != len(list) || h.added < 1000 {
		t.Errorf("%d timers are left of %d, want %d", h.Len(), h.added, len(list))
	}
}

// TestNextOldestIsDueNext: two packets that were sent a microsecond apart, and are never acknowledged, time
// out a microsecond apart; only then does the window, which each shrinks by its packet, let one out.
func TestNextOldestIsDueNext(t *testing.T) {
	const us = 1_000_000
	n := small()
	e := build(n, []Flow{{Src: 0, Dst: 4, Bytes: 100_000, ID: 1}}, &Config{Balance: Mixed, Paths: 64,
		MTU: 4150})
	h, s := &e.hosts[0], &e.snd[0]
	s.packets, s.backlog, s.highest = 25, 90_000, 2
	s.room(1)
	s.win = e.nscc.Fresh()
	s.win.Cwnd, s.flight = 2*e.mtu, 2*e.mtu
	for psn, sent := range []int64{us, 2 * us} {
		*s.at(uint32(psn)) = record{sent: sent, size: uint16(e.mtu), state: inFlight}
	}
	e.arm(h, 0, s, us+e.rto)
	for i, want := range []struct{ at, retransmitted int64 }{{us + e.rto, 0}, {2*us + e.rto, 1}} {
		if at := h.timers.first(); at != want.at {
			t.Fatalf("timeout %d is due at %d ps, want %d", i, at, want.at)
		}
		e.expire(h, want.at)
		if e.res.Timeouts != int64(i+1) || e.res.Retransmitted != want.retransmitted {
			t.Errorf("after timeout %d: %d timeouts, %d sent again, want %d", i, e.res.Timeouts,
				e.res.Retransmitted, want.retransmitted)
		}
	}
	if at := h.timers.first(); at != 2*us+2*e.rto {
		t.Errorf("the packet that was sent again is due at %d ps", at)
	}
}
