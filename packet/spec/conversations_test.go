package spec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/simccl/simccl/dev/ruletest"
	"github.com/simccl/simccl/units"
)

// TestConversations: settings in, whether they are taken out.
//
//	check [network|cable|flow|fault]   a line a case, of "Path value" joined by commas: settings of the
//	                                   simulation, or of the part that is named, beside right ones
//
// Two hosts hang at one switch at 100 Gbit/s and 1 us.
func TestConversations(t *testing.T) {
	ruletest.Run(t, func() func(*testing.T, *datadriven.TestData) string {
		return func(t *testing.T, d *datadriven.TestData) string {
			var b strings.Builder
			for line := range strings.Lines(d.Input) {
				said := "taken"
				if err := checked(ruletest.Word(d, 0), strings.TrimSpace(line)); err != nil {
					said = err.Error()
				}
				fmt.Fprintf(&b, "%s: %s\n", strings.TrimSpace(line), said)
			}
			return b.String()
		}
	})
}

func checked(part, line string) error {
	cable := func(a int32) Cable { return Cable{A: a, B: 2, Rate: 100e9, Delay: units.Microsecond} }
	n := &Network{Nodes: 3, Switch: []bool{false, false, true}, Cables: []Cable{cable(0), cable(1)}}
	f, fault := Flow{Src: 0, Dst: 1, Bytes: 1000, Priority: 3}, Fault{}
	c := &Config{Frames: Frames{Payload: 1000, Header: 48, Ack: 60, Pause: 64}, AckFrom: 1, WholeNanos: true,
		Buffer: Buffer{Bytes: 1 << 20}}
	of := map[string]any{"": c, "network": n, "cable": &n.Cables[1], "flow": &f, "fault": &fault}[part]
	for setting := range strings.SplitSeq(line, ", ") {
		path, value, _ := strings.Cut(setting, " ")
		if path == "Deps" {
			f.Deps = []int32{int32(len(value))} // a letter a flow
		} else if err := ruletest.Set(of, path, value); err != nil {
			return err
		}
	}
	if part == "fault" {
		c.Faults = []Fault{fault}
	}
	return Check(n, []Flow{f, {Src: 1, Dst: 0, Bytes: 1, Priority: 1}}, c)
}
