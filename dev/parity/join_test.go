package parity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/topo/decl"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// TestTraysJoinedAreNCCLsDomain joins two trays of an NVL72 from the file of
// one, and expects NCCL's decision for the two, whose file lists both.
func TestTraysJoinedAreNCCLsDomain(t *testing.T) {
	tray := golden.Root(t, "testdata", "topos", "gb200-nvl72-tray.xml")
	data, err := os.ReadFile(tray)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := topoxml.Parse(data, tray)
	if err != nil {
		t.Fatal(err)
	}
	two, err := decl.Join(decl.Group{Spec: spec, Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "joined.xml")
	if err := os.WriteFile(file, topoxml.Write(two.Root), 0o644); err != nil {
		t.Fatal(err)
	}
	n := 0
	refs := golden.Own(t)
	for i := range refs {
		r := &refs[i]
		if !strings.HasPrefix(r.Name, "gb200-nvl72-2tray") {
			continue
		}
		r.Load(t)
		r.Topo = file
		n++
		for key, diff := range Compare(t, r) {
			if diff != "" {
				t.Errorf("%s from joined trays: %s: %s", r.Name, key, diff)
			}
		}
	}
	if n == 0 {
		t.Error("no reference of two trays")
	}
}
