package job

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
)

// An operation is simulated once for all communicators of a shape. Link names in such a simulation identify
// node and device by their index in the communicator; resolve translates them to one communicator's names.

const (
	openMark  = "\x01"
	closeMark = "\x02"
)

// unplaced is the number of node 0 in such names.
const unplaced = 1 << 24

// anywhere returns a Place with names that resolve can translate.
func anywhere(p sim.Place) sim.Place {
	if p.Nodes == nil {
		return p
	}
	nodes := make([]int32, len(p.Nodes))
	for i := range nodes {
		nodes[i] = unplaced + int32(i)
	}
	return sim.Place{Nodes: nodes, Short: func(node int32, id topo.NodeID) string {
		return openMark + strconv.Itoa(int(node)) + "." + strconv.Itoa(int(id)) + closeMark
	}}
}

// resolve translates a link name of the communicator's shape to its name in the cluster.
func (c *communicator) resolve(name string) string {
	if c.place.Nodes == nil {
		return name
	}
	var b strings.Builder
	if rest, ok := strings.CutPrefix(name, "node"); ok {
		digits, after, _ := strings.Cut(rest, " ")
		if n, err := strconv.Atoi(digits); err == nil && n >= unplaced && n-unplaced < len(c.place.Nodes) {
			fmt.Fprintf(&b, "node%d ", c.place.Nodes[n-unplaced])
			name = after
		}
	}
	for {
		before, rest, ok := strings.Cut(name, openMark)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		mark, after, _ := strings.Cut(rest, closeMark)
		node, id, _ := strings.Cut(mark, ".")
		n, err1 := strconv.Atoi(node)
		i, err2 := strconv.Atoi(id)
		if err1 == nil && err2 == nil {
			b.WriteString(c.place.Short(int32(n), topo.NodeID(i)))
		}
		name = after
	}
}
