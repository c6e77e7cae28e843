package fold

import (
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/host"
)

// position is a node's place in a tree over nodes: how far from its deepest leaf and
// from the root, with how many children, and below which GPU of its parent's chain: a parent
// sends to its children from two GPUs, one after the other.
type position struct{ height, depth, kids, below int32 }

// positions are a node's places in the tree of a channel and in the other one.
// A node that is like no other has its number + 1 in alone, one with a straggler the
// rank + 1.
type positions struct {
	own, other position
	alone      int32
}

// positionsIn finds every node's position, and its children in order.
func positionsIn(parent []int32) ([]position, [][]int32) {
	out := make([]position, len(parent))
	kids := make([][]int32, len(parent))
	var order []int32
	for n, up := range parent {
		if up < 0 {
			order = append(order, int32(n))
			continue
		}
		kids[up] = append(kids[up], int32(n))
	}
	for i := 0; i < len(order); i++ {
		for _, k := range kids[order[i]] {
			out[k].depth = out[order[i]].depth + 1
			order = append(order, k)
		}
	}
	for _, n := range slices.Backward(order) {
		out[n].kids = int32(len(kids[n]))
		for _, k := range kids[n] {
			out[n].height = max(out[n].height, out[k].height+1)
		}
	}
	return out, kids
}

// nearSymmetry takes nodes together that have equal positions in both trees: by height, depth
// and number of children, of which there are O(log² n), or by height and children alone.
// It is near, not exact: nodes of one kind have children and parents of several, of which
// only the representative's count, and only links of representatives' nodes carry
// anything.
func (t *trees) nearSymmetry(depths bool) *symmetry {
	p, c := t.p, t.p.Comm
	s := &symmetry{home: nodes(c), margin: Within5,
		approximation: "nodes of equal height and depth in both trees are treated as equivalent"}
	switch {
	case t.slow != nil:
		s.margin = Within15
	case !t.mirrored() && !t.turned():
		s.margin = Within10
	}
	if !depths { // seen to add, of 13 numbers of nodes from 67 to 12,800, 3.2 % of even ones, 8.5 of odd ones
		s.margin += Within5
		s.approximation = "nodes of equal height in both trees are treated as equivalent"
	}
	places := int32(c.MaxLocalRanks)
	if p.Req.Algo != coll.Tree {
		places = 1
		t.mergeHeads(s)
		s.few = false
	}
	sets := t.sets(s)
	for n := range s.home {
		s.home[n] = -1
	}
	s.of = make([][]int32, len(t.tree))
	for _, channels := range sets {
		s.addPositions(t, channels, places, depths)
	}
	return s.compact()
}

// turned reports whether proxy threads serve a node's channels in turns whose order differs between two nodes
// that have each other's places in the trees: of an odd number of nodes. Treated as one, both waited for too
// little: NVLSTree of 1 MiB came out 12 % too short over 65 DGX H100 and 26 % over 109 two-tray GB200, apart
// they are within 2.4 % (33 to 109 nodes, 64 KiB to 256 MiB).
func (t *trees) turned() bool { return !t.mirrored() && host.Staggers(t.p) }

// sets lists the channels that are taken together: all, but where those of one have other chunks, and where
// threads take turns (turned) those of either tree; and where threads serve unequally many, as of 9
// channels over 8 GPUs: TREE/LL of 51,130 bytes over 82 two-tray GB200 came out 12 % too short. Fewer
// bytes may be cut into smaller chunks, of which there are more: of TREE/LL128 of 9,980,946 bytes over 102
// two-tray GB200 the last of 16 channels has 31 of 17,280 bytes, the others 19 of 34,560. Represented by
// these it came out 31 % too short. Apart are then channels with other chunks, those that share proxy threads
// with them, and both trees: a node's place in one is no longer equal to another's in the other. A slow port
// is on one channel, which represents all.
func (t *trees) sets(s *symmetry) (out [][]int32) {
	type kind struct {
		tree int32
		of   [2][3]bool // which chunks a channel has, and those that share its threads
		// beside is how many share its threads
		beside int
	}
	parts := [3]*plan.Part{&t.p.Split.Lo, &t.p.Split.Mid, &t.p.Split.Hi}
	chunk := func(k int) int {
		size := parts[partOf(t.p, k)].ChunkSize
		return slices.IndexFunc(parts[:], func(o *plan.Part) bool { return o.ChunkSize == size })
	}
	kinds, threads := make([]kind, len(t.tree)), make([][]int32, len(t.tree))
	apart := t.worst == nil && slices.ContainsFunc(parts[1:], func(o *plan.Part) bool {
		return o.ChunkSize != parts[0].ChunkSize
	})
	for k := range t.tree {
		threads[k] = s.threads(t.p, int32(k))
		for j := range k {
			if slices.ContainsFunc(threads[k], func(r int32) bool { return slices.Contains(threads[j], r) }) {
				kinds[k].beside, kinds[j].beside = kinds[k].beside+1, kinds[j].beside+1
				kinds[k].of[1][chunk(j)], kinds[j].of[1][chunk(k)] = true, true
			}
		}
		kinds[k].of[0][chunk(k)] = true
	}
	uneven := t.worst == nil && slices.ContainsFunc(kinds, func(o kind) bool {
		return o.beside != kinds[0].beside
	})
	for k := range t.tree {
		if !uneven {
			kinds[k].beside = 0
		}
		if apart || uneven || t.turned() {
			kinds[k].tree = t.tree[k]
		}
		if !apart {
			kinds[k].of = kinds[0].of
		}
	}
	for k := range t.tree {
		if at := slices.Index(kinds, kinds[k]); at < k {
			i := slices.IndexFunc(out, func(set []int32) bool { return set[0] == int32(at) })
			out[i] = append(out[i], int32(k))
			continue
		}
		out = append(out, []int32{int32(k)})
	}
	return out
}

// addPositions adds the parts of a set of channels, of nodes of so many places each.
func (s *symmetry) addPositions(t *trees, channels []int32, places int32, depths bool) {
	c, first, base := t.p.Comm, make([]int32, len(t.parent)), int32(len(s.reps)) // first: by tree, or -1
	for tree := range first {
		first[tree] = -1
		if i := slices.IndexFunc(channels, func(k int32) bool { return int(t.tree[k]) == tree }); i >= 0 {
			first[tree] = channels[i]
			if t.worst != nil {
				first[tree] = t.worst[tree]
			}
		}
	}
	kind, reps := t.kindsOfPositions(first, depths)
	for range int32(len(reps)) * places {
		s.reps = append(s.reps, part{rank: -1})
	}
	for _, k := range channels {
		of := make([]int32, c.NRanks)
		ch, tree := int32(t.p.Split.ChannelLo)+k, t.tree[k]
		for r := range of {
			node := c.NodeOf[r]
			id := kind[tree][node]
			of[r] = base + id*places + t.place[k][r]%places
			if first[tree] == k && reps[id] == (part{tree, node}) &&
				(s.heads == 0 || int32(r) == t.representative(ch, node)) {
				s.reps[of[r]] = part{ch, int32(r)}
				s.home[node] = node
			}
		}
		s.of[k] = of
	}
}

// representative is the rank that represents all heads of a node: its straggler,
// where it has one, as no head is done before it has that one's data.
func (t *trees) representative(ch, node int32) int32 {
	if t.slow != nil && t.slow[node] > 0 {
		return t.slow[node] - 1
	}
	for _, r := range t.p.Comm.NodeRanks[node] {
		if t.p.Comm.NVLS[ch].HeadIndex[r] == 0 {
			return r
		}
	}
	return -1
}

// kindsOfPositions numbers the pairs of positions in those trees that have a first channel: kind by
// tree and node, and for each kind a tree and node that represents it. Representatives are found from
// the root of the first of them on, so that as far as possible they are each other's parents. Without
// depths, positions that differ in these are one kind, which the deepest represents: so
// the longest way from a leaf to the root stays as long as it is.
func (t *trees) kindsOfPositions(first []int32, depths bool) (kind [][]int32, reps []part) {
	all := make([][]position, len(t.parent))
	kids := make([][][]int32, len(t.parent))
	for tree, parent := range t.parent {
		all[tree], kids[tree] = positionsIn(parent)
		for n := range all[tree] {
			if t.below != nil {
				all[tree][n].below = t.below[tree][n]
			}
		}
	}
	known := map[positions]int32{}
	classOf := func(tree, node int32) (id int32, fresh bool) {
		key := positions{own: all[tree][node]}
		switch {
		case t.alone != nil && t.alone[node]:
			key.alone = node + 1
		case t.slow != nil:
			key.alone = t.slow[node]
		}
		if len(all) == 2 {
			key.other = all[1-tree][node]
		}
		if !depths {
			key.own.depth, key.other.depth = 0, 0
		}
		id, ok := known[key]
		switch {
		case !ok:
			id = int32(len(reps))
			known[key] = id
			reps = append(reps, part{tree, node})
		case !depths && all[tree][node].depth > all[reps[id].channel][reps[id].rank].depth:
			reps[id] = part{tree, node}
		}
		return id, !ok
	}
	tree := int32(slices.IndexFunc(first, func(k int32) bool { return k >= 0 }))
	root := int32(slices.Index(t.parent[tree], -1))
	classOf(tree, root)
	for queue := []int32{root}; len(queue) > 0; queue = queue[1:] {
		for _, k := range kids[tree][queue[0]] {
			if _, fresh := classOf(tree, k); fresh {
				queue = append(queue, k)
			}
		}
	}
	for tree := range t.parent {
		if first[tree] < 0 {
			kind = append(kind, nil)
			continue
		}
		of := make([]int32, len(t.parent[tree]))
		for n := range of {
			of[n], _ = classOf(int32(tree), int32(n))
		}
		kind = append(kind, of)
	}
	return kind, reps
}
