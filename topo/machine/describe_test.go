package machine

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/simccl/simccl/topo/decl"
)

// written is a tree without what a Spec does not hold.
func written(root *decl.Element) string {
	var b strings.Builder
	root.Walk(func(e *decl.Element, above []*decl.Element) {
		b.WriteString(strings.Repeat(" ", len(above)) + e.Name)
		for _, a := range e.Attrs {
			if a.Name != "guid" {
				b.WriteString(" " + a.Name + "=" + a.Value)
			}
		}
		b.WriteString("\n")
	})
	return b.String()
}

// TestDescribe: the Spec of what a Spec generates generates the same.
func TestDescribe(t *testing.T) {
	files, err := filepath.Glob("../builtin/specs/*.json")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d specs, %v", len(files), err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(data, f)
		if err != nil {
			t.Fatal(err)
		}
		root, err := s.Generate()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Describe(root, "back")
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(f), err)
			continue
		}
		again, err := back.Generate()
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(f), err)
			continue
		}
		if a, b := written(root), written(again); a != b {
			x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
			for i := range min(len(x), len(y)) {
				if x[i] != y[i] {
					t.Errorf("%s: line %d: %s, described %s", filepath.Base(f), i, x[i], y[i])
					break
				}
			}
		}
	}
}

// TestUnknownSwitches: a switch that is not known by its ids is described by a kind with its link, a virtual
// one where there is such; without a link it has NCCL's 3x16 (topo.cc, ncclTopoAddPci).
func TestUnknownSwitches(t *testing.T) {
	for attrs, want := range map[string]string{
		`vendor="0x1000" device="0xc010" link_speed="16.0 GT/s PCIe" link_width="16"`: "broadcom-gen4",
		`vendor="0x15b3" device="0x197b" link_speed="32.0 GT/s PCIe" link_width="16"`: "connectx-gen5",
		`vendor="0x8086" device="0x0001" link_speed="32.0 GT/s PCIe" link_width="16"`: "virtual-gen5",
		`vendor="0x8086" device="0x0001" link_speed="16.0 GT/s PCIe" link_width="16"`: "virtual-gen4",
		`vendor="0x8086" device="0x0001" link_speed="16.0 GT/s PCIe" link_width="1"`:  "root-x1",
		`vendor="0x8086" device="0x0001"`:                                             "plx-gen3",
		`vendor="0x8086" device="0x0001" link_speed="" link_width="0"`:                "plx-gen3",
	} {
		e := &decl.Element{Name: "pci"}
		e.Set("busid", "0000:10:00.0")
		for _, m := range regexp.MustCompile(`(\w+)="([^"]*)"`).FindAllStringSubmatch(attrs, -1) {
			e.Set(m[1], m[2])
		}
		var g Group
		if err := (&describer{spec: &Spec{}}).addSwitch(&g, e); err != nil || len(g.Switches) != 1 ||
			g.Switches[0] != want {
			t.Errorf("%s: %q, %v, want %s", attrs, g.Switches, err, want)
		}
	}
}
