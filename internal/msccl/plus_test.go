package msccl

import (
	"os"
	"path/filepath"
	"testing"
)

func shared(t *testing.T, dir string) []string {
	root := filepath.Join("..", "..", "..", "shared")
	if at := os.Getenv("SIMCCL_SHARED"); at != "" {
		root = at
	}
	list, _ := filepath.Glob(filepath.Join(root, "workloads", "samples", dir, "*"))
	if len(list) == 0 {
		t.Skip("shared/workloads/samples/" + dir + " is not there")
	}
	return list
}

func TestPlusSamples(t *testing.T) {
	for _, name := range shared(t, "mscclpp_json") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := ReadPlus(text, filepath.Base(name))
		if err != nil {
			t.Error(err)
			continue
		}
		err = proveAt(s, 4)
		t.Logf("%s: %v", filepath.Base(name), err)
	}
}
