package cc

import (
	"math"
	"testing"
)

// TestSwiftNeedsWhatItDividesBy: targets, windows and cuts that mean something; each to its limit.
func TestSwiftNeedsWhatItDividesBy(t *testing.T) {
	for i, c := range []struct {
		set func(*SwiftParams)
		ok  bool
	}{
		{func(*SwiftParams) {}, true}, {func(p *SwiftParams) { p.Base = 1 }, true},
		{func(p *SwiftParams) { p.Base = 0 }, false}, {func(p *SwiftParams) { p.Base = -1 }, false},
		{func(p *SwiftParams) { p.PerHop, p.Range, p.Resets = 0, 0, 0 }, true},
		{func(p *SwiftParams) { p.PerHop = -1 }, false}, {func(p *SwiftParams) { p.Range = -1 }, false},
		{func(p *SwiftParams) { p.Resets = -1 }, false}, {func(p *SwiftParams) { p.LeastFlows = 0 }, false},
		{func(p *SwiftParams) { p.MostFlows = p.LeastFlows }, false},
		{func(p *SwiftParams) { p.MostFlows = p.LeastFlows * 1.01 }, true},
		{func(p *SwiftParams) { p.AI = 0 }, false}, {func(p *SwiftParams) { p.Beta = 0 }, false},
		{func(p *SwiftParams) { p.AI = math.NaN() }, false}, {func(p *SwiftParams) { p.MostCut = 0 }, false},
		{func(p *SwiftParams) { p.MostCut = 1 }, false}, {func(p *SwiftParams) { p.MostCut = 0.99 }, true},
		{func(p *SwiftParams) { p.Least = 0 }, false},
		{func(p *SwiftParams) { p.Least, p.Most = 0.1, 1 }, true},
		{func(p *SwiftParams) { p.Least, p.Most = 0.1, 0.9 }, false},
		{func(p *SwiftParams) { p.Least, p.Most = 2, 2 }, false},
	} {
		p := SwiftParams{Base: 25, PerHop: 1, Range: 1, LeastFlows: 0.1, MostFlows: 100, AI: 1, Beta: 0.8,
			MostCut: 0.5, Least: 0.001, Most: 100, Resets: 5}
		if c.set(&p); (p.check() == nil) != c.ok {
			t.Errorf("%d: %+v: %v", i, p, p.check())
		}
	}
}
