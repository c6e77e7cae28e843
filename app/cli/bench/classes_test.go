package bench

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/sim/gpu"
)

// TestProblems: what others would have to ask is found, and a class as calibrate writes
// it has nothing.
func TestProblems(t *testing.T) {
	right := func() gpu.Class {
		c := gpu.NVSwitch90()
		c.Name, c.Regimes = "mine", []gpu.Regime{{Op: "all_reduce", Ranks: 2, From: 8, To: 1024, Points: 4,
			Mean: 0.02, Max: 0.05}}
		return c
	}
	c := right()
	if got := classProblems(&c); len(got) > 0 {
		t.Error(got)
	}
	for _, k := range []struct {
		damage func(*gpu.Class)
		want   string
	}{
		{func(c *gpu.Class) { c.Name = "nvswitch-sm90" }, "built in"},
		{func(c *gpu.Class) { c.Machine = "" }, "machine is empty"},
		{func(c *gpu.Class) { c.Regimes = nil }, "no regimes"},
		{func(c *gpu.Class) { c.Regimes[0].Mean = 0.04; c.Regimes[0].Max = 0.03 }, "cannot be"},
		{func(c *gpu.Class) { c.Regimes[0].Mean, c.Regimes[0].Max = 0.2, 0.3 }, "mean error of 20 %"},
		{func(c *gpu.Class) { c.Flag *= 10 }, "flag is"},
	} {
		c := right()
		k.damage(&c)
		if got := classProblems(&c); len(got) != 1 || !strings.Contains(got[0], k.want) {
			t.Errorf("%q, want %q", got, k.want)
		}
	}
}

// TestRegimesAreKept: a file keeps the regimes, and what differs is found.
func TestRegimesAreKept(t *testing.T) {
	c := gpu.NVSwitch90()
	c.Regimes = []gpu.Regime{{Op: "reduce", Ranks: 2, From: 8, To: 1 << 20, Points: 3, Mean: 0.01, Max: 0.02},
		{Op: "reduce", Ranks: 4, From: 8, To: 8, Points: 1}}
	again, err := gpu.Parse(c.Format(), "c.json")
	if err != nil || len(again.Regimes) != 2 || again.Regimes[0] != c.Regimes[0] {
		t.Fatalf("%v %v", again.Regimes, err)
	}
	if d := classChanges(&c, &again); len(d) > 0 {
		t.Error(d)
	}
	again.Flag *= 2
	again.LinkEff *= 1.0001
	if d := classChanges(&c, &again); len(d) != 2 || d[0].Name != "flag" || d[0].Ratio != 2 {
		t.Error(d)
	}
}
