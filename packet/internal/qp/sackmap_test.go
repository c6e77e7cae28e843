package qp

import "testing"

// TestWideGap: of a gap that is wider than what was sent again before, each frame is missing
// once; the rings have room for all of it.
func TestWideGap(t *testing.T) {
	var g SACKMap
	g.Came(5000, 0, 1)
	for want := range uint32(4999) {
		p, ok := g.Missing(0)
		if !ok || p != want {
			t.Fatalf("missing %d, %v, want %d", p, ok, want)
		}
		g.Sent(p, 0)
	}
	if p, ok := g.Missing(0); ok {
		t.Errorf("%d is missing again", p)
	}
	g = SACKMap{}
	g.Came(100, 0, 1)
	g.Lost(0, 7000)
	for range 7000 - 1 {
		p, ok := g.Missing(0)
		if !ok || p == 100 {
			t.Fatalf("after a timeout %d is missing, %v", p, ok)
		}
		g.Sent(p, 0)
	}
}

// TestRefused: what the receiver asks for is sent again first, once, and not where it has come;
// neither that nor what came is on its way.
func TestRefused(t *testing.T) {
	var g SACKMap
	if g.Came(3, 0, 100); !g.Refuse(1, 0) || !g.Refuse(300, 0) || g.Refuse(3, 0) {
		t.Error("frames 1 and 300 are missing, 3 is not")
	}
	if g.Away() != 3 {
		t.Errorf("%d are not on their way, want 3", g.Away())
	}
	for _, want := range []uint32{1, 300} {
		if p, ok := g.Missing(0); !ok || p != want || !g.Sent(p, 0) {
			t.Errorf("%d, %v: want %d, which was asked for", p, ok, want)
		}
	}
	if p, ok := g.Missing(0); ok || g.Any(0) {
		t.Errorf("%d is missing", p)
	}
	if g.Advance(0, 4); g.Away() != 0 {
		t.Errorf("%d are not on their way, want 0", g.Away())
	}
}

// TestLostIsAway: after a timeout what did not come is not on its way, until it is sent again or comes after
// all.
func TestLostIsAway(t *testing.T) {
	var g SACKMap
	away := func(want uint32, when string) {
		t.Helper()
		if g.Away() != want {
			t.Errorf("%d are not on their way %s, want %d", g.Away(), when, want)
		}
	}
	g.Came(12, 10, 100)
	away(1, "once 12 came")
	g.Lost(10, 16)
	away(6, "after the timeout")
	g.Sent(10, 10)
	away(5, "with 10 sent again")
	g.Came(14, 10, 100)
	away(5, "with 14 come late")
	g.Sent(11, 10)
	g.Advance(10, 14) // 13 came, too
	away(2, "once all before 14 came")
	g.Sent(15, 14)
	away(1, "with 15 sent again")
	g.Came(40, 14, 2)
	away(2+38-16, "once 40 overtook all before 38")
	for p, ok := g.Missing(14); ok; p, ok = g.Missing(14) {
		g.Sent(p, 14)
	}
	away(2, "once they were sent again")
}

// TestGaps: what others overtook is missing once, until it comes or all is lost.
func TestGaps(t *testing.T) {
	var g SACKMap
	for _, psn := range []uint32{2, 3, 300} {
		g.Came(psn, 0, 1)
	}
	if p, ok := g.Missing(0); !ok || p != 0 {
		t.Fatalf("first missing %d, %v", p, ok)
	}
	g.Sent(0, 0)
	if p, _ := g.Missing(0); p != 1 {
		t.Errorf("after 0 was sent again %d is missing, want 1", p)
	}
	g.Sent(1, 0)
	g.Advance(0, 4)
	if p, ok := g.Missing(4); !ok || p != 4 {
		t.Errorf("from 4 on %d is missing, %v", p, ok)
	}
	if g.Lost(4, 6); !g.Any(4) || g.Any(6) {
		t.Error("after a timeout frames 4 and 5 are missing, no others")
	}
}
