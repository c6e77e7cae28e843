package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestSweepsGoOnWhereTheirFileEnds: what was measured before is not measured again, the most costly
// sweep comes first, and what costs more than a sweep may is counted.
func TestSweepsGoOnWhereTheirFileEnds(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no sh")
	}
	file := filepath.Join(t.TempDir(), "sweeps")
	row := `{"line":"` + grid()[0] + `","seconds":5,"mb":10,"exit":0}` + "\n" + `{"line":"x`
	if err := os.WriteFile(file, []byte(row), 0o644); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	worse, err := measure(file, &out, "true", 1, 0, 5)
	if err != nil || worse != 1 || !strings.HasPrefix(out.String(), "!   5.00 s") {
		t.Errorf("%d cost too much, %v:\n%s", worse, err, &out)
	}
	s, err := one("true", grid()[0], 5)
	if err != nil || s.Exit != 0 || s.Seconds > 1 {
		t.Errorf("%+v, %v", s, err)
	}
}
