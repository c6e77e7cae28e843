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
		return exec.LinkLoad{Name: name, Capacity: 50, Bytes: 0, Net: &exec.Congestion{
			QueuePairs: int32(bytes / 10)}}
	}
	net := func(loads map[string]int64) (out []exec.LinkLoad) {
		for _, name := range []string{"node0/0→l0", "node1/0→l1", "l0→s0", "l0→s1", "s0→l1#0", "s0→l1#1",
			"s1→l1", "s0→l0", "l1→node1/0"} {
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
		"30 of 40 queue pairs share l0→s0, one of 2 equal-cost ports: it carried 1.50 times its share": {
			"l0→s0": 300, "l0→s1": 100, "s0→l1#0": 60, "s0→l1#1": 60, "s1→l1": 60},
		"18 of 30 queue pairs share s0→l1#1, one of 3 equal-cost ports to l1: it carried 1.80 times its " +
			"share": {"l0→s0": 100, "l0→s1": 100, "s0→l1#0": 60, "s0→l1#1": 180, "s1→l1": 60},
	} {
		c, ok := Crowded(net(loads))
		if got := c.String(); ok != (want != "") || ok && got != want {
			t.Errorf("%v: %s, want %s", ok, got, want)
		}
	}
}

// TestSlowAndFull: a slow port carries its share where it carries less than the others by so
// much, and is named as slow where it does not; a port that others outlast is not worth a word;
// an incast is named where the port before the host is what the operation waits for.
func TestSlowAndFull(t *testing.T) {
	load := func(name string, capacity units.GBps, bytes units.Bytes, from ...string) exec.LinkLoad {
		l := exec.LinkLoad{Name: name, Capacity: capacity, Bytes: bytes, Net: &exec.Congestion{QueuePairs: 4,
			Inputs: int32(len(from))}}
		for _, f := range from {
			l.Net.From = append(l.Net.From, exec.Stream{From: f, To: "node1/0", Bytes: 1})
		}
		return l
	}
	hosts := []exec.LinkLoad{load("node0/0→l0", 50, 0), load("node1/0→l1", 50, 0)}
	even := append(hosts, load("l0→s0", 50, 4e6), load("l0→s1", 12.5, 1e6))
	if c, ok := Crowded(even); ok {
		t.Errorf("in proportion to speeds: %s", c.String())
	}
	slow := append(hosts, load("l0→s0", 50, 4e6), load("l0→s1", 12.5, 4e6))
	if c, ok := Crowded(slow); !ok || c.Port != "l0→s1" || c.Slower != 4 {
		t.Errorf("a slow port: %v %+v", ok, c)
	}
	uneven := append(hosts, load("l0→s0", 50, 4e6), load("l0→s1", 50, 1e6))
	if c, ok := Crowded(uneven); !ok || c.Port != "l0→s0" || c.Slower != 1 {
		t.Errorf("uneven: %v %+v", ok, c)
	}
	last := append(uneven, load("l1→node1/0", 50, 10e6, "node2/0", "node3/0"))
	if c, ok := Crowded(last); ok {
		t.Errorf("behind a port that needs 200 us: %s", c.String())
	}
	if c, ok := Fed(last, 220*units.Microsecond); !ok ||
		c.String() != "incast: 2 ports send to node1/0, and l1→node1/0 needs 200.00 of 220.00 us for their "+
			"bytes: another route does not help" {
		t.Errorf("an incast: %v %s", ok, c.String())
	}
	if c, ok := Fed(last, 300*units.Microsecond); ok {
		t.Errorf("of a longer operation: %s", c.String())
	}
}

// TestAmount: sizes have three digits, in the unit that fits.
func TestAmount(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.00 kB", 470123: "470 kB",
		3119672: "3.12 MB", 56252300: "56.3 MB", 2e9: "2.00 GB"} {
		if got := Amount(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// TestRings: queue pairs that are one a ring are called rings.
func TestRings(t *testing.T) {
	c := Crowd{Port: "l0→s0", QueuePairs: 5, Of: 16, Beside: 8, Bytes: 5, Spread: 2, Rings: true}
	if got := c.String(); got !=
		"5 of 16 rings share l0→s0, one of 8 equal-cost ports: it carried 2.50 times its share" {
		t.Error(got)
	}
}

// TestLines: a port that waits for credits is not said to be paused, and a deadlock that a
// watchdog dissolved is named with its cycle.
func TestLines(t *testing.T) {
	f := Of([]exec.LinkLoad{
		{Name: "node0/0→l0", Net: &exec.Congestion{Paused: 5 * units.Microsecond, Credits: true}},
		{Name: "l0→l1", Net: &exec.Congestion{Paused: 7 * units.Microsecond, Pauses: 2,
			First: 3 * units.Microsecond, Deadlocks: []exec.Deadlock{
				{At: 4 * units.Microsecond, Nodes: []string{"l0", "l1", "l2"}}}}},
	})
	for _, want := range []string{"node0/0→l0 waited 5.00 us for credits",
		"l0→l1 was paused for 7.00 us, first at 3.00 us",
		"deadlock at 4.00 us, ports paused each other in a cycle until a watchdog dropped what waited: l0 " +
			"> l1 > l2 > l0"} {
		if !slices.Contains(f.Lines(), want) {
			t.Errorf("%q is not among %q", want, f.Lines())
		}
	}
}
