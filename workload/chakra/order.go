package chakra

import "fmt"

// order sorts nodes so that each follows what it depends on, else as the file
// has them. Dependencies on nodes that are not there are dropped and noted. Where
// control dependencies close a cycle with those of data, as in traces in which they
// name the operator that encloses a node, they are dropped.
func (t *Trace) order(b *builder) ([]int32, error) {
	out, err := t.sorted(b)
	if err != nil {
		for i := range t.Nodes {
			if len(t.Nodes[i].Ctrl) > 0 {
				b.note("control dependencies close a cycle with those of data and were dropped: they name the operators that enclose nodes")
				for k := range t.Nodes {
					t.Nodes[k].Ctrl = nil
				}
				return t.sorted(b)
			}
		}
	}
	return out, err
}

// sorted is one attempt of order.
func (t *Trace) sorted(b *builder) ([]int32, error) {
	at := make(map[uint64]int32, len(t.Nodes))
	for i := range t.Nodes {
		if _, twice := at[t.Nodes[i].ID]; twice {
			return nil, fmt.Errorf("there are two nodes %d", t.Nodes[i].ID)
		}
		at[t.Nodes[i].ID] = int32(i)
	}
	left := make([]int32, len(t.Nodes))
	after := make([][]int32, len(t.Nodes))
	lost := 0
	for i := range t.Nodes {
		for _, ids := range [][]uint64{t.Nodes[i].Data, t.Nodes[i].Ctrl} {
			for _, d := range ids {
				if k, ok := at[d]; ok {
					after[k] = append(after[k], int32(i))
					left[i]++
				} else {
					lost++
				}
			}
		}
	}
	if lost > 0 {
		b.note(fmt.Sprintf("%d dependencies of rank %d are on nodes that the trace does not have", lost, b.me))
	}
	h := heap{}
	for i := range t.Nodes {
		if left[i] == 0 {
			h.push(int32(i))
		}
	}
	out := make([]int32, 0, len(t.Nodes))
	for len(h) > 0 {
		i := h.pop()
		out = append(out, i)
		for _, a := range after[i] {
			if left[a]--; left[a] == 0 {
				h.push(a)
			}
		}
	}
	if len(out) < len(t.Nodes) {
		return nil, fmt.Errorf("%d nodes depend on each other in a cycle", len(t.Nodes)-len(out))
	}
	return out, nil
}

// heap is a queue of numbers, the least first.
type heap []int32

func (h *heap) push(v int32) {
	*h = append(*h, v)
	q := *h
	for i := len(q) - 1; i > 0; {
		up := (i - 1) / 2
		if q[up] <= q[i] {
			return
		}
		q[up], q[i] = q[i], q[up]
		i = up
	}
}

func (h *heap) pop() int32 {
	q := *h
	top := q[0]
	n := len(q) - 1
	q[0] = q[n]
	q = q[:n]
	*h = q
	for i := 0; ; {
		l := 2*i + 1
		if l >= n {
			return top
		}
		if l+1 < n && q[l+1] < q[l] {
			l++
		}
		if q[i] <= q[l] {
			return top
		}
		q[i], q[l] = q[l], q[i]
		i = l
	}
}
