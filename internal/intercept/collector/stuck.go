package collector

import (
	"fmt"
	"slices"
	"strings"
)

// stuck says what every rank waits for.
func (c *Core) stuck() string {
	var b strings.Builder
	for _, x := range c.comms {
		for _, m := range x.members {
			for _, u := range m.pending {
				fmt.Fprintf(&b, "\n  communicator %d (%d ranks): %s", x.id, len(x.members), u.describe())
				switch absent := x.absent(u); {
				case !u.o.arrived:
					b.WriteString(", behind other work of its stream")
				case len(absent) > 0:
					fmt.Fprintf(&b, ", waits for ranks %v", absent)
				}
			}
		}
	}
	for _, x := range c.comms {
		for _, s := range append(slices.Clone(x.splits), x.shrinks...) {
			if s.missing > 0 {
				fmt.Fprintf(&b, "\n  communicator %d (%d ranks): ranks %v did not call ncclCommSplit or ncclCommShrink", x.id, len(x.members), x.notIn(s))
			}
		}
	}
	for _, x := range c.forming { //lint:sorted text of an error; at most a few
		fmt.Fprintf(&b, "\n  a communicator of %d ranks is being made: %d have not come", len(x.members), x.missing)
	}
	return b.String()
}

// notIn are the ranks that a split waits for.
func (x *comm) notIn(s *split) (out []int32) {
	for r, f := range s.from {
		if f == nil && !slices.Contains(s.exclude, int32(r)) && x.members[r].like == nil {
			out = append(out, int32(r))
		}
	}
	return out
}

// absent are the ranks that a unit waits for.
func (x *comm) absent(u *unit) (out []int32) {
	for _, m := range x.members {
		if u.needs(m) {
			out = append(out, m.rank)
		}
	}
	return out
}
