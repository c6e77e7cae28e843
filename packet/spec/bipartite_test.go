package spec

import (
	"slices"
	"testing"

	"github.com/simccl/simccl/units"
)

// network is one of hosts and switches, given by cables of 100 Gb/s and 1 us.
func network(hosts, switches int, cables ...[2]int32) *Network {
	n := &Network{Nodes: hosts + switches, Switch: make([]bool, hosts+switches)}
	for i := hosts; i < n.Nodes; i++ {
		n.Switch[i] = true
	}
	for _, c := range cables {
		n.Cables = append(n.Cables, Cable{A: c[0], B: c[1], Rate: 100e9, Delay: units.Microsecond})
	}
	return n
}

func TestLate(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      *Network
		change func(n *Network, c *Config)
		want   []bool
	}{
		{"star", network(2, 1, [2]int32{0, 2}, [2]int32{2, 1}), nil, []bool{false, false, true}},
		{"leaves and a spine", network(2, 3, [2]int32{0, 2}, [2]int32{1, 3}, [2]int32{2, 4}, [2]int32{4, 3}),
			nil, []bool{false, false, true, true, false}},
		{"leaves side by side", network(2, 2, [2]int32{0, 2}, [2]int32{1, 3}, [2]int32{2, 3}), nil, nil},
		{"a core above spines", network(1, 3, [2]int32{0, 1}, [2]int32{1, 2}, [2]int32{2, 3}), nil, nil},
		{"hosts side by side", network(2, 0, [2]int32{0, 1}), nil, nil},
		{"losses", network(2, 1, [2]int32{0, 2}, [2]int32{1, 2}), func(n *Network, _ *Config) {
			n.Cables[0].Loss = 1e-3
		}, nil},
		{"a watchdog", network(2, 1, [2]int32{0, 2}, [2]int32{1, 2}), func(_ *Network, c *Config) {
			c.Watchdog.After = units.Millisecond
		}, nil},
		{"a slow cable", network(2, 1, [2]int32{0, 2}, [2]int32{1, 2}), func(n *Network, _ *Config) {
			n.Cables[0].Rate = 4e9
		}, nil},
	} {
		cfg := &Config{Frames: Frames{Payload: 1000, Header: 48, Ack: 60, Pause: 64}}
		if c.change != nil {
			c.change(c.n, cfg)
		}
		if got := LateSide(c.n, cfg, 1_000_000, false); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	star, tree := network(2, 1, [2]int32{0, 2}, [2]int32{2, 1}), network(2, 3, [2]int32{0, 2}, [2]int32{1, 3},
		[2]int32{2, 4}, [2]int32{4, 3})
	if LateSide(star, &Config{}, 1_000_000, true) == nil || LateSide(tree, &Config{}, 1_000_000, true) !=
		nil {
		t.Error("all switches of a star, but not of leaves and a spine, are on one side")
	}
}
