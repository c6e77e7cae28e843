package spec

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/units"
)

// Blocked is head-of-line blocking: frames of a flow that waited on a link while
// it was paused for the sake of a port that the flow does not use.
type Blocked struct {
	Flow   int32
	Link   [2]int32 // that was paused, from and to
	Behind [2]int32 // the port, of Link's second node, whose queue was the deepest then
	Time   units.Time
}

// String says who waited where behind what.
func (b *Blocked) String() string {
	return fmt.Sprintf("flow %d waited %v on link %d > %d, paused for the queue of port %d > %d that it "+
		"does not use", b.Flow, b.Time, b.Link[0], b.Link[1], b.Behind[0], b.Behind[1])
}

// Ring writes a cycle of nodes link by link.
func Ring(nodes []int32) string {
	var b strings.Builder
	for i, n := range nodes {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d > %d", n, nodes[(i+1)%len(nodes)])
	}
	return b.String()
}

// Deadlock is a cycle of nodes each of which may not send to the next, because
// the next has paused it, seen twice without a frame sent between.
type Deadlock struct {
	At    units.Time // when it was seen first
	Nodes []int32
}

// String names its links.
func (d *Deadlock) String() string {
	return fmt.Sprintf("deadlock at %v, links pause each other in a cycle: %s", d.At, Ring(d.Nodes))
}
