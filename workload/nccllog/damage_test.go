package nccllog

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestNumbersThatAreNone: every number of a file is read, and what is none is refused at its line.
func TestNumbersThatAreNone(t *testing.T) {
	golden.Damage(t, golden.Input{Name: "f", Text: inspectorSmall, Read: func(text string) error {
		_, _, err := ReadInspector(strings.NewReader(text), "f")
		return err
	}, Free: golden.Quoted})
}
