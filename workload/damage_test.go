package workload

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestNumbersThatAreNone: every number of a file is read, and what is none is refused at its line.
func TestNumbersThatAreNone(t *testing.T) {
	for name, text := range map[string]string{"pair": pair, "parallel": parallel, "folded": folded} {
		golden.Damage(t, golden.Input{Name: name, Text: text, Read: func(text string) error {
			_, err := Read(strings.NewReader(text), name)
			return err
		}, Free: golden.Quoted})
	}
}
