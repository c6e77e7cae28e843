package mscclpp

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestNumbersThatAreNone: every number of a schedule is read, and what is none is refused at its line.
func TestNumbersThatAreNone(t *testing.T) {
	golden.DamageEach(t, "../../testdata/schedules/*.json", func(name string) golden.Input {
		return golden.Input{Instead: `"4x2"`,
			Read: func(text string) error {
				_, err := Read([]byte(text), name)
				return err
			}, Free: func(line string, at int) bool { // threads of a block are the simulated kernel's
				return golden.Quoted(line, at) || strings.HasSuffix(line[:at], `num_threads_per_block": `)
			}}
	})
}
