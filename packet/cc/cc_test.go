package cc

import (
	"math"
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
	d.Notify(&c, s, 0, never)
	if s.Rate != 20e9 || d.target != 40e9 {
		t.Errorf("after a notification: rate %d, target %d", s.Rate, d.target)
	}
	d.Tick(&c, s, int64(4*55*units.Microsecond), 0)
	if s.Rate != 38_750_000_000 { // 40 - 20/2^4
		t.Errorf("after four periods: %d", s.Rate)
	}
	d.Notify(&c, s, int64(4*55*units.Microsecond)+1, never)
	alpha := 1.0
	for range 4 {
		alpha *= 255.0 / 256
	}
	if off := d.alpha - (alpha*255/256 + 1.0/256); off > 1e-3 || off < -1e-3 {
		t.Errorf("alpha %g after a second notification", d.alpha)
	}
}

// TestHalt: timers run up to the end of a flow, and not after it.
func TestHalt(t *testing.T) {
	c, err := Preset("dcqcn:ns3", 40e9)
	if err != nil {
		t.Fatal(err)
	}
	s, d := &Rate{Rate: 40e9, Line: 40e9}, NewReaction(40e9)
	d.Notify(&c, s, 0, never)
	d.Halt(&c, s, int64(units.Millisecond), never)
	if rate := s.Rate; rate == 40e9 || d.Due(never-1) {
		t.Errorf("a rate of %d, a timer at %d", rate, d.tick)
	}
}

// TestBetween: frames in flight are counted in bytes; behind what is acknowledged their number wraps, as in
// the peer.
func TestBetween(t *testing.T) {
	d := NewShare(1000, 2500)
	for _, c := range []struct{ psn, next, want uint32 }{{0, 2, 3}, {1, 3, 2}, {0, 3, 3}, {3, 3, 1},
		{2, 1, 1271310319}} {
		if got := d.between(c.psn, c.next); got != c.want {
			t.Errorf("from %d to %d: %d, not %d", c.psn, c.next, got, c.want)
		}
	}
}

func TestPresetNames(t *testing.T) {
	if _, err := Preset("cubic", 1e9); err == nil {
		t.Error("cubic is accepted")
	}
}

// TestUltraConstants: the constants that htsim prints for 100 Gb/s, a base round trip of
// 9.34848 us and frames of 4,150 bytes.
func TestUltraConstants(t *testing.T) {
	n := NewUltra(9_348_480, 100e9, 4150, 64)
	if n.bdp != 116_856 || n.target != 7_011_360 || n.adjust != 33_200 {
		t.Errorf("%+v", n)
	}
	near := func(got, want float64) bool { return got > want*0.9999 && got < want*1.0001 }
	if !near(n.alpha, 0.00106105) || !near(n.fair, 15915.8) || !near(n.eta, 477.474) ||
		!near(n.fast, 0.19476) {
		t.Errorf("%+v", n)
	}
}

// TestSwiftReaction: the paper's arithmetic, one acknowledgement at a time.
func TestSwiftReaction(t *testing.T) {
	c, err := Preset("swift", 100e9)
	if err != nil {
		t.Fatal(err)
	}
	us := int64(units.Microsecond)
	s, p := &Rate{Rate: 100e9, Line: 100e9}, &c.Swift
	x := Delay{cwnd: 10, cut: -1 << 60, target: 20 * us}
	x.Ack(p, 10*us, 10*us, 2) // below the target: 2 frames of 10
	if d := x.cwnd - 10.2; d > 1e-9 || d < -1e-9 || x.Window(&c, s, 1000, 1048) != 10200 {
		t.Errorf("window %g frames", x.cwnd)
	}
	target := float64(x.aim(p)) / float64(us)
	x.Ack(p, 100*us, 100*us, 1)
	if d := x.cwnd - 10.2*max(1-0.8*(100-target)/100, 0.5); d > 1e-9 || d < -1e-9 {
		t.Errorf("after a decrease %g frames (target %g us)", x.cwnd, target)
	}
	after := x.cwnd
	if x.Ack(p, 150*us, 100*us, 1); x.cwnd != after {
		t.Errorf("two decreases in a round trip: %g", x.cwnd)
	}
	x.cwnd = 0.5
	if x.Ack(p, 300*us, 200*us, 1); x.Window(&c, s, 1000, 1048) < 1 || s.Rate >= s.Line || x.cwnd >= 0.5 {
		t.Errorf("below one frame: rate %d, %g frames", s.Rate, x.cwnd)
	}
	if x.Loss(p, 900*us, p.Resets); x.cwnd != p.Least {
		t.Errorf("after timeouts %g frames", x.cwnd)
	}
}

// TestEachSettingIsChecked: one setting out of its bounds is refused, whatever the others are; at the bound
// it is taken.
func TestEachSettingIsChecked(t *testing.T) {
	for name, set := range map[string][2]func(*Params){ // refused, taken
		"Window":     {func(p *Params) { p.Window = -1 }, func(p *Params) { p.Window = 0 }},
		"AI":         {func(p *Params) { p.AI = -1 }, func(p *Params) { p.AI = 0 }},
		"HAI":        {func(p *Params) { p.HAI = -1 }, func(p *Params) { p.HAI = 0 }},
		"RateAI":     {func(p *Params) { p.RateAI = -1 }, func(p *Params) { p.RateAI = 0 }},
		"MinRate":    {func(p *Params) { p.MinRate = 0 }, func(p *Params) { p.MinRate = 1 }},
		"Gain below": {func(p *Params) { p.Gain = -.1 }, func(p *Params) { p.Gain = 0 }},
		"Gain above": {func(p *Params) { p.Gain = 1.1 }, func(p *Params) { p.Gain = 1 }},
		"Gain":       {func(p *Params) { p.Gain = math.NaN() }, func(p *Params) { p.Gain = .5 }},
		"AlphaPeriod": {func(p *Params) { p.AlphaPeriod = units.Nanosecond - 1 },
			func(p *Params) { p.AlphaPeriod = units.Nanosecond }},
		"DecreasePeriod": {func(p *Params) { p.DecreasePeriod = units.Nanosecond - 1 },
			func(p *Params) { p.DecreasePeriod = units.Nanosecond }},
		"IncreasePeriod": {func(p *Params) { p.IncreasePeriod = units.Nanosecond - 1 },
			func(p *Params) { p.IncreasePeriod = units.Nanosecond }},
		"CNPGap":         {func(p *Params) { p.CNPGap = -1 }, func(p *Params) { p.CNPGap = 0 }},
		"ByteReset":      {func(p *Params) { p.ByteReset = -1 }, func(p *Params) { p.ByteReset = 0 }},
		"MostCut below":  {func(p *Params) { p.MostCut = -.1 }, func(p *Params) { p.MostCut = 0 }},
		"MostCut above":  {func(p *Params) { p.MostCut = 1.1 }, func(p *Params) { p.MostCut = 1 }},
		"Alpha below":    {func(p *Params) { p.Alpha = -.1 }, func(p *Params) { p.Alpha = 0 }},
		"Alpha above":    {func(p *Params) { p.Alpha = 1.1 }, func(p *Params) { p.Alpha = 1 }},
		"CNPBytes below": {func(p *Params) { p.CNPBytes = -1 }, func(p *Params) { p.CNPBytes = 0 }},
		"CNPBytes above": {func(p *Params) { p.CNPBytes = 65536 }, func(p *Params) { p.CNPBytes = 65535 }},
	} {
		for i, change := range set {
			p, err := Preset("dcqcn:paper", 40e9)
			if err != nil {
				t.Fatal(err)
			}
			change(&p)
			if err := p.Check(); (err == nil) != (i == 1) {
				t.Errorf("%s: %v, want it taken: %t", name, err, i == 1)
			}
		}
	}
	for _, c := range []struct {
		preset string
		change func(*Params)
	}{
		{"hpcc", func(p *Params) { p.Utilisation = 0 }}, {"hpcc", func(p *Params) { p.Multi = 0 }},
		{"hpcc", func(p *Params) { p.CNPBytes = 64 }},
		{"hpcc", func(p *Params) { p.ByRoute, p.BaseRTT, p.Window = false, units.Nanosecond, 0 }},
		{"hpcc", func(p *Params) { p.ByRoute, p.BaseRTT, p.Window = false, 0, 1 }},
		{"nscc", func(p *Params) { p.ByRoute = false }},
		{"dcqcn:paper", func(p *Params) { p.Kind = NSCC + 1 }},
	} {
		p, err := Preset(c.preset, 40e9)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Check(); err != nil {
			t.Errorf("%s: %v", c.preset, err)
		}
		if c.change(&p); p.Check() == nil {
			t.Errorf("%s is taken with %+v", c.preset, p)
		}
	}
}
