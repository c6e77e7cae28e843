package grouplog

import (
	"fmt"
	"slices"
)

// NCCL launches the communicators of a group by a hash of their random ids
// (ncclGroupCommJoin, group.h:97): an order that no input has, and that all groups of a
// process share. Lines of NCCL in a file show it; where a file has none, communicators
// follow each other as the group's calls do.

// Order is in which order the communicators of a process are launched: their keys.
type Order []string

// key identifies a communicator by its name and ranks.
func key(name string, ranks []int32) string { return fmt.Sprint(name, ranks) }

// printedKeys returns the communicators that may have printed a line: those whose first rank is the line's
// device and which have a task of the line's function and bytes.
func (m *Machine) printedKeys(g *Group, p *Printed) []string {
	var out []string
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if t.Func.String() != p.Func || t.Count*int64(t.Type.Size()) != p.Bytes {
			continue
		}
		for _, ranks := range m.sets(t.Comm) {
			if k := key(t.Comm, ranks); int(ranks[0]) == p.Device && !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return out
}

// precedes counts for every pair of communicators how often a line of one comes
// before a line of the other, over lines that only one communicator can have printed.
func (m *Machine) precedes(groups []Group) map[[2]string]int {
	count := map[[2]string]int{}
	for i := range groups {
		g := &groups[i]
		var seen []string
		for k := range g.Lines {
			keys := m.printedKeys(g, &g.Lines[k])
			if len(keys) != 1 || slices.Contains(seen, keys[0]) {
				continue
			}
			for _, before := range seen {
				count[[2]string{before, keys[0]}]++
			}
			seen = append(seen, keys[0])
		}
	}
	return count
}

// orderOf finds the order of communicators from the lines of groups of one process;
// communicators that no line orders follow each other as names and ranks do here.
func (m *Machine) orderOf(groups []Group) Order {
	var all []string
	for _, name := range []string{"world", "halves", "strides"} {
		for _, ranks := range m.sets(name) {
			all = append(all, key(name, ranks))
		}
	}
	count := m.precedes(groups)
	// Take, one after the other, the communicator that the fewest others precede.
	var out Order
	for len(all) > 0 {
		best, least := 0, -1
		for i, k := range all {
			n := 0
			for _, o := range all {
				n += count[[2]string{o, k}]
			}
			if least < 0 || n < least {
				best, least = i, n
			}
		}
		out = append(out, all[best])
		all = slices.Delete(all, best, best+1)
	}
	return out
}
