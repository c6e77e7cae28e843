package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestPageIsWhatIsWritten: docs/results/MACHINES.md is what the machines say now.
func TestPageIsWhatIsWritten(t *testing.T) {
	golden.Text(t, golden.Root(t, "docs", "results", "MACHINES.md"), pageOfMachines())
}

// TestBesideIsWhatIsWritten: the table beside public files is what they decide now.
func TestBesideIsWhatIsWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "beside.md")
	if err := writeBeside(filepath.Join(golden.Shared(t), "topos"), file); err != nil {
		t.Fatal(err)
	}
	now, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(now) != beside {
		t.Errorf("make machines would write\n%s", now)
	}
}
