package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestPage: docs/results/HARDWARE.md has the table that the measured files make.
func TestPage(t *testing.T) {
	var b bytes.Buffer
	if err := table(&b, filepath.Join(golden.Root(t, "testdata", "measured"), "h200x2",
		"own-2026-11-23-0940"), "2"); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(golden.Root(t, "docs", "results", "HARDWARE.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(page, b.Bytes()) {
		t.Errorf("docs/results/HARDWARE.md has not this table; make own-table prints it\n%s", b.String())
	}
}
