package uec

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/units"
)

// TestWindowHoldsAFrame: a flow of a full frame and a small one, whose full frame is trimmed, ends. The
// round trip of the small frame is so short that one and a half bandwidth-delay products are less than a
// full frame.
func TestWindowHoldsAFrame(t *testing.T) {
	n := &Network{Leaves: 8, PerLeaf: 1, Spines: 4, HostRate: 400e9, SpineRate: 400e9,
		HostDelay: 100 * units.Nanosecond, SpineDelay: 100 * units.Nanosecond}
	var flows []Flow
	for _, x := range []struct {
		src   int32
		start units.Time
		bytes int64
	}{{1, 10_000_000, 1}, {2, 0, 1_950_000}, {3, 178_566, 64936}, {4, 512_292, 65000}, {5, 0, 1},
		{6, 0, 1_950_000}, {7, 0, 1_950_000}, {1, 149_197, 64936}} {
		flows = append(flows, Flow{Src: x.src, ID: uint32(len(flows) + 1), Start: x.start, Bytes: x.bytes})
	}
	r, err := Run(n, flows, &Config{Seed: 7, Balance: Oblivious, Paths: 64, MTU: 65000})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range r.Flows {
		if !f.Done {
			t.Errorf("flow %d did not end", i)
		}
	}
}

// TestLimits: what the engine's numbers cannot hold is refused.
func TestLimits(t *testing.T) {
	for _, x := range []struct {
		change func(n *Network, f *Flow, c *Config)
		says   string
	}{
		{func(_ *Network, f *Flow, c *Config) { f.Bytes, c.MTU = 1<<40, 65 }, "frames of 1 bytes of payload"},
		{func(n *Network, _ *Flow, _ *Config) { n.PerLeaf, n.Spines = 1<<15-1, 2 }, "leaves of 32769 ports"},
		{func(n *Network, _ *Flow, _ *Config) { n.HostDelay = units.Second }, "at most 2147483647 bytes"},
	} {
		n, f, c := small(), Flow{Dst: 1, Bytes: 1000, ID: 1}, Config{Paths: 64, MTU: 4150}
		x.change(n, &f, &c)
		if err := Check(n, []Flow{f}, &c); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%v; want %q", err, x.says)
		}
	}
}

// TestCachedPortsFitAByte: the cache of egress ports has a byte for each, 0 for none, so that switches with
// more ports go without, as do flows and paths that it has no room for.
func TestCachedPortsFitAByte(t *testing.T) {
	for _, x := range []struct {
		perLeaf, spines, paths int
		cached                 bool
	}{{4, 4, 64, true}, {200, 54, 64, true}, {54, 200, 64, true}, {200, 55, 64, false}, {200, 200, 64, false},
		{4, 4, outsRoom / 2, true}, {4, 4, outsRoom, false}} {
		n := small()
		n.PerLeaf, n.Spines = x.perLeaf, x.spines
		e := build(n, []Flow{{Dst: 1, Bytes: 1000, ID: 1}}, &Config{Paths: x.paths, MTU: 4150})
		if (e.outs != nil) != x.cached {
			t.Errorf("%+v: a cache of %d ports", x, len(e.outs))
		}
	}
}
