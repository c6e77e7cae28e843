package memory

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/simccl/simccl/sim/wire/packet/spec"
)

// TestMemory: one port fills until its neighbour is to pause, then its headroom until
// there is no room, and drains until the neighbour is to go on.
func TestMemory(t *testing.T) {
	b := spec.Buffer{Bytes: 100_000, Reserve: 1000, ResumeOffset: 500, Shift: 1, HeadroomDelays: 2}
	m := New(&b, 2, []Port{{100e9, 1_000_000}, {100e9, 1_000_000}}, 100e9)
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

// TestPasses: what may pass leaves the memory as it was, and pauses no port, wherever thresholds are.
func TestPasses(t *testing.T) {
	passed, not := 0, 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 3))
		b := spec.Buffer{Bytes: 20_000 + r.Int64N(80_000), Reserve: r.Int64N(3000), ResumeOffset: 500, Shift: r.IntN(3), HeadroomDelays: r.IntN(2)}
		if r.IntN(3) == 0 {
			b.XOff, b.XOn = 1500, 1000
		}
		m := New(&b, 2, []Port{{40e9, 1_000_000}, {40e9, 1_000_000}}, 40e9)
		m.Recount()
		for range 60 {
			port, size := r.Uint32N(2), 1+r.Int64N(3000)
			before := fmt.Sprint(m)
			if m.Passes(port, 1, size) {
				room, pause := m.Admit(port, 1, size)
				if resume := m.Release(port, 1, size); !room || pause || resume || fmt.Sprint(m) != before {
					t.Fatalf("seed %d: room %t, pauses %t, resumes %t; %v was %s", seed, room, pause, resume, m, before)
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
