package cc

import (
	"testing"

	"github.com/simccl/simccl/units"
)

// TestPaperReaction: one notification halves the rate (alpha is 1), five
// recoveries by time bring it near the target again, then it climbs.
func TestPaperReaction(t *testing.T) {
	c, err := Preset("dcqcn:paper", 40e9)
	if err != nil {
		t.Fatal(err)
	}
	s, d := &Rate{Rate: 40e9, Line: 40e9}, NewReaction(40e9)
	d.Notify(&c, s, 0)
	if s.Rate != 20e9 || d.target != 40e9 {
		t.Errorf("after a notification: rate %d, target %d", s.Rate, d.target)
	}
	d.Tick(&c, s, int64(4*55*units.Microsecond))
	if s.Rate != 38_750_000_000 { // 40 - 20/2^4
		t.Errorf("after four periods: %d", s.Rate)
	}
	d.Notify(&c, s, int64(4*55*units.Microsecond)+1)
	alpha := 1.0
	for range 4 {
		alpha *= 255.0 / 256
	}
	if off := d.alpha - (alpha*255/256 + 1.0/256); off > 1e-3 || off < -1e-3 {
		t.Errorf("alpha %g after a second notification", d.alpha)
	}
}

func TestPresetNames(t *testing.T) {
	if _, err := Preset("cubic", 1e9); err == nil {
		t.Error("cubic is accepted")
	}
}
