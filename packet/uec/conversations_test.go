package uec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/simccl/simccl/dev/ruletest"
	"github.com/simccl/simccl/units"
)

// TestConversations: a leaf-spine network and flows in, what became of them out.
//
//	run    settings and flows, one a line: "set Leaves 4" of the network or the simulation, "flow 0 4 1000"
//	       with at= (us), after=flow and pool=, "pool 1 2" of flows that a pool's ends start, "shift 3 1000"
//	       for a flow of each host to the host so many places on, "incast 5 1000" for flows to host 0
//
// Two leaves have four hosts each and four spines, at 100 Gbit/s and 1 us; senders have 64 paths, Mixed.
func TestConversations(t *testing.T) {
	ruletest.Run(t, func() func(*testing.T, *datadriven.TestData) string {
		return func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "run" {
				d.Fatalf(t, "%s: no command %s", d.Pos, d.Cmd)
			}
			r, err := play(d.Input)
			if err != nil {
				return "error: " + err.Error()
			}
			var b strings.Builder
			ends := make([]string, 0, len(r.Flows))
			for i, f := range r.Flows {
				if ends = append(ends, fmt.Sprint(f.End)); f.Start > 0 || !f.Done {
					fmt.Fprintf(&b, "flow %d: from %v, done %t\n", i, f.Start, f.Done)
				}
			}
			r.Flows, r.Windows = nil, 0
			return "ends: " + strings.Join(ends, " ") + "\n" + b.String() + ruletest.Changes(&Result{}, r)
		}
	})
}

func play(text string) (*Result, error) {
	n, c := small(), &Config{Balance: Mixed, Paths: 64, MTU: 4150}
	var flows []Flow
	add := func(src, dst, bytes int) *Flow {
		flows = append(flows, Flow{Src: int32(src), Dst: int32(dst), Bytes: int64(bytes),
			ID: uint32(len(flows) + 1)})
		return &flows[len(flows)-1]
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		number := func(i int) int {
			v, _ := strconv.Atoi(words[i])
			return v
		}
		switch words[0] {
		case "set":
			if ruletest.Set(n, words[1], words[2]) == nil {
				continue
			}
			if err := ruletest.Set(c, words[1], words[2]); err != nil {
				return nil, err
			}
		case "flow":
			f := add(number(1), number(2), number(3))
			for _, w := range words[4:] {
				key, value, _ := strings.Cut(w, "=")
				v, err := strconv.Atoi(value)
				if err != nil {
					return nil, err
				}
				switch key {
				case "at":
					f.Start = units.Time(v) * units.Microsecond
				case "after":
					f.Deps = append(f.Deps, int32(v))
				case "pool":
					f.Pool = v
				}
			}
		case "pool":
			var list []int32
			for i := range words[1:] {
				list = append(list, int32(number(i+1)))
			}
			c.Pools = append(c.Pools, list)
		case "shift":
			flows = slices.Concat(flows, shifted(n, number(1), int64(number(2))))
		case "incast":
			for i := range number(1) {
				add(i+1, 0, number(2))
			}
		}
	}
	return Run(n, flows, c)
}
