package uec

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/units"
)

// TestRangesOfNetworks: each number is taken to its limit and refused beyond with the limit.
func TestRangesOfNetworks(t *testing.T) {
	const (
		counts, pods   = "write 1 to 32768 of each", "pods divide leaves"
		cores, rates   = "links of cores", "write 1 Mb/s to 100 Tb/s"
		delays, queues = "write 1 ns to 1 s", "write 0 to 1 s"
		ns, s          = units.Nanosecond, units.Second
	)
	three := func(n *Network) {
		n.Pods, n.Cores, n.CoreRate, n.CoreDelay = 2, n.Spines, 1e11, ns
	}
	for i, c := range []struct {
		set  func(*Network)
		want string
	}{
		{func(*Network) {}, ""}, {three, ""},
		{func(n *Network) { n.Leaves = 0 }, counts}, {func(n *Network) { n.PerLeaf = 0 }, counts},
		{func(n *Network) { n.Spines = 0 }, counts}, {func(n *Network) { n.Leaves = 1<<15 + 1 }, counts},
		{func(n *Network) { n.PerLeaf = 1<<15 + 1 }, counts},
		{func(n *Network) { n.Spines = 1<<15 + 1 }, counts},
		{func(n *Network) { n.Pods = -1 }, pods}, {func(n *Network) { three(n); n.Pods = n.Leaves }, ""},
		{func(n *Network) { three(n); n.Pods = n.Leaves + 1 }, pods},
		{func(n *Network) { three(n); n.Leaves, n.Pods = 4, 3 }, pods},
		{func(n *Network) { n.Pods = 2 }, pods}, {func(n *Network) { n.Cores = n.Spines }, pods},
		{func(n *Network) { three(n); n.Spines, n.Cores = 2, 3 }, pods},
		{func(n *Network) { three(n); n.Spines, n.Cores = 2, 4 }, ""},
		{func(n *Network) { three(n); n.Cores = -n.Spines }, pods},
		{func(n *Network) { three(n); n.CoreRate = 1e6 }, ""},
		{func(n *Network) { three(n); n.CoreRate = 1e6 - 1 }, cores},
		{func(n *Network) { three(n); n.CoreRate = 1e14 }, ""},
		{func(n *Network) { three(n); n.CoreRate = 1e14 + 1 }, cores},
		{func(n *Network) { three(n); n.CoreDelay = ns - 1 }, cores},
		{func(n *Network) { three(n); n.CoreDelay = s }, ""},
		{func(n *Network) { three(n); n.CoreDelay = s + 1 }, cores},
		{func(n *Network) { three(n); n.CoreLatency = s }, ""},
		{func(n *Network) { three(n); n.CoreLatency = s + 1 }, cores},
		{func(n *Network) { three(n); n.CoreLatency = -1 }, cores},
		{func(n *Network) { n.HostRate = 1e6 }, ""}, {func(n *Network) { n.HostRate = 1e6 - 1 }, rates},
		{func(n *Network) { n.HostRate = 1e14 }, ""}, {func(n *Network) { n.HostRate = 1e14 + 1 }, rates},
		{func(n *Network) { n.SpineRate = 1e6 }, ""}, {func(n *Network) { n.SpineRate = 1e6 - 1 }, rates},
		{func(n *Network) { n.SpineRate = 1e14 }, ""}, {func(n *Network) { n.SpineRate = 1e14 + 1 }, rates},
		{func(n *Network) { n.HostDelay = ns }, ""}, {func(n *Network) { n.HostDelay = ns - 1 }, delays},
		{func(n *Network) { n.HostDelay = s }, ""}, {func(n *Network) { n.HostDelay = s + 1 }, delays},
		{func(n *Network) { n.SpineDelay = ns }, ""}, {func(n *Network) { n.SpineDelay = ns - 1 }, delays},
		{func(n *Network) { n.SpineDelay = s }, ""}, {func(n *Network) { n.SpineDelay = s + 1 }, delays},
		{func(n *Network) { n.LeafLatency = s }, ""}, {func(n *Network) { n.LeafLatency = s + 1 }, queues},
		{func(n *Network) { n.LeafLatency = -1 }, queues}, {func(n *Network) { n.SpineLatency = s }, ""},
		{func(n *Network) { n.SpineLatency = s + 1 }, queues},
		{func(n *Network) { n.SpineLatency = -1 }, queues},
		{func(n *Network) { n.Leaves, n.PerLeaf, n.Spines = 1, mostPorts-1, 1 }, ""},
		{func(n *Network) { n.Leaves, n.PerLeaf, n.Spines = 1, mostPorts-1, 2 }, "write at most"},
	} {
		n := *small()
		n.Leaves = 4
		c.set(&n)
		err := n.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d: %+v: %v, want %q", i, n, err, c.want)
		}
	}
}
