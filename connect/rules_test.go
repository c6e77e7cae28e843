package connect_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
)

// plainDomain is a host of two sm_90 GPUs with two channels in opposite orders.
func plainDomain(r *rules.Ruleset, first int32, cross int) connect.Domain {
	nodes := []topo.Node{{Kind: topo.GPU, GPU: &topo.GPUInfo{Dev: 0, Rank: 0, SM: 90}},
		{Kind: topo.GPU, GPU: &topo.GPUInfo{Dev: 1, Rank: 1, SM: 90}},
		{Kind: topo.CPU, CPU: &topo.CPUInfo{Arch: topo.ArchX86, Vendor: topo.VendorIntel}}}
	d := connect.Domain{First: first, Host: first / 2,
		System: topo.Assemble(r, nodes, nil, func(a, b topo.NodeID) topo.Path {
			return topo.Path{Kind: topo.PathNVL, BW: 100}
		})}
	for id := range d.Graphs {
		d.Graphs[id] = &search.Graph{ID: id}
	}
	for _, id := range []int{search.RingID, search.TreeID} {
		g := d.Graphs[id]
		g.NChannels, g.Pattern, g.BWIntra, g.CrossNIC = 2, search.BalancedTree, 46, cross
		g.Intra, g.Inter = [][]int{{0, 1}, {1, 0}}, make([][2]uint64, 2)
	}
	return d
}

// TestRulesOfChannels: how many channels there are, and which of neighbouring
// ones odd nodes swap, are the ruleset's.
func TestRulesOfChannels(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*rules.Connect)
		cross  int
		want   string
	}{
		{"as is", func(*rules.Connect) {}, 0, "8 channels, ring [0 1 2 3]"},
		{"DoubleBW", func(r *rules.Connect) { r.DoubleBW = 46 }, 0, "4 channels, ring [0 1 2 3]"},
		{"DoubleBelow", func(r *rules.Connect) { r.DoubleBelow = 4 }, 0, "4 channels, ring [0 1 2 3]"},
		{"DoubleSM", func(r *rules.Connect) { r.DoubleSM = 100 }, 0, "4 channels, ring [0 1 2 3]"},
		{"DoubleExact", func(r *rules.Connect) { r.DoubleSM, r.DoubleExact = 80, true }, 0,
			"4 channels, ring [0 1 2 3]"},
		{"crossing NICs", func(*rules.Connect) {}, 1, "8 channels, ring [0 1 2 3]"},
		{"alternating NICs", func(*rules.Connect) {}, 2, "8 channels, ring [0 1 3 2]"},
		{"SwapAnyCross", func(r *rules.Connect) { r.SwapAnyCross = true }, 1, "8 channels, ring [0 1 3 2]"},
	} {
		r := rules.Default()
		c.change(&r.Connect)
		in := connect.Input{Domains: []connect.Domain{plainDomain(r, 0, c.cross), plainDomain(r, 2, c.cross)}}
		got, err := connect.Join(in, connect.Params{Rules: r})
		if err != nil {
			t.Fatal(err)
		}
		if g := fmt.Sprintf("%d channels, ring %v", got.NChannels, got.Channels[0].Order); g != c.want {
			t.Errorf("%s: %s, want %s", c.name, g, c.want)
		}
	}
}

// TestJoinWantsRules: and those of its Systems.
func TestJoinWantsRules(t *testing.T) {
	r := rules.Default()
	in := connect.Input{Domains: []connect.Domain{plainDomain(r, 0, 0)}}
	var missing *rules.MissingError
	if _, err := connect.Join(in, connect.Params{}); !errors.As(err, &missing) {
		t.Errorf("no rules: %v", err)
	}
	other := rules.Default()
	other.Release.Minor++
	var mixed *rules.MixedError
	if _, err := connect.Join(in, connect.Params{Rules: other}); !errors.As(err, &mixed) {
		t.Errorf("rules of another release: %v", err)
	}
}
