package chakra

import (
	"fmt"

	"github.com/simccl/simccl/internal/heap"
)

// order returns the nodes in topological order, and otherwise in the order of the file. It drops and notes
// dependencies on absent nodes. If control dependencies form a cycle with data dependencies, it drops all
// control dependencies: such traces use them to name the enclosing operator.
func (t *Trace) order(b *builder) ([]int32, error) {
	out, err := t.sorted(b)
	if err != nil {
		for i := range t.Nodes {
			if len(t.Nodes[i].Ctrl) > 0 {
				b.note("control dependencies close a cycle with those of data and were dropped: they name " +
					"the operators that enclose nodes")
				for k := range t.Nodes {
					t.Nodes[k].Ctrl = nil
				}
				return t.sorted(b)
			}
		}
	}
	return out, err
}

// sorted is one attempt of order with the dependencies that are left.
func (t *Trace) sorted(b *builder) ([]int32, error) {
	at := make(map[uint64]int32, len(t.Nodes))
	for i := range t.Nodes {
		if _, twice := at[t.Nodes[i].ID]; twice {
			return nil, fmt.Errorf("there are two nodes %d", t.Nodes[i].ID)
		}
		at[t.Nodes[i].ID] = int32(i)
	}
	lost := 0
	out, ok := heap.Order(len(t.Nodes), func(i int32, yield func(int32)) {
		for _, ids := range [][]uint64{t.Nodes[i].Data, t.Nodes[i].Ctrl} {
			for _, d := range ids {
				if k, ok := at[d]; ok {
					yield(k)
				} else {
					lost++
				}
			}
		}
	})
	if lost > 0 {
		b.note(fmt.Sprintf("%d dependencies of rank %d are on nodes that the trace does not have", lost,
			b.me))
	}
	if !ok {
		return nil, fmt.Errorf("%d nodes depend on each other in a cycle", len(t.Nodes)-len(out))
	}
	return out, nil
}
