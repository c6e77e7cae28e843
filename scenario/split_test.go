package scenario

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/units"
)

// TestColour: a split is read as nccl-tests reads NCCL_TESTS_SPLIT.
func TestColour(t *testing.T) {
	for text, want := range map[string][]int{
		"MOD 2": {0, 1, 0, 1}, "%2": {0, 1, 0, 1}, "and 0x2": {0, 0, 2, 2}, "& 0b10": {0, 0, 2, 2},
		"OR 0x1": {1, 1, 3, 3}, "|3": {3, 3, 3, 3}, "Div 3": {0, 0, 0, 1}, "/2": {0, 0, 1, 1},
	} {
		of, err := splitColour(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := []int{of(0), of(1), of(2), of(3)}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"MOD 0", "/", "XOR 2", "AND x", "MOD -1", "DIV 99999999999"} {
		if _, err := splitColour(text); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// took is the time of the one row of a Spec, and the groups of its devices.
func took(t *testing.T, spec Spec, opt Options) (units.Time, []int) {
	t.Helper()
	r, err := Prepare(spec, opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range r.Rows(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var groups []int
	for _, d := range r.Site.Devices() {
		groups = append(groups, d.Group)
	}
	return r.Result().Rows[0].Out.Time, groups
}

// TestSplit: communicators that share a NIC take at least as long as it needs for the
// bytes of all; those within nodes take as long as one alone.
func TestSplit(t *testing.T) {
	opt := Options{Settings: config.Sources{NoEnv: true}}
	spec := Spec{Machine: Machine{Nodes: []Nodes{{Count: 2}}, GPUs: 2, Split: "MOD 2"},
		NCCL:     NCCL{Env: map[string]string{"NCCL_IB_HCA": "=mlx5_0"}},
		Workload: Workload{Op: "all_gather", Sizes: []string{"16M"}}}
	both, groups := took(t, spec, opt)
	if want := []int{0, 1, 0, 1}; !slices.Equal(groups, want) {
		t.Errorf("groups %v, want %v", groups, want)
	}
	if least := units.FromMicros(float64(16<<20) / 50e3); both < least {
		t.Errorf("two communicators took %v, and their NIC of 50 GB/s needs %v", both, least)
	}
	spec.Machine.Split = "DIV 2"
	apart, _ := took(t, spec, opt)
	spec.Machine.Split, spec.Machine.Nodes[0].Count = "", 1
	if alone, _ := took(t, spec, opt); apart != alone {
		t.Errorf("communicators of a node each took %v, one alone %v", apart, alone)
	}
}

// TestGroupsAsAsked: a group takes what nccl-tests is asked for beside -m: windows,
// unaligned buffers, copy engines, a host that waits or is timed.
func TestGroupsAsAsked(t *testing.T) {
	topo, err := os.ReadFile(filepath.Join(golden.Root(t, "testdata", "topos"), "h200x4-4.xml"))
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{Files: fstest.MapFS{"m.xml": {Data: topo}}, Settings: config.Sources{NoEnv: true}}
	us := func(group int, w Workload, e Engine) float64 {
		w.Op, w.Sizes, w.Group = "all_gather", []string{"1M"}, group
		took, _ := took(t, Spec{Machine: Machine{Nodes: []Nodes{{Topo: "m.xml"}}, Multicast: "off"},
			Workload: w, Engine: e}, opt)
		return took.Micros()
	}
	plain := us(4, Workload{}, Engine{})
	if x := us(4, Workload{Buffers: "windows"}, Engine{}); x >= plain {
		t.Errorf("in windows %g us, else %g", x, plain)
	}
	if x := us(4, Workload{Unalign: 1}, Engine{}); x <= plain {
		t.Errorf("unaligned %g us, else %g", x, plain)
	}
	engines := Workload{Buffers: "windows", CTAPolicy: 2}
	if x, one := us(4, engines, Engine{}), us(1, engines, Engine{}); x != one {
		t.Errorf("copy engines take %g us in a group and %g alone", x, one)
	}
	wait, meet, both := us(4, Workload{}, Engine{Blocking: 2}), us(4, Workload{}, Engine{Blocking: 1}),
		us(4, Workload{}, Engine{Blocking: 3, CPUTime: true})
	if wait <= plain || meet <= wait || both != wait {
		t.Errorf("a host that waits: %g us, and meets %g, untimed %g; else %g", wait, meet, both, plain)
	}
	if x, one := us(4, Workload{}, Engine{CPUTime: true}), us(1, Workload{}, Engine{CPUTime: true}); 4*x !=
		one {
		t.Errorf("one launch for four: %g us each, alone %g", x, one)
	}
}
