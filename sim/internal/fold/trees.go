package fold

import (
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/param"
)

// trees are the channels' trees over nodes, apart from what happens within a node.
// NCCL has two: in the second, inner nodes of the first are leaves. Example of four
// nodes: in the first tree 0 is the root, above 2, which is above 1 and 3; in the
// second 3 is the root, above 1, which is above 0 and 2: node 3-i of the second is
// what node i of the first is.
type trees struct {
	p      *plan.Plan
	parent [][]int32 // tree, node → node above it, -1 at the root
	tree   []int32   // channel of the split → tree
	place  [][]int32 // channel of the split, rank → its place in the node's chain
	below  [][]int32 // tree, node → place of the rank above it in that one's chain; nil: all are below one
	// node → its slowest straggler, or the user of its slow port, + 1, 0 without; nil where there are none
	slow  []int32
	alone []bool  // node → it is like no other; nil: none is but those in slow
	worst []int32 // tree → channel of the split that represents its others, nil: the first
}

// treesOf examines a plan's trees; nil where its nodes do not form any, or
// where a node's ranks are no chain.
func treesOf(p *plan.Plan) *trees {
	t := &trees{p: p}
	for ch := p.Split.ChannelLo; ch <= p.Split.ChannelHi; ch++ {
		parent, ok := t.parents(int32(ch))
		if !ok {
			return nil
		}
		place := t.places(int32(ch))
		if place == nil {
			return nil
		}
		k := slices.IndexFunc(t.parent, func(o []int32) bool { return slices.Equal(o, parent) })
		if k < 0 {
			k = len(t.parent)
			t.parent = append(t.parent, parent)
			if p.Req.Algo == coll.Tree { // all below a head of NVLS are below that rank
				t.below = append(t.below, t.belowOn(int32(ch), place))
			}
		}
		t.tree, t.place = append(t.tree, int32(k)), append(t.place, place)
	}
	if len(t.parent) > 2 {
		return nil
	}
	return t
}

// above returns the rank above a rank on a channel, -1 where there is none.
func (t *trees) above(ch, rank int32) int32 {
	switch t.p.Req.Algo {
	case coll.Tree:
		return t.p.Comm.Channels[ch].Tree[rank].Up
	case coll.NVLSTree:
		return t.p.Comm.NVLS[ch].TreeUp[rank]
	}
	return -1
}

// parents returns every node's parent on a channel, -1 at the root; ok is
// false where a node has two, or there is not one root.
func (t *trees) parents(ch int32) (parent []int32, ok bool) {
	c := t.p.Comm
	parent = make([]int32, c.NNodes)
	for n := range parent {
		parent[n] = -1
	}
	for r := range int32(c.NRanks) {
		up := t.above(ch, r)
		if up < 0 || c.NodeOf[up] == c.NodeOf[r] {
			continue
		}
		if was := parent[c.NodeOf[r]]; was >= 0 && was != c.NodeOf[up] {
			return nil, false
		}
		parent[c.NodeOf[r]] = c.NodeOf[up]
	}
	roots := 0
	for _, up := range parent {
		if up < 0 {
			roots++
		}
	}
	return parent, roots == 1
}

// belowOn returns the place of the rank above every node on a channel, 0 of the root.
func (t *trees) belowOn(ch int32, place []int32) []int32 {
	out := make([]int32, t.p.Comm.NNodes)
	for r := range place {
		if up := t.above(ch, int32(r)); up >= 0 && t.p.Comm.NodeOf[up] != t.p.Comm.NodeOf[r] {
			out[t.p.Comm.NodeOf[r]] = place[up]
		}
	}
	return out
}

// places returns each rank's index in its node's chain, counted from the top; with NVLS its index in the
// node. nil where the ranks of a node are no chain.
func (t *trees) places(ch int32) []int32 {
	c := t.p.Comm
	if t.p.Req.Algo != coll.Tree {
		return c.LocalRank
	}
	place := make([]int32, c.NRanks)
	for r := range int32(c.NRanks) {
		for at := t.above(ch, r); at >= 0 && c.NodeOf[at] == c.NodeOf[r]; at = t.above(ch, at) {
			if place[r]++; int(place[r]) >= len(c.NodeRanks[c.NodeOf[r]]) {
				return nil
			}
		}
	}
	for _, ranks := range c.NodeRanks {
		var seen uint64
		for _, r := range ranks {
			if place[r] > 63 || seen>>place[r]&1 != 0 {
				return nil
			}
			seen |= 1 << place[r]
		}
	}
	return place
}

// mirrored reports whether node n-1-i of the second tree is what node i of the
// first is (trees.cc:91, an even number of nodes).
func (t *trees) mirrored() bool {
	if len(t.parent) != 2 {
		return false
	}
	n := int32(len(t.parent[0]))
	for i, up := range t.parent[0] {
		want := int32(-1)
		if up >= 0 {
			want = n - 1 - up
		}
		if t.parent[1][n-1-int32(i)] != want {
			return false
		}
	}
	return true
}

// first returns the channel of the split that represents those that run on a tree:
// the first, or one that a slow port holds up.
func (t *trees) first(tree int32) int32 {
	if t.worst != nil {
		return t.worst[tree]
	}
	return int32(slices.Index(t.tree, tree))
}

// headsEquivalent reports whether the heads of an NVLS channel can be merged.
func (t *trees) headsEquivalent() bool {
	p := t.p
	heads := int64(len(p.Comm.NVLS[p.Split.ChannelLo].Heads))
	return eachPart(p, func(pr *plan.Program) bool {
		return pr.Role == plan.RoleScatter || pr.Role == plan.RoleGather
	},
		func(pr *plan.Program) bool { return equalChunks(p, pr, heads) })
}

// mergeHeads has the heads of each NVLS channel represented by the first. Where their chunks differ, they do
// so in the last iteration alone, of which the first has the most.
func (t *trees) mergeHeads(s *symmetry) {
	s.heads = int32(len(t.p.Comm.NVLS[t.p.Split.ChannelLo].Heads))
	if t.headsEquivalent() {
		return
	}
	s.equivalent, s.unequal, s.few = false, false, true
	s.margin += Within3
	if s.approximation != "" {
		s.approximation += ", "
	}
	s.approximation += "heads are treated as equivalent, though their last chunks differ"
}

// propose proposes quotients: by channels, heads and mirrored nodes, by
// channels alone, and the near one. Faults leave no two nodes equal, and none
// of the ranks of a node. Slow ports touch some channels only, which in the near one
// represent the others.
func (t *trees) propose(x *Config, add func(*symmetry)) {
	nvls := t.p.Req.Algo != coll.Tree
	ports := slices.ContainsFunc(x.Faults, func(f param.Fault) bool { return f.Rank < 0 })
	if x.Slow == nil && !ports {
		if t.mirrored() {
			add(t.symmetry(true, true))
		}
		add(t.symmetry(true, false))
		if nvls && t.mirrored() {
			add(t.symmetry(false, true))
		}
	}
	if nvls {
		add(t.symmetry(false, false))
	}
	if !ports {
		t.stragglers(x.Slow)
	} else if x.Slow != nil || !t.slowPorts(x) {
		return
	}
	add(t.nearSymmetry(true))
	if t.slow == nil { // where the number of nodes is a power of two the two are one
		add(t.nearSymmetry(false))
	}
}

// slowPorts notes which rank of each node has a port at fault, and which channel of
// each tree uses them all; false where there is no such channel, or where a node has
// several such ports.
func (t *trees) slowPorts(x *Config) bool {
	t.slow, t.worst = make([]int32, t.p.Comm.NNodes), make([]int32, len(t.parent))
	for tree := range t.worst {
		t.worst[tree] = -1
		for k, of := range t.tree {
			if int(of) == tree && t.worst[tree] < 0 && t.usesAll(x, int32(k)) {
				t.worst[tree] = int32(k)
			}
		}
		if t.worst[tree] < 0 {
			return false
		}
	}
	t.setApart()
	return true
}

// setApart notes the nodes at fault, those above them and those right below them in
// either tree: what is slow reaches all others through these.
func (t *trees) setApart() {
	t.alone = make([]bool, t.p.Comm.NNodes)
	for node, by := range t.slow {
		if by == 0 {
			continue
		}
		for _, parent := range t.parent {
			for n := int32(node); n >= 0; n = parent[n] {
				t.alone[n] = true
			}
			for n, up := range parent {
				t.alone[n] = t.alone[n] || up == int32(node)
			}
		}
	}
}

// usesAll reports whether a channel uses every port at fault, and notes by which ranks.
func (t *trees) usesAll(x *Config, k int32) bool {
	for i := range x.Faults {
		rank := portUser(t.p, k, &x.Faults[i])
		if rank < 0 {
			return false
		}
		was := &t.slow[t.p.Comm.NodeOf[rank]]
		if *was > 0 && *was != rank+1 && t.p.Req.Algo != coll.Tree {
			return false
		}
		*was = rank + 1
	}
	return true
}

// portUser is a rank of the node at fault whose connections on a channel of the split
// use the port; -1 where none does.
func portUser(p *plan.Plan, k int32, f *param.Fault) int32 {
	c, per := p.Comm, p.ConnsPerRank()
	uses := func(rank, net int32) bool { return c.HostOf[rank] == int32(f.Host) && net == int32(f.Net) }
	for r := range int32(c.NRanks) {
		for j := range per {
			pc := p.Conn((k*int32(c.NRanks)+r)*per + j)
			switch {
			case !between(&pc):
			case uses(pc.Src, pc.Route.SrcNet):
				return pc.Src
			case uses(pc.Dst, pc.Route.DstNet):
				return pc.Dst
			}
		}
	}
	return -1
}

// stragglers notes the slowest rank of every node.
func (t *trees) stragglers(slow []float64) {
	if slow == nil {
		return
	}
	t.slow = make([]int32, t.p.Comm.NNodes)
	for r, f := range slow {
		worst := &t.slow[t.p.Comm.NodeOf[r]]
		if f > 1 && (*worst == 0 || f > slow[*worst-1]) {
			*worst = int32(r) + 1
		}
	}
}

// symmetry takes channels of one tree together, that differ in where they
// enter a node, with mirror also the two trees, and with heads also the heads
// of an NVLS channel. Every node stays for itself.
func (t *trees) symmetry(heads, mirror bool) *symmetry {
	p, c := t.p, t.p.Comm
	s := &symmetry{home: nodes(c)}
	s.judge(p)
	places := int32(c.MaxLocalRanks)
	if p.Req.Algo != coll.Tree && heads {
		places = 1
		t.mergeHeads(s)
	}
	n := int32(c.NNodes)
	trees := int32(len(t.parent))
	if mirror {
		trees = 1
	}
	s.reps = make([]part, trees*n*places)
	for i := range s.reps {
		s.reps[i].rank = -1
	}
	for k, tree := range t.tree {
		of := make([]int32, c.NRanks)
		for r := range of {
			node, place := c.NodeOf[r], t.place[k][r]%places
			switch {
			case tree == 1 && mirror:
				node = n - 1 - node
			case tree == 1:
				node += n
			}
			of[r] = node*places + place
		}
		s.of = append(s.of, of)
		if t.first(tree) != int32(k) || tree >= trees {
			continue
		}
		ch := int32(p.Split.ChannelLo + k)
		for r := range of {
			if rep := &s.reps[of[r]]; rep.rank < 0 && (s.heads == 0 || c.NVLS[ch].HeadIndex[r] == 0) {
				*rep = part{ch, int32(r)}
			}
		}
	}
	return s.compact()
}

// compact drops places that no rank takes.
func (s *symmetry) compact() *symmetry {
	to := make([]int32, len(s.reps))
	kept := s.reps[:0]
	for i, rep := range s.reps {
		to[i] = -1
		if rep.rank >= 0 {
			to[i] = int32(len(kept))
			kept = append(kept, rep)
		}
	}
	s.reps = kept
	for _, of := range s.of {
		for r := range of {
			if of[r] = to[of[r]]; of[r] < 0 {
				return nil
			}
		}
	}
	return s
}
