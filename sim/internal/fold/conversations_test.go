package fold_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/ruletest"
	"github.com/simccl/simccl/sim/internal/fold"
	"github.com/simccl/simccl/sim/param"
	"github.com/simccl/simccl/units"
)

// TestConversations: plans in, reductions out.
//
//	hosts n=N [K=V...]     N equal hosts of the lines below, or of those before
//	plan OP SIZE [root=R] [FAULT]   the quotients of its plan that are worth trying
//
// A FAULT is of the first host: its first net is slow, or down, or lossy, or one port of it slow (port), or
// its first rank is (late).
//
// A quotient says whether it is exact, or by how much it may be off, and how many of the ranks it runs.
func TestConversations(t *testing.T) {
	ruletest.Run(t, func() func(*testing.T, *datadriven.TestData) string {
		text := ""
		var c *comm.Comm
		return func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "hosts":
				if d.Input != "" {
					text = d.Input
				}
				n, err := strconv.Atoi(ruletest.Value(d, "n", "1"))
				if err != nil {
					t.Fatal(err)
				}
				var set []string
				for _, a := range d.CmdArgs {
					if a.Key == strings.ToUpper(a.Key) {
						set = append(set, a.Key+"="+strings.Join(a.Vals, ","))
					}
				}
				c = ruletest.Comm(t, text, n, set...)
				return fmt.Sprintf("%d ranks, %d channels", c.NRanks, c.NChannels)
			case "plan":
				said, err := proposals(c, d)
				if err != nil {
					return "error: " + err.Error()
				}
				return said
			}
			d.Fatalf(t, "%s: no command %s", d.Pos, d.Cmd)
			return ""
		}
	})
}

func proposals(c *comm.Comm, d *datadriven.TestData) (string, error) {
	f, err := coll.ParseFunc(ruletest.Word(d, 0))
	if err != nil {
		return "", err
	}
	bytes, err := units.ParseBytes(ruletest.Word(d, 1))
	if err != nil {
		return "", err
	}
	root, err := strconv.Atoi(ruletest.Value(d, "root", "0"))
	if err != nil {
		return "", err
	}
	p, _, err := c.Plan(comm.Op{Func: f, Type: coll.Float32, Count: int64(bytes / 4), Root: int32(root)})
	if err != nil {
		return "", err
	}
	of := fold.Config{Systems: c.Systems()}
	fault := param.Fault{Rank: -1, Slow: 1}
	switch ruletest.Word(d, 2) {
	case "slow":
		fault.Slow = 2
	case "port":
		fault.Slow, fault.Port = 2, 1
	case "down":
		fault.Down = true
	case "lossy":
		fault.Loss = 0.01
	case "late":
		fault.Rank, fault.Slow = 0, 2
	}
	if ruletest.Word(d, 2) != "" {
		of.Faults = []param.Fault{fault}
	}
	var b strings.Builder
	for _, q := range of.Proposals(p) {
		word := fmt.Sprintf("near, within %g %%", 100*q.Margin)
		if q.Exact {
			word = "exact"
		}
		fmt.Fprintf(&b, "%s: %d parts, %d slices\n", word, q.Parts, q.Slices)
	}
	return b.String(), nil
}
