package gpu

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/simccl/simccl/dev/ruletest"
)

// TestConversations: what a machine class consists of.
//
//	quantities    of each its name, unit and bounds, the field of Class that it sets, what alone depends on
//	              it, the quantity that it is like, and where a fit begins
func TestConversations(t *testing.T) {
	ruletest.Run(t, func() func(*testing.T, *datadriven.TestData) string {
		return func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "quantities" {
				d.Fatalf(t, "%s: no command %s", d.Pos, d.Cmd)
			}
			var b strings.Builder
			for _, q := range Quantities() {
				var c Class
				*q.At(&c) = 1
				set := strings.TrimSpace(ruletest.Changes(Class{}, c))
				fmt.Fprintf(&b, "%s: %s, %g to %g, %s", q.Name, q.Unit, q.Low, q.High,
					strings.TrimSuffix(set, ": 0 → 1"))
				for _, more := range []string{q.For, q.Like} {
					if more != "" {
						fmt.Fprintf(&b, ", %s", more)
					}
				}
				if q.Guess > 0 {
					fmt.Fprintf(&b, ", guess %g", q.Guess)
				}
				fmt.Fprintln(&b)
				most := cmp.Or(q.High, 1e9)
				if q.check(q.Low) != nil || q.check(most) != nil || q.check(q.Low-1e-7) == nil ||
					q.High > 0 && q.check(q.High*1.000001) == nil {
					t.Errorf("%s: a bound is not taken, or what is beyond is", q.Name)
				}
			}
			return b.String()
		}
	})
}
