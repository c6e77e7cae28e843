package machine

import (
	"testing"

	"github.com/simccl/simccl/dev/damage"
)

// TestNumbersThatAreNone: every number of a file is read, and what is none is refused at its line.
func TestNumbersThatAreNone(t *testing.T) {
	damage.Numbers(t, damage.File{Name: "f", Text: small, Read: func(text string) error {
		_, err := Parse([]byte(text), "f")
		return err
	}})
}
