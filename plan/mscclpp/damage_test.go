package mscclpp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestNumbersThatAreNone: every number of a schedule is read, and what is none is refused at its line.
func TestNumbersThatAreNone(t *testing.T) {
	files, err := filepath.Glob("../../testdata/schedules/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		golden.Damage(t, golden.Input{Name: name, Text: string(text), Instead: `"4x2"`,
			Read: func(text string) error {
				_, err := Read([]byte(text), name)
				return err
			}, Free: func(line string, at int) bool { // threads of a block are the simulated kernel's
				return golden.Quoted(line, at) || strings.HasSuffix(line[:at], `num_threads_per_block": `)
			}})
	}
}
