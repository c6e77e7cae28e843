package simai

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestNumbersThatAreNone: every number of a file is read, and what is none is refused at its line.
func TestNumbersThatAreNone(t *testing.T) {
	golden.Damage(t, golden.Input{Name: "f", Text: two, Read: func(text string) error {
		_, err := Read(strings.NewReader(text), "f")
		return err
	}, Free: func(line string, at int) bool { return line[at:at+2] == "-1" }}) // what a layer depends on
	golden.Damage(t, golden.Input{Name: "aicb", Text: small, Read: func(text string) error {
		_, err := ReadAICB(strings.NewReader(text), "aicb")
		return err
	}, Free: func(line string, at int) bool { // of additional columns
		return strings.Count(line[:at], ",") > 6 && strings.LastIndex(line, ",") != at-1
	}})
}
