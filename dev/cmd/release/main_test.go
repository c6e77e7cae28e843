package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSystemsAreCheckedBeforeAnythingIsWritten: a name that is none leaves no folder
// and no document.
func TestSystemsAreCheckedBeforeAnythingIsWritten(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", ".."))
	out := filepath.Join(t.TempDir(), "dist")
	r := &release{version: "0.0.1", out: out}
	if err := r.run("linux/amd64,plan9/mips"); err == nil || !strings.Contains(err.Error(),
		`"plan9/mips" is none of`) {
		t.Errorf("a system that is none: %v", err)
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("%s was made: %v", out, err)
	}
	if list, err := choose("linux/amd64,linux/amd64"); err != nil || len(list) != 1 {
		t.Errorf("twice the same: %v, %v", list, err)
	}
	if list, err := choose(""); err != nil || len(list) != len(targets) {
		t.Errorf("all: %v, %v", list, err)
	}
}
