package msccl

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestNumbersThatAreNone: every number of a schedule is read, and what is none is refused at its line.
func TestNumbersThatAreNone(t *testing.T) {
	golden.DamageEach(t, "../../testdata/schedules/*.xml", func(name string) golden.Input {
		return golden.Input{Read: func(text string) error {
			_, err := Read([]byte(text), name)
			return err
		}, Free: func(line string, at int) bool { // what depends on a step follows from depid
			return strings.HasSuffix(line[:at], `hasdep="`)
		}}
	})
}
