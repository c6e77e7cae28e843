package collector

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// stuck lists what each rank waits for, a line each, for the report of a deadlock.
func (c *Core) stuck() string {
	var b strings.Builder
	for _, x := range c.comms {
		for _, m := range x.members {
			for _, u := range m.pending {
				fmt.Fprintf(&b, "\n  communicator %d (%d ranks): %s", x.id, len(x.members), u.describe())
				switch absent := x.absent(u); {
				case !u.o.Arrived:
					b.WriteString(", behind other work of its stream")
				case len(absent) > 0:
					fmt.Fprintf(&b, ", waits for ranks %v", absent)
				}
			}
		}
	}
	for _, x := range c.comms {
		if h := x.unpaired(func(u *unit) bool { return u.lead.m.waits(u.lead) }); h != nil {
			fmt.Fprintf(&b,
				"\n  communicator %d (%d ranks): %s waits for rank %d, which does not call the other side",
				x.id, len(x.members), h.u.of(h), h.op.root)
		}
		for _, s := range append(slices.Clone(x.splits), x.shrinks...) {
			if s.missing > 0 {
				fmt.Fprintf(&b,
					"\n  communicator %d (%d ranks): ranks %v did not call ncclCommSplit or ncclCommShrink",
					x.id, len(x.members), x.notIn(s))
			}
		}
	}
	for _, x := range c.forming { //lint:sorted text of an error; at most a few
		fmt.Fprintf(&b, "\n  a communicator of %d ranks is being made: %d have not come", len(x.members),
			x.missing)
	}
	return b.String()
}

// notIn returns the ranks, of processes, that have not called a split or shrink and are not excluded from it.
func (x *comm) notIn(s *split) (out []int32) {
	for r, f := range s.from {
		if f == nil && !slices.Contains(s.exclude, int32(r)) && x.members[r].like == nil {
			out = append(out, int32(r))
		}
	}
	return out
}

// absent returns the ranks that have not launched what a unit waits for.
func (x *comm) absent(u *unit) (out []int32) {
	for _, m := range x.members {
		if u.needs(m) {
			out = append(out, m.rank)
		}
	}
	return out
}

// unpaired finds the message without another side of the lowest rank that is no process's, of such units.
func (x *comm) unpaired(of func(u *unit) bool) (first *half) {
	for _, p := range x.pairs { //lint:sorted the lowest one
		for _, h := range append(slices.Clone(p.sends), p.recvs...) {
			if u := h.u; u.lead == nil || u.fails() || !of(u) {
				continue
			}
			if first == nil || cmp.Or(cmp.Compare(h.u.m.rank, first.u.m.rank),
				cmp.Compare(h.op.root, first.op.root), cmp.Compare(h.op.fn, first.op.fn)) < 0 {
				first = h
			}
		}
	}
	return first
}

// of describes a message of a rank that is no process, and names the process that it repeats.
func (u *unit) of(h *half) string {
	return fmt.Sprintf("rank %d, which does what rank %d does, in %s,", u.m.rank, u.lead.m.rank,
		describe(h.op))
}

func (m *member) waits(u *unit) bool { return slices.Contains(m.pending, u) }

// Unpaired reports, once programs have ended, messages of ranks that are no process's without
// another side: their peers are not as far away as those of the processes.
func (c *Core) Unpaired() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.comms {
		if h := x.unpaired(func(u *unit) bool { return !u.lead.m.waits(u.lead) }); h != nil && x.failed == 0 {
			c.warn("--fake-ranks on a communicator of %d ranks: %s has peer %d, which does not call the "+
				"other side; start processes for all ranks that differ", len(x.members), h.u.of(h), h.op.root)
		}
	}
}
