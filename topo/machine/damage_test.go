package machine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestNumbersThatAreNone: every number of a file is read, and what is none is refused at its line.
func TestNumbersThatAreNone(t *testing.T) {
	files, err := filepath.Glob("../builtin/specs/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		golden.Damage(t, golden.Input{Name: name, Text: string(text), Instead: `"4x2"`, Free: golden.Quoted,
			Read: func(text string) error {
				_, err := Parse([]byte(text), name)
				return err
			}})
	}
}
