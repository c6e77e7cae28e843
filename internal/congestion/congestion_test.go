package congestion

import (
	"slices"
	"testing"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/units"
)

// TestCrowded: ports are compared with those that would have done as well: all that lead
// up from a switch, or all that lead down to one.
func TestCrowded(t *testing.T) {
	link := func(name string, bytes int64) exec.LinkLoad {
		return exec.LinkLoad{Name: name, Capacity: 50, Bytes: 0, Net: &exec.Congestion{QueuePairs: int32(bytes / 10)}}
	}
	net := func(loads map[string]int64) (out []exec.LinkLoad) {
		for _, name := range []string{"node0/0→l0", "node1/0→l1", "l0→s0", "l0→s1", "s0→l1#0", "s0→l1#1", "s1→l1", "s0→l0", "l1→node1/0"} {
			l := link(name, loads[name])
			for range loads[name] {
				l.Bytes++
			}
			out = append(out, l)
		}
		return out
	}
	for want, loads := range map[string]map[string]int64{
		"": {"l0→s0": 100, "l0→s1": 100, "s0→l1#0": 60, "s0→l1#1": 60, "s1→l1": 60, "s0→l0": 10},
		"30 of 40 queue pairs share l0→s0, one of 2 ports that lead on: it carried 1.50 times its share":      {"l0→s0": 300, "l0→s1": 100, "s0→l1#0": 60, "s0→l1#1": 60, "s1→l1": 60},
		"18 of 30 queue pairs share s0→l1#1, one of 3 ports that lead to l1: it carried 1.80 times its share": {"l0→s0": 100, "l0→s1": 100, "s0→l1#0": 60, "s0→l1#1": 180, "s1→l1": 60},
	} {
		c, ok := Crowded(net(loads))
		if got := c.String(); ok != (want != "") || ok && got != want {
			t.Errorf("%v: %s, want %s", ok, got, want)
		}
	}
}

// TestLines: a port that waits for credits is not said to be paused, and a deadlock that a
// watchdog dissolved is named with its cycle.
func TestLines(t *testing.T) {
	f := Of([]exec.LinkLoad{
		{Name: "node0/0→l0", Net: &exec.Congestion{Paused: 5 * units.Microsecond, Credits: true}},
		{Name: "l0→l1", Net: &exec.Congestion{Paused: 7 * units.Microsecond, Pauses: 2, First: 3 * units.Microsecond, Deadlocks: []exec.Deadlock{{At: 4 * units.Microsecond, Nodes: []string{"l0", "l1", "l2"}}}}},
	})
	for _, want := range []string{"node0/0→l0 waited 5.00 us for credits", "l0→l1 was not allowed to send for 7.00 us, first at 3.00 us",
		"deadlock at 4.00 us, ports paused each other in a cycle until a watchdog dropped what waited: l0 > l1 > l2 > l0"} {
		if !slices.Contains(f.Lines(), want) {
			t.Errorf("%q is not among %q", want, f.Lines())
		}
	}
}
