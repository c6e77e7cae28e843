package kineto

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestNumbersThatAreNone: every number of a file is read, and what is none is refused at its line.
func TestNumbersThatAreNone(t *testing.T) {
	golden.Damage(t, golden.Input{Name: "f", Text: small, Read: func(text string) error {
		_, err := Read(strings.NewReader(text), "f")
		return err
	}, Free: func(line string, at int) bool {
		return golden.Quoted(line, at) || strings.Contains(line, "Input Dims") && at > 90 // skipped
	}})
}
