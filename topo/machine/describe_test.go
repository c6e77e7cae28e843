package machine

import (
	"os"
	"path/filepath"
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
