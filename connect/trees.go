package connect

import "math/bits"

// none marks a missing neighbour.
const none = -1

// treeNode is a node's place in one tree over nodes.
type treeNode struct {
	up   int
	down [2]int
	// second is set where this node is its parent's second child.
	second bool
}

// binaryTree returns the place of node i among n in NCCL's tree, in which odd
// nodes are leaves and node 0 is the root with one child (trees.cc:33).
func binaryTree(n, i int) treeNode {
	if i == 0 {
		t := treeNode{up: none, down: [2]int{none, none}}
		if n > 1 {
			t.down[1] = 1 << (bits.Len(uint(n-1)) - 1)
		}
		return t
	}
	low := i & -i // the level: leaves have 1
	up := (i ^ low) | low<<1
	if up >= n {
		up = i ^ low
	}
	t := treeNode{up: up, down: [2]int{none, none}, second: i >= up}
	if low == 1 {
		return t
	}
	t.down[0] = i - low/2
	for step := low / 2; step > 0; step /= 2 {
		if i+step < n {
			t.down[1] = i + step
			break
		}
	}
	return t
}

// doubleTree returns the node's places in the two trees, of which the second
// is the first mirrored (n even) or shifted by one (n odd), so that inner nodes
// of one are leaves of the other (trees.cc:91).
func doubleTree(n, i int) (first, second treeNode) {
	first = binaryTree(n, i)
	from := func(j int) int { return n - 1 - j } // mirror, its own inverse
	at := n - 1 - i
	if n%2 == 1 {
		at = (i - 1 + n) % n
		from = func(j int) int { return (j + 1) % n }
	}
	second = binaryTree(n, at)
	for _, v := range []*int{&second.up, &second.down[0], &second.down[1]} {
		if *v != none {
			*v = from(*v)
		}
	}
	return first, second
}
