package spec

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/units"
)

// Blocked is head-of-line blocking: a flow waited on a paused link for the queue of a port that it does not
// use.
type Blocked struct {
	Flow   int32
	Link   [2]int32 // the paused link, from and to
	Behind [2]int32 // the port of Link's second node whose queue was deepest
	Time   units.Time
}

// Ring formats a cycle of nodes link by link.
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

// Deadlock is a cycle of nodes, each paused by the next, observed twice without a frame sent in between.
type Deadlock struct {
	At    units.Time // first observation
	Nodes []int32
}
