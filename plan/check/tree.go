package check

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
)

// An all_reduce along trees over nodes is proved by one node of each shape. What a node does follows from
// its links: which of its ranks is above which, and where links to other nodes begin. Such a node's ranks
// run alone (symbols), and the other nodes do what theirs do, as an induction over the tree and over chunks
// assumes: each node below sends the sums of its subtree up, chunk by chunk, and takes back what it gets;
// the node above takes this node's sums, and sends a chunk's complete sum down once it has them. The node
// has to do as much for its own neighbours, and its ranks must end with complete sums. As no node waits for
// a later chunk than it sends, none waits for another in a circle.
//
// Example: of 2,048 nodes, each the parent of two, one or none, those with two, the one with one, the leaves
// and the root run, each on every channel, in place of all.

// nodeTree are the nodes of a channel's tree.
type nodeTree struct {
	parent []int32 // node → the one above it, -1 at the root
	reps   []int32 // a node of each shape, a leaf first
}

// inTree are a rank's links along the tree of a channel.
type inTree struct {
	up   int32
	down [3]int32
	head int32 // which part of a node's data it sends to other nodes
}

// treeLinks is a rank's place in the tree of a channel, -1 where there is no rank.
func treeLinks(p *plan.Plan, ch, rank int32) inTree {
	if p.Req.Algo == coll.Tree {
		t := &p.Comm.Channels[ch].Tree[rank]
		return inTree{up: t.Up, down: t.Down}
	}
	n := &p.Comm.NVLS[ch]
	l := inTree{up: n.TreeUp[rank], down: n.TreeDown[rank], head: n.HeadIndex[rank]}
	for i, d := range l.down {
		if d >= int32(p.Comm.NRanks) { // the switch of its node
			l.down[i] = -1
		}
	}
	return l
}

// nodesOf examines a channel's tree; nil where its nodes are none, each with one above it that knows it, and
// one link up for each head.
func nodesOf(p *plan.Plan, ch int32) *nodeTree {
	c := p.Comm
	t := &nodeTree{parent: make([]int32, c.NNodes)}
	shapes, shape, ends := map[string]bool{}, []byte(nil), 0
	var heads map[int32]bool // of a node that have a link up
	for node, ranks := range c.NodeRanks {
		shape, t.parent[node], heads = shape[:0], -1, map[int32]bool{}
		leaf := true
		for _, r := range ranks {
			l := treeLinks(p, ch, r)
			for i, to := range [...]int32{l.up, l.down[0], l.down[1], l.down[2]} {
				switch {
				case to < 0:
					shape = append(shape, 255)
					continue
				case c.NodeOf[to] == int32(node):
					shape = append(shape, byte(c.LocalRank[to]))
					continue
				}
				shape = append(shape, 254)
				if i > 0 {
					leaf = false
					ends--
					continue
				}
				ends++
				above := treeLinks(p, ch, to)
				if up := t.parent[node]; up >= 0 && up != c.NodeOf[to] || heads[l.head] ||
					above.head != l.head || !slices.Contains(above.down[:], r) {
					return nil
				}
				t.parent[node], heads[l.head] = c.NodeOf[to], true
			}
		}
		if !shapes[string(shape)] {
			shapes[string(shape)] = true
			if t.reps = append(t.reps, int32(node)); leaf {
				last := len(t.reps) - 1
				t.reps[0], t.reps[last] = t.reps[last], t.reps[0]
			}
		}
	}
	if ends != 0 || c.MaxLocalRanks > 250 || !isTree(t.parent) {
		return nil
	}
	return t
}

// isTree reports whether all nodes are below one.
func isTree(parent []int32) bool {
	met, roots := make([]int32, len(parent)), 0
	for n, up := range parent {
		if up < 0 {
			roots++
		}
		at := int32(n)
		for at >= 0 && met[at] == 0 {
			met[at], at = int32(n)+1, parent[at]
		}
		if at >= 0 && met[at] == int32(n)+1 {
			return false
		}
	}
	return roots == 1
}

// ofTree proves an all_reduce along trees; ok: its nodes form trees.
func ofTree(p *plan.Plan) (ok bool, err error) {
	a := p.Req.Algo
	if p.Req.Func != coll.AllReduce || a != coll.Tree && a != coll.NVLSTree || p.Comm.NNodes < 2 ||
		p.Split.Striped || len(p.NetGroups()) > 0 {
		return false, nil
	}
	known := map[*int32]*nodeTree{} // channels share trees
	for ch := int32(p.Split.ChannelLo); ch <= int32(p.Split.ChannelHi); ch++ {
		var at *int32
		if a == coll.NVLSTree { // of which there may be more than channels
			at = &p.Comm.NVLS[ch].TreeUp[0]
		} else {
			at = &p.Comm.Channels[ch].Tree[0].Up
		}
		if known[at] == nil {
			known[at] = nodesOf(p, ch)
		}
		x := treeProof{p: p, ch: ch, nodeTree: known[at], carried: map[int32][]carried{}}
		if x.nodeTree == nil {
			return false, nil
		}
		for _, node := range x.reps {
			if err := x.ofNode(node); err != nil {
				return true, err
			}
		}
	}
	return true, nil
}

// treeProof proves a channel.
type treeProof struct {
	*nodeTree
	p       *plan.Plan
	ch      int32
	carried map[int32][]carried // head → what a connection carries, up or down, as the first leaf sends it
	place   [2]int32            // of a connection up, and down, among those of its lower rank
}

// carried is what is sent at a time.
type carried struct {
	steps  int64
	pieces []piece[value]
}

// treeNode is a node whose ranks run.
type treeNode struct {
	*treeProof
	c    *runner[value]
	m    *symbols
	node int32
	kids []int32       // nodes below
	sums int32         // the set of its subtree's ranks
	done map[int32]int // connection to or from another node → how much of carried went over it
	sent map[int32]int // head → how much was sent up
	down map[int32]int32
	err  error
}

// ofNode runs a node's ranks alone.
func (x *treeProof) ofNode(node int32) error {
	n := &treeNode{treeProof: x, node: node, done: map[int32]int{}, sent: map[int32]int{},
		down: map[int32]int32{}, m: &symbols{p: x.p, ranks: x.p.Comm.NodeRanks[node], at: map[int32]int32{}}}
	heads := 0
	for i, r := range n.m.ranks {
		n.m.at[r] = int32(i)
		l := treeLinks(x.p, x.ch, r)
		for _, d := range l.down {
			if d < 0 || x.p.Comm.NodeOf[d] == node {
				continue
			}
			if heads++; !slices.Contains(n.kids, x.p.Comm.NodeOf[d]) {
				n.kids = append(n.kids, x.p.Comm.NodeOf[d])
			}
		}
		if l.up >= 0 && x.p.Comm.NodeOf[l.up] != node {
			heads++
		}
	}
	subtree := len(n.m.ranks) + len(n.kids)
	all := subtree
	if x.parent[node] >= 0 {
		all++ // the ranks of all other nodes
	}
	sets, whole := newListed(all)
	n.m.sets, n.m.all = sets, whole
	n.m.fillInputs()
	for i := int32(1); i < int32(subtree); i++ {
		var err error
		if n.sums, err = sets.union(n.sums, i); err != nil {
			return err
		}
	}
	return n.run(2 * heads)
}

// run proves a node with so many connections to and from others.
func (n *treeNode) run(ends int) (err error) {
	if n.c, err = newRunner[value](n.p, n.m, n.ch, n.m.ranks); err != nil {
		return err
	}
	n.c.fill, n.c.empty = n.fills, n.takes
	if err := n.c.run(); n.err != nil || err != nil {
		if n.err != nil {
			err = n.err
		}
		return err
	}
	for _, l := range n.c.conns {
		if n.inside(&l) {
			continue
		}
		if got, want := n.done[l.conn.ID], len(n.carried[n.head(&l)]); got != want {
			return n.wrong(&l, fmt.Sprintf("carries %d chunks of %d", got, want))
		}
		ends--
	}
	if ends != 0 {
		return &Error{n.m.ranks[0], n.ch, -1, -1, fmt.Sprintf("%d connections to other nodes are not used",
			ends)}
	}
	if err := n.c.drained(); err != nil {
		return err
	}
	return n.m.ofChannel(n.ch)
}

func (n *treeNode) wrong(k *fifo[value], problem string) error {
	return &Error{k.conn.Src, n.ch, -1, -1, fmt.Sprintf("to rank %d: %s", k.conn.Dst, problem)}
}

func (n *treeNode) inside(k *fifo[value]) bool {
	of := n.p.Comm.NodeOf
	return of[k.conn.Src] == of[k.conn.Dst]
}

func (n *treeNode) head(k *fifo[value]) int32 { return treeLinks(n.p, n.ch, k.conn.Src).head }

// upward reports whether a connection leads up, and checks its place among those of its lower rank, which
// is the same at all nodes: what one end uses is what the other does.
func (n *treeNode) upward(k *fifo[value]) bool {
	c, way, lower := n.p.Comm, 0, k.conn.Src
	up := n.parent[c.NodeOf[k.conn.Src]] == c.NodeOf[k.conn.Dst]
	if !up {
		way, lower = 1, k.conn.Dst
	}
	per := n.p.ConnsPerRank()
	place := 1 + k.conn.ID - ((n.ch-int32(n.p.Split.ChannelLo))*int32(c.NRanks)+lower)*per
	if n.place[way] == 0 {
		n.place[way] = place
	}
	if place != n.place[way] || treeLinks(n.p, n.ch, lower).up != k.conn.Src+k.conn.Dst-lower {
		n.err = n.wrong(k, "is not the connection of this way")
	}
	return up
}

// holds is what data of a way is: sums of a subtree, or complete ones.
func (n *treeNode) holds(sums int32, up bool) (set int32, post bool) {
	if up {
		return sums, false
	}
	return n.m.all, n.p.Req.Op == coll.Avg
}

// fills puts the next chunk from another node into a connection, if that node has it by then.
func (n *treeNode) fills(k *fifo[value]) bool {
	if n.inside(k) || n.p.Comm.NodeOf[k.conn.Src] == n.node {
		return false
	}
	head, up := n.head(k), n.upward(k)
	i, all := n.done[k.conn.ID], n.carried[head]
	if !up {
		n.down[head] = k.conn.ID
	}
	if i >= len(all) || !up && i >= n.sent[head] || k.posted+all[i].steps > k.released+plan.FIFOSteps {
		return false
	}
	below := slices.Index(n.kids, n.p.Comm.NodeOf[k.conn.Src])
	set, post := n.holds(int32(len(n.m.ranks)+below), up)
	slot := &k.slots[k.posted%plan.FIFOSteps]
	for _, pc := range all[i].pieces {
		if pc.val != nil {
			pc.val = value{{n: pc.val[0].n, off: pc.val[0].off, set: set, post: post}}
		}
		*slot = append(*slot, pc)
	}
	k.posted += all[i].steps
	n.done[k.conn.ID]++
	return true
}

// takes compares what was sent to another node with what that node expects, or notes it.
func (n *treeNode) takes(k *fifo[value]) error {
	if n.inside(k) {
		return nil
	}
	head, up := n.head(k), n.upward(k)
	set, post := n.holds(n.sums, up)
	got := carried{steps: k.posted - k.released}
	for ; k.released < k.posted; k.released++ {
		slot := &k.slots[k.released%plan.FIFOSteps]
		got.pieces, *slot = append(got.pieces, *slot...), nil
	}
	for j := range got.pieces {
		pc := &got.pieces[j]
		var whole value // in one piece
		for _, s := range pc.val {
			switch {
			case s.set != set || s.post != post || whole != nil && s.off != whole[0].off+whole[0].n:
				return n.wrong(k, fmt.Sprintf("byte %d holds ranks %s of its node (scaled: %t)", s.off,
					n.m.sets.members(s.set), s.post))
			case whole == nil:
				whole = value{{n: s.n, off: s.off}}
			default:
				whole[0].n += s.n
			}
		}
		pc.val = whole
	}
	i := n.done[k.conn.ID]
	if up && n.node == n.reps[0] {
		n.carried[head] = append(n.carried[head], got)
	}
	if all := n.carried[head]; i >= len(all) || !same(&got, &all[i]) {
		return n.wrong(k, fmt.Sprintf("chunk %d is not that of other nodes", i))
	}
	if n.done[k.conn.ID]++; up {
		n.sent[head]++
		if id, ok := n.down[head]; ok {
			return n.c.wake(n.c.fifo(id).receiver, id)
		}
	}
	return n.err
}

// same reports whether two chunks are of the same bytes.
func same(a, b *carried) bool {
	return a.steps == b.steps && slices.EqualFunc(a.pieces, b.pieces, func(a, b piece[value]) bool {
		return a.off == b.off && a.bytes == b.bytes && slices.Equal(a.val, b.val)
	})
}
