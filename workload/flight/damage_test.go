package flight

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestNumbersThatAreNone: every number of a file is read, and what is none is refused at its line.
func TestNumbersThatAreNone(t *testing.T) {
	golden.Damage(t, golden.Input{Name: "f", Text: small, Read: func(text string) error {
		_, err := ReadJSON(strings.NewReader(text), "f")
		return err
	}, Free: golden.Quoted})
}
