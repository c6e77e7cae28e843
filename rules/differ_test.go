package rules_test

import (
	"fmt"
	"testing"

	"github.com/simccl/simccl/rules"
)

// TestDiffering: two releases differ in what the newer one's rules set, and taking it from
// the other leaves no difference.
func TestDiffering(t *testing.T) {
	load := func(version string) *rules.Ruleset {
		r, err := rules.For(version)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a, b := load("2.27.3"), load("2.27.5")
	got := ""
	list := rules.Differing(a, b)
	for _, r := range list {
		got += r.Name + " "
		if in := r.Changed(a, b); fmt.Sprint(in) != "[2.27.5]" {
			t.Errorf("%s: changed in %v", r.Name, in)
		}
		r.Take(a, b)
	}
	if want := "Topo.NVLinkBW Topo.PXNBeforeP2C Topo.P2CFromPHB Search.Speeds Search.ScatterNets " +
		"Search.FirstGPUs Tuning.LL128AlsoPXN "; got != want {
		t.Errorf("differ in %s, want %s", got, want)
	}
	if left := rules.Differing(a, b); len(left) > 0 {
		t.Errorf("still differ in %v", left)
	}
	if n := len(rules.Differing(load("2.21.5"), load("2.28.9"))); n < 40 {
		t.Errorf("2.21.5 and 2.28.9 differ in %d rules", n)
	}
	known := rules.Known()
	for i, r := range known[1:] {
		for _, rule := range rules.Differing(load(known[i].String()), load(r.String())) {
			if rule.Text() == "" {
				t.Errorf("%s has no text", rule.Name)
			}
		}
	}
	if fmt.Sprint(rules.Differing(load("2.28.9"), load("2.28.9"))) != "[]" {
		t.Error("a release differs from itself")
	}
}

// TestDifferingRulesOfRCCL: its releases differ in rules of their own, each with a text and changed in
// 2.30.4.
func TestDifferingRulesOfRCCL(t *testing.T) {
	var r [2]*rules.Ruleset
	for i, v := range []string{"rccl-2.28.3", "rccl-2.30.4"} {
		var err error
		if r[i], err = rules.For(v); err != nil {
			t.Fatal(err)
		}
	}
	for _, rule := range rules.Differing(r[0], r[1]) {
		in := fmt.Sprint(rule.Changed(r[0], r[1]))
		if rule.Text() == "" || in != "[2.30.4]" {
			t.Errorf("%s: text %q, changed in %s", rule.Name, rule.Text(), in)
		}
	}
}
