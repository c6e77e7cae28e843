package gpu

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestNumbersThatAreNone: every number of a file is read, and what is none is refused at its line.
func TestNumbersThatAreNone(t *testing.T) {
	golden.DamageEach(t, "classes/nv*.json", func(name string) golden.Input {
		return golden.Input{Instead: `"4x2"`,
			Read: func(text string) error {
				_, err := Parse([]byte(text), name)
				return err
			}, Free: func(line string, at int) bool { // validations are refused where their list begins
				return golden.Quoted(line, at) || strings.Contains(line, "mean_error")
			}}
	})
}
