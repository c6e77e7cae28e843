package builtin

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/lint"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// TestFilesAreTheFixtures: the files that are built in are those whose decisions
// are compared with NCCL's.
func TestFilesAreTheFixtures(t *testing.T) {
	for _, m := range List() {
		if m.File == "" {
			continue
		}
		want, err := os.ReadFile(golden.Root(t, "testdata", "topos", m.File))
		if os.IsNotExist(err) { // of AMD
			want, err = os.ReadFile(golden.Root(t, "testdata", "topos", "rccl", m.File))
		}
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(m.XML(), want) {
			t.Errorf("topo/builtin/files/%s differs from testdata/topos/%[1]s; copy it", m.File)
		}
	}
}

// TestNames: names and aliases are distinct, and each leads to its machine.
func TestNames(t *testing.T) {
	seen := map[string]string{}
	for _, m := range List() {
		for _, n := range append([]string{m.Name}, m.Aliases...) {
			if seen[n] != "" {
				t.Errorf("%s is a name of %s and %s", n, seen[n], m.Name)
			}
			seen[n] = m.Name
			if Lookup(n) != m || Lookup(n+".xml") != m {
				t.Errorf("%s does not lead to %s", n, m.Name)
			}
		}
		if m.Title == "" || len(m.Facts) == 0 {
			t.Errorf("%s has no title or no source", m.Name)
		}
	}
	// Case and what separates words do not count; no two machines become one by that.
	plainly := map[string]string{}
	for _, m := range List() {
		for _, n := range append([]string{m.Name}, m.Aliases...) {
			if other := plainly[plain(n)]; other != "" && other != m.Name {
				t.Errorf("%s of %s is also one of %s", n, m.Name, other)
			}
			plainly[plain(n)] = m.Name
		}
	}
	for _, n := range []string{"DGX-H100", "dgx_h100", "Dgx H100", "dgxh100", "DGX-H100.xml"} {
		if m := Lookup(n); m == nil || m.Name != "dgx-h100" {
			t.Errorf("%s does not lead to dgx-h100", n)
		}
	}
	for name, want := range map[string]string{"h100": "dgx-h100", "spark": "dgx-spark", "dgx-h10": "dgx-h100",
		"p5": "aws-p5.48xlarge"} {
		if near := Suggest(name); name == "p5" && len(near) == 0 || name != "p5" &&
			!slices.Contains(near, want) {
			t.Errorf("%s suggests %v, want %s", name, near, want)
		}
	}
	if near := Suggest("zzz"); len(near) > 0 {
		t.Errorf("zzz suggests %v", near)
	}
	if Lookup("dgx-z9") != nil {
		t.Error("an unknown name finds a machine")
	}
}

// TestGenerated: each machine is a topology without faults, and has the GPUs and ports
// of its Spec.
func TestGenerated(t *testing.T) {
	params := topo.DefaultParams()
	params.NRanks = 64
	for _, m := range List() {
		text := m.XML()
		spec, err := topoxml.Parse(text, m.Name)
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		for _, f := range lint.Check(spec, params) {
			if f.Severity > lint.Warning {
				t.Errorf("%s: %v", m.Name, f)
			}
		}
		if m.Spec == nil {
			continue
		}
		if gpus, nets := len(spec.Root.All("gpu")), len(spec.Root.All("net")); gpus != m.Spec.GPUs() ||
			nets != m.Spec.Ports() {
			t.Errorf("%s: %d GPUs and %d ports, the Spec has %d and %d", m.Name, gpus, nets, m.Spec.GPUs(),
				m.Spec.Ports())
		}
		if !bytes.Equal(topoxml.Write(spec.Root), text) {
			t.Errorf("%s: written again it differs", m.Name)
		}
	}
}
