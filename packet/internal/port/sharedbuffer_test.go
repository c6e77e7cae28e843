package port

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/simccl/simccl/packet/spec"
)

// TestMemory: one port fills until its neighbour is to pause, then its headroom until
// there is no room, and drains until the neighbour is to go on.
func TestMemory(t *testing.T) {
	b := spec.Buffer{Bytes: 100_000, Reserve: 1000, ResumeOffset: 500, Shift: 1, HeadroomDelays: 2}
	m := NewSharedBuffer(&b, 2, []IngressPort{{100e9, 1_000_000}, {100e9, 1_000_000}}, 100e9)
	m.Arriving[0], m.Total = 1000, 1000
	if !m.Calm() || m.Shared() != 100_000-2*1000-2*25_000 {
		t.Errorf("%d shared at first", m.Shared())
	}
	m.Recount()
	in, paused := 0, 0
	for ; ; in++ {
		room, pause := m.Admit(0, 1, 1000)
		if pause && paused == 0 {
			paused = in
		} else if pause {
			t.Error("pauses twice")
		}
		if !room {
			break
		}
	}
	// Half of what is free: 16 of 48 frames and the reserve; then the headroom's 25.
	if !m.Stopped(0, 1) || m.Calm() || paused < 16 || paused > 17 || in < paused+24 || in > paused+26 {
		t.Errorf("pauses after %d frames, no room after %d", paused, in)
	}
	resumed := -1
	for k := range in {
		if m.Release(0, 1, 1000) {
			resumed = k
		}
	}
	if m.Stopped(0, 1) || resumed < 24 || m.in[0*2+1] != 0 || m.above != 0 || m.held != 0 || m.shared != 0 {
		t.Errorf("goes on after %d of %d frames; left %+v", resumed, in, m)
	}
	m.Exact = false
	m.Add(1, 1, 700)
	if m.Release(1, 1, 700) || m.held != 0 {
		t.Error("what passes a calm switch stays")
	}
}

// TestAlpha: with a threshold of 8 times the free memory, one of 9 parts stays free when a queue pauses its
// neighbour, with two queues one of 17; what is granted is never more than there is.
func TestAlpha(t *testing.T) {
	b := spec.Buffer{Bytes: 170_000, Shift: -3, Headroom: 8500}
	fill := func(ports int) (paused []int64, m SharedBuffer) {
		// 153,000 are shared
		m = NewSharedBuffer(&b, 2, []IngressPort{{100e9, 1_000_000}, {100e9, 1_000_000}}, 100e9)
		m.Recount()
		for in := int64(100); len(paused) < ports; in += 100 {
			for p := range ports {
				room, pause := m.Admit(uint32(p), 1, 100)
				if !room || m.shared > m.base {
					t.Fatalf("%d bytes in, room %t, %d of %d in use", in, room, m.shared, m.base)
				}
				if pause {
					paused = append(paused, in)
				}
			}
		}
		return paused, m
	}
	// 8 (153,000 - u) is first no more than u at 136,000; 8 (153,000 - 2 u) at 72,000, when the
	// second queue has as much; the first has grown by 100 more when it looks again.
	if got, m := fill(1); got[0] != 136_000 || m.Calm() {
		t.Errorf("one queue pauses at %d", got)
	}
	if got, _ := fill(2); got[0] != 72_000 || got[1] != 72_100 {
		t.Errorf("two queues pause at %d", got)
	}
	// Large frames: the second is above what is free, though below the threshold, and goes to the headroom.
	m := NewSharedBuffer(&b, 2, []IngressPort{{100e9, 1_000_000}, {100e9, 1_000_000}}, 100e9)
	m.Recount()
	m.Admit(0, 1, 100_000)
	m.Admit(0, 1, 35_000)
	for _, x := range []struct {
		size, shared, headroom int64
		room                   bool
	}{{15_000, 150_000, 0, true}, {3100, 150_000, 3100, true}, {6000, 150_000, 3100, false},
		{3000, 153_000, 3100, true}} {
		if room, _ := m.Admit(1, 1, x.size); room != x.room || m.shared != x.shared ||
			m.headroom[3] != x.headroom {
			t.Errorf("%d bytes: room %t, %d shared, %d in the headroom, want %+v", x.size, room, m.shared,
				m.headroom[3], x)
		}
	}
}

// TestCalm: in a window that is calm nothing is paused or dropped, in whatever order frames come, for all
// shares.
func TestCalm(t *testing.T) {
	calm := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 4))
		b := spec.Buffer{Bytes: 60_000, Reserve: r.Int64N(3000), ResumeOffset: 500, Shift: r.IntN(6) - 3,
			HeadroomDelays: r.IntN(2)}
		ports := []IngressPort{{40e9, 1_000_000}, {40e9, 1_000_000}, {80e9, 1_000_000}}
		m := NewSharedBuffer(&b, 2, ports, 40e9)
		var waits [3]int64
		for range 30 {
			clear(m.Arriving)
			var come []uint32
			m.Total = 0
			for range r.IntN(8) {
				p := r.Uint32N(3)
				m.Arriving[p] += 1000
				m.Total += 1000
				come = append(come, p)
			}
			if !m.Calm() {
				break
			}
			calm++
			m.Recount()
			for _, p := range come {
				if room, pause := m.Admit(p, 1, 1000); !room || pause {
					t.Fatalf("seed %d, shift %d: room %t, pauses %t in a calm window", seed, b.Shift, room,
						pause)
				}
				waits[p] += 1000
			}
			for p := range waits {
				for waits[p] > 0 && r.IntN(3) == 0 {
					m.Release(uint32(p), 1, 1000)
					waits[p] -= 1000
				}
			}
			m.Exact = false
		}
	}
	if calm < 1000 {
		t.Errorf("%d calm windows", calm)
	}
}

// TestPasses: what may pass leaves the memory as it was, and pauses no port, wherever thresholds are.
func TestPasses(t *testing.T) {
	passed, not := 0, 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 3))
		b := spec.Buffer{Bytes: 20_000 + r.Int64N(80_000), Reserve: r.Int64N(3000), ResumeOffset: 500,
			Shift: r.IntN(6) - 3, HeadroomDelays: r.IntN(2)}
		if r.IntN(3) == 0 {
			b.XOff, b.XOn = 1500, 1000
		}
		m := NewSharedBuffer(&b, 2, []IngressPort{{40e9, 1_000_000}, {40e9, 1_000_000}}, 40e9)
		m.Recount()
		for range 60 {
			port, size := r.Uint32N(2), 1+r.Int64N(3000)
			before := fmt.Sprint(m)
			if m.Passes(port, 1, size) {
				room, pause := m.Admit(port, 1, size)
				if resume := m.Release(port, 1, size); !room || pause || resume || fmt.Sprint(m) != before {
					t.Fatalf("seed %d: room %t, pauses %t, resumes %t; %v was %s", seed, room, pause, resume,
						m, before)
				}
				passed++
			} else {
				not++
			}
			m.Admit(port, 1, size)
		}
	}
	if passed == 0 || not == 0 {
		t.Errorf("%d may pass and %d may not, want some of both", passed, not)
	}
}

// TestReserve: what one port leaves of a reserve is for no other: there is room in it, and for what passes
// it, with the shared memory full.
func TestReserve(t *testing.T) {
	for _, shift := range []int{0, -3} {
		m := NewSharedBuffer(&spec.Buffer{Bytes: 40_000, Reserve: 4000, Shift: shift}, 2,
			[]IngressPort{{100e9, 1000}, {100e9, 1000}}, 100e9)
		m.Recount()
		for room := true; room; {
			room, _ = m.Admit(0, 1, 1000)
		}
		if free := m.base - m.shared; shift < 0 && free >= 3500 {
			t.Fatalf("shift %d: %d bytes are free", shift, free)
		}
		passes := m.Passes(1, 1, 3500)
		room, pause := m.Admit(1, 1, 3500)
		if m.Release(1, 1, 3500); shift < 0 && !room || passes != (room && !pause) {
			t.Errorf("shift %d: passes %v; room %v, pause %v", shift, passes, room, pause)
		}
	}
}

// TestFills: ports that fill equally share the memory, so all come to their thresholds sooner than one alone
// would.
func TestFills(t *testing.T) {
	b := spec.Buffer{Bytes: 1_000_000, Reserve: 1000, Shift: 3}
	ports := make([]IngressPort, 32)
	for i := range ports {
		ports[i] = IngressPort{100e9, 1_000_000}
	}
	m := NewSharedBuffer(&b, 2, ports, 100e9)
	if m.Fills(100, 0) {
		t.Error("an empty switch fills")
	}
	for p := range uint32(32) {
		m.Add(p, 1, 3000)
	}
	// Of 968,000 bytes a port may use an eighth of what is free: all reach that with 24,200 bytes each
	// beside the reserve.
	for _, c := range []struct {
		all, sent int64
		fills     bool
	}{{100, 100, false}, {800, 100, false}, {900, 100, true}, {1 << 40, 1, true}} {
		if got := m.Fills(c.all, c.sent); got != c.fills {
			t.Errorf("%d of %d frames: %v", c.sent, c.all, got)
		}
	}
	few := NewSharedBuffer(&b, 2, ports, 100e9)
	few.Add(0, 1, 3000)
	if few.Fills(1<<40, 1) {
		t.Error("one queue of three frames fills")
	}
	b.XOff = 20_000
	if !few.Fills(700, 100) || few.Fills(600, 100) {
		t.Error("a threshold of its own")
	}
	b.Credits = 1
	if few.Fills(700, 100) {
		t.Error("credits have no threshold")
	}
}
