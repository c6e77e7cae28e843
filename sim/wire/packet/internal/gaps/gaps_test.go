package gaps

import "testing"

// TestGaps: what others overtook is missing once, until it comes or all is lost.
func TestGaps(t *testing.T) {
	var g Gaps
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
