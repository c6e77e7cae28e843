package rules_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/rules"
)

// TestReleases: releases are read, ordered and written as NCCL has them.
func TestReleases(t *testing.T) {
	for text, want := range map[string]rules.Release{"2.28.9": {2, 28, 9}, "v2.21.5-1": {2, 21, 5},
		"2.30.3": {2, 30, 3}} {
		if got, err := rules.ParseRelease(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "2", "2.28", "2.28.9.1", "2.28.x", "2.-1.0", "latest",
		"2.28.99999999999"} {
		var e *rules.FormatError
		if _, err := rules.ParseRelease(text); !errors.As(err, &e) {
			t.Errorf("%q: %v", text, err)
		}
	}
	r := rules.Default()
	if r.Version() != "2.28.9" || r.Release.Code() != 22809 {
		t.Errorf("the default is %s, code %d", r.Version(), r.Release.Code())
	}
	span := rules.Span{Since: rules.Release{2, 24, 3}, Until: rules.Release{2, 30, 3}}
	for text, want := range map[string]bool{"2.23.4": false, "2.24.3": true, "2.28.9": true,
		"2.30.3": false} {
		if v, _ := rules.ParseRelease(text); span.Holds(v) != want || !(rules.Span{}).Holds(v) {
			t.Errorf("%s: %v", text, !want)
		}
	}
}

// TestFor: a release that is known gives its rules, one that is not an error
// that lists those that are.
func TestFor(t *testing.T) {
	for _, k := range rules.Known() {
		if r, err := rules.For(k.String()); err != nil || r.Release != k {
			t.Errorf("%s: %v, %v", k, r, err)
		}
	}
	if r, err := rules.For(""); err != nil || r.Release != rules.Default().Release {
		t.Errorf("no release: %v", err)
	}
	var e *rules.UnknownError
	if _, err := rules.For("2.10.3"); !errors.As(err, &e) || !strings.Contains(err.Error(),
		rules.Default().Version()) {
		t.Errorf("a release without rules: %v", err)
	}
}

// TestTable: each release has the rules that say so, in order.
func TestTable(t *testing.T) {
	last := rules.Release{}
	for _, want := range rules.Known() {
		r, err := rules.For(want.String())
		if err != nil || r.Release != want || last.Compare(want) >= 0 {
			t.Errorf("%v after %v: %+v, %v", want, last, r.Release, err)
		}
		last = want
	}
}

// TestRulesAreTheCallers: changing a Ruleset changes no other caller's.
func TestRulesAreTheCallers(t *testing.T) {
	a := rules.Default()
	a.MaxChannels, a.Topo.NVLinkBW[0].BW, a.Search.Speeds[0].Intra[0], a.Tuning.LLMax[0][0] = 1, 1, 1, 1
	b := rules.Default()
	if b.MaxChannels == 1 || b.Topo.NVLinkBW[0].BW == 1 || b.Search.Speeds[0].Intra[0] == 1 ||
		b.Tuning.LLMax[0][0] == 1 {
		t.Error("a second Default has what was changed in the first")
	}
}

// TestCheck: a stage refuses no rules, and others than its input's.
func TestCheck(t *testing.T) {
	var none *rules.Ruleset
	var missing *rules.MissingError
	if err := none.Check("search"); !errors.As(err, &missing) || missing.Stage != "search" {
		t.Errorf("no rules: %v", err)
	}
	r, o := rules.Default(), rules.Default()
	if err := r.Check("search", o, nil); err != nil {
		t.Errorf("equal rules: %v", err)
	}
	o.Release.Patch++
	var mixed *rules.MixedError
	if err := r.Check("search", nil, o); !errors.As(err, &mixed) {
		t.Errorf("mixed rules: %v", err)
	}
}

// TestNVLink: rates by compute capability (graph/topo.h:274).
func TestNVLink(t *testing.T) {
	r := rules.Default()
	for sm, want := range map[int]float32{120: 40.1, 100: 40.1, 103: 40.1, 90: 20.6, 89: 20, 87: 20, 86: 12,
		80: 20, 75: 20, 70: 20, 61: 18, 60: 18, 52: 20} {
		if got := float32(r.Topo.NVLink(sm)); got != want {
			t.Errorf("sm_%d: %g, want %g", sm, got, want)
		}
	}
	for sm, want := range map[int]int{70: 0, 80: 1, 89: 1, 90: 2, 100: 3, 120: 3} {
		if got := rules.Class(sm); got != want {
			t.Errorf("class of sm_%d: %d, want %d", sm, got, want)
		}
	}
}

// TestTimesDoubt: times are surest with the release that was measured, and the less
// sure the further a release is from it.
func TestTimesDoubt(t *testing.T) {
	known := rules.Known()
	doubt := make([]float64, len(known))
	for i, release := range known {
		r, err := rules.For(release.String())
		if err != nil {
			t.Fatal(err)
		}
		doubt[i] = r.TimesDoubt()
		if (doubt[i] == 0) != (release == rules.Measured()) {
			t.Errorf("%s: %g", release, doubt[i])
		}
	}
	at := slices.Index(known, rules.Measured())
	if !slices.IsSorted(doubt[at:]) || !slices.IsSortedFunc(doubt[:at+1], func(a, b float64) int {
		return cmp.Compare(b, a)
	}) {
		t.Errorf("%v of %v", doubt, known)
	}
}
