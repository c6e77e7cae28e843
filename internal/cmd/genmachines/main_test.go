package main

import (
	"testing"

	"github.com/simccl/simccl/internal/golden"
)

// TestPageIsWhatIsWritten: docs/MACHINES.md is what the machines say now.
func TestPageIsWhatIsWritten(t *testing.T) {
	golden.Text(t, golden.Root(t, "docs", "MACHINES.md"), page())
}
