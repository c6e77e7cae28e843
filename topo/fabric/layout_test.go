package fabric

import (
	"errors"
	"slices"
	"testing"
)

// TestRangesOfLayouts: each number to its limit, and refused beyond.
func TestRangesOfLayouts(t *testing.T) {
	for i, c := range []struct {
		set func(*Layout)
		ok  bool
	}{
		{func(*Layout) {}, true}, {func(l *Layout) { l.Ports = 4 }, true},
		{func(l *Layout) { l.Ports = 5 }, false},
		{func(l *Layout) { l.Ports = 0 }, false}, {func(l *Layout) { l.Hosts = 0 }, false},
		{func(l *Layout) { l.Hosts = 1 }, true}, {func(l *Layout) { l.Nets = 0 }, false},
		{func(l *Layout) { l.Gbit = 0 }, false}, {func(l *Layout) { l.Gbit = 1e6 }, true},
		{func(l *Layout) { l.Gbit = 1e6 + 1 }, false}, {func(l *Layout) { l.Gbit = -1 }, false},
		{func(l *Layout) { l.Hosts, l.Nets, l.Ports = maxParts/4, 2, 2 }, true},
		{func(l *Layout) { l.Hosts, l.Nets, l.Ports = maxParts/4+1, 2, 2 }, false},
		{func(l *Layout) { l.PerLeaf = 0 }, false},
		{func(l *Layout) { l.Spines, l.Planes, l.Radix = 0, 0, 0 }, true},
		{func(l *Layout) { l.Spines = -1 }, false}, {func(l *Layout) { l.Planes = -1 }, false},
		{func(l *Layout) { l.Radix = -1 }, false}, {func(l *Layout) { l.Oversub = 1e-3 }, true},
		{func(l *Layout) { l.Oversub = 0.9e-3 }, false}, {func(l *Layout) { l.Oversub = 1e6 + 1 }, false},
		{func(l *Layout) { l.Latency = 0 }, true}, {func(l *Layout) { l.Latency = 1e6 }, true},
		{func(l *Layout) { l.Latency = 1e6 + 1 }, false}, {func(l *Layout) { l.Latency = -1 }, false},
	} {
		l := Layout{Kind: "rail", Hosts: 4, Nets: 8, Ports: 1, Gbit: 400, PerLeaf: 1, Oversub: 1, Latency: 1}
		c.set(&l)
		err, bad := l.check(), (*LayoutError)(nil)
		if (err == nil) != c.ok || err != nil && !errors.As(err, &bad) {
			t.Errorf("%d: %+v: %v", i, l, err)
		}
	}
}

// TestPackedHosts: of hosts below eight leaves the fewest leaves that hold them, the smallest that fits last.
func TestPackedHosts(t *testing.T) {
	n, err := Generate(Layout{Kind: "leaf-spine", Hosts: 7, Nets: 1, Gbit: 400, PerLeaf: 3, Spines: 2})
	if err != nil {
		t.Fatal(err)
	}
	for count, want := range map[int][]int{0: nil, 1: {6}, 2: {0, 1}, 3: {0, 1, 2}, 4: {0, 1, 2, 6},
		5: {0, 1, 2, 3, 4},
		6: {0, 1, 2, 3, 4, 5}, 7: {0, 1, 2, 3, 4, 5, 6}, 9: {0, 1, 2, 3, 4, 5, 6}} {
		if got := n.Packed(count); !slices.Equal(got, want) {
			t.Errorf("%d: %v, want %v", count, got, want)
		}
	}
	for _, c := range []struct {
		order        []int
		crossing, of int
	}{{nil, 0, 0}, {[]int{0}, 0, 0}, {[]int{0, 1}, 0, 2}, {[]int{0, 1, 2}, 0, 3}, {[]int{0, 3}, 2, 2},
		{[]int{0, 1, 3, 4}, 2, 4}, {[]int{0, 3, 1, 4}, 4, 4}, {[]int{0, 3, 6}, 3, 3}} {
		if crossing, of := n.Crossings(c.order); crossing != c.crossing || of != c.of {
			t.Errorf("%v: %d of %d cross, want %d of %d", c.order, crossing, of, c.crossing, c.of)
		}
	}
}
