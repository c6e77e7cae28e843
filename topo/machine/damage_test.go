package machine

import (
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestNumbersThatAreNone: every number of a file is read, and what is none is refused at its line.
func TestNumbersThatAreNone(t *testing.T) {
	golden.DamageEach(t, "../builtin/specs/*.json", func(name string) golden.Input {
		return golden.Input{Instead: `"4x2"`, Free: golden.Quoted,
			Read: func(text string) error {
				_, err := Parse([]byte(text), name)
				return err
			}}
	})
}
