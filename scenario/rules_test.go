package scenario

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/rules"
)

// TestVersionOfNCCL: a Spec may name the release; one without rules is refused
// at its place, and the default by name is the default.
func TestVersionOfNCCL(t *testing.T) {
	_, err := Parse([]byte("{\"scenario\": 1,\n \"nccl\": {\"version\": \"2.10.3\"},\n"+
		" \"workload\": {\"op\": \"all_reduce\"}}"), "s.json")
	if err == nil || !strings.Contains(err.Error(),
		"s.json:2:22: nccl.version 2.10.3: no rules of NCCL 2.10.3; known: ") ||
		!strings.Contains(err.Error(), rules.Default().Version()) {
		t.Errorf("a release without rules: %v", err)
	}
	_, err = Parse([]byte(`{"scenario": 1, "nccl": {"version": "new"}, "workload": {"op": "all_reduce"}}`),
		"s.json")
	if err == nil || !strings.Contains(err.Error(),
		`"new" is no version of NCCL: write three numbers, as in `) {
		t.Errorf("no release: %v", err)
	}
	var sums [2]string
	for i, version := range []string{"", rules.Default().Version()} {
		s := Spec{NCCL: NCCL{Version: version}, Workload: Workload{Op: "all_reduce", Sizes: []string{"1M"}}}
		site, err := Load(&s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if site.Comm.Rules.Version() != rules.Default().Version() {
			t.Errorf("version %q: rules of %s", version, site.Comm.Rules.Version())
		}
		if sums[i], err = Digest(&s, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if sums[0] != sums[1] {
		t.Error("the default by name is another run")
	}
}

// TestTimesOfReleases: a release with which nothing was measured has less certain times
// than the machine class, unless the class comes from a file.
func TestTimesOfReleases(t *testing.T) {
	load := func(version, class string) *Site {
		t.Helper()
		s := Spec{NCCL: NCCL{Version: version}, Machine: Machine{Class: class},
			Workload: Workload{Op: "all_reduce", Sizes: []string{"1M"}}}
		site, err := Load(&s,
			Options{
				Files: fstest.MapFS{
					"own.json": {
						Data: []byte(
							`{"format":"simccl machine class","name":"own","source":"measured","uncertainty":0.03,"base":"nvswitch-sm90","parameters":{}}`)}}})
		if err != nil {
			t.Fatal(err)
		}
		return site
	}
	measured := load("", "")
	if measured.Uncertainty() != measured.Class().Uncertainty ||
		measured.Times() != measured.Class().Summary(measured.Between()) {
		t.Errorf("%s: %g, %s", measured.Config.Rules.Version(), measured.Uncertainty(), measured.Times())
	}
	older := load("2.21.5", "")
	if older.Uncertainty() <= measured.Uncertainty() || older.Class().Uncertainty !=
		measured.Class().Uncertainty || !strings.Contains(older.Times(),
		"kernels were measured with NCCL 2.28.9: 15 % are added for 2.21.5") {
		t.Errorf("2.21.5: %g, %s", older.Uncertainty(), older.Times())
	}
	if own := load("2.21.5", "own.json"); own.Uncertainty() != .03 || strings.Contains(own.Times(),
		"2.21.5") {
		t.Errorf("a class from a file: %g, %s", own.Uncertainty(), own.Times())
	}
}
