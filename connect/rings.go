package connect

import (
	"slices"

	"github.com/simccl/simccl/search"
)

// joiner carries what the steps of Join share: n channels are found by search,
// before any is copied.
type joiner struct {
	c *Layout
	p *Params
	n int
}

// intra returns the local order of a node's channel.
func (j *joiner) intra(node, id, channel int) ([]int, int32, error) {
	d := &j.c.Domains[node]
	g := d.Graphs[id]
	if g == nil || channel >= len(g.Intra) || len(g.Intra[channel]) != len(j.c.NodeRanks[node]) {
		return nil, 0, fail("node %d: graph %d has no channel %d over all its %d GPUs", node, id, channel,
			len(j.c.NodeRanks[node]))
	}
	for _, r := range g.Intra[channel] {
		if at := d.First + int32(r); at < 0 || int(at) >= j.c.NRanks || j.c.NodeOf[at] != int32(node) {
			return nil, 0, fail("node %d: graph %d channel %d names local rank %d, which is not there", node,
				id, channel, r)
		}
	}
	return g.Intra[channel], d.First, nil
}

// ringChannel is the searched channel that a node contributes to ring c. Odd
// nodes that may change NICs swap neighbouring channels, so that a ring leaves
// one node by the rail on which it enters the next (connect.cc:385).
func (j *joiner) ringChannel(node, c int) int {
	g := j.c.Domains[node].Graphs[search.RingID]
	if (g.CrossNIC == 2 || g.CrossNIC != 0 && j.p.Rules.Connect.SwapAnyCross) && j.n%2 == 0 && node%2 == 1 {
		return c ^ 1
	}
	return c
}

// rings joins the nodes' paths into rings: the last GPU of a node sends to the
// first of the next (connect.cc:95).
func (j *joiner) rings() error {
	c := j.c
	c.Channels = make([]Channel, j.n, 2*j.n)
	for ch := range c.Channels {
		if err := j.p.poll(); err != nil {
			return err
		}
		links := make([]RingLinks, c.NRanks)
		last, first := int32(none), int32(none)
		for node := range c.Domains {
			order, base, err := j.intra(node, search.RingID, j.ringChannel(node, ch))
			if err != nil {
				return err
			}
			for _, local := range order {
				r := base + int32(local)
				if last == none {
					first = r
				} else {
					links[last].Next, links[r].Prev = r, last
				}
				last = r
			}
		}
		links[last].Next, links[first].Prev = first, last
		c.Channels[ch] = Channel{Ring: links}
		if err := c.Channels[ch].walk(ch); err != nil {
			return err
		}
	}
	c.Channels = append(c.Channels, c.Channels...)
	return nil
}

// walk lists the ring from rank 0 and proves that it meets every rank
// (rings.cc:32).
func (ch *Channel) walk(id int) error {
	n := len(ch.Ring)
	ch.Order, ch.Pos = make([]int32, n), make([]int32, n)
	for i := range ch.Pos {
		ch.Pos[i] = none
	}
	r := int32(0)
	for i := range ch.Order {
		if ch.Pos[r] != none {
			return fail("ring %d comes back to rank %d after %d of %d ranks", id, r, i, n)
		}
		ch.Order[i], ch.Pos[r] = r, int32(i)
		r = ch.Ring[r].Next
	}
	return nil
}

// treeEnds are the three ranks of a node's channel that connect to other nodes:
// the one that has the parent, and those that have the parent's first and
// second child (connect.cc:49).
type treeEnds struct{ parent, child0, child1 int32 }

func endsOf(order []int, base int32, p search.Pattern) treeEnds {
	at := func(i int) int32 { return base + int32(order[min(i, len(order)-1)]) }
	e := treeEnds{parent: at(0), child0: at(1), child1: at(0)}
	if p == search.TreePattern {
		e.child0 = at(0)
	}
	if p == search.SplitTree {
		e.child1 = at(1)
	}
	return e
}

// trees joins the nodes' chains into double binary trees: channel c has the
// first tree, channel c+n the second (connect.cc:137).
func (j *joiner) trees() error {
	c := j.c
	d0 := &c.Domains[0]
	switch most := c.Rules.Connect.TreeHalf(d0.System.Arch()); {
	case d0.Preset != nil && d0.Preset.Rail:
		return j.railTrees()
	case most > 0 && j.n > most:
		return j.halfTrees()
	}
	for ch := range j.n {
		if err := j.p.poll(); err != nil {
			return err
		}
		chain, ends, err := j.chains(func(int) int { return ch })
		if err != nil {
			return err
		}
		second := append([]TreeLinks(nil), chain...)
		for node := range c.Domains {
			t0, t1 := doubleTree(c.NNodes, node)
			if !link(chain, ends, node, t0) || !link(second, ends, node, t1) {
				return fail("tree %d: a rank of node %d has more than 3 children", ch, node)
			}
		}
		c.Channels[ch].Tree, c.Channels[ch+j.n].Tree = chain, second
	}
	c.Joined = slices.Clone(c.Channels)
	return nil
}

// TreeEnds returns the ranks of a node that, in the trees of a searched
// channel, have the parent, the first child and the second child in other
// nodes.
func (c *Layout) TreeEnds(node, channel int) [3]int32 {
	d := &c.Domains[node]
	g := d.Graphs[search.TreeID]
	e := endsOf(g.Intra[channel], d.First, g.Pattern)
	return [3]int32{e.parent, e.child0, e.child1}
}

// link joins a node to its parent and children in one tree.
func link(tree []TreeLinks, ends []treeEnds, node int, t treeNode) bool {
	e := ends[node]
	if t.up != none {
		up := ends[t.up].child0
		if t.second {
			up = ends[t.up].child1
		}
		tree[e.parent].Up = up
	}
	ok := true
	for i, from := range [2]int32{e.child0, e.child1} {
		if t.down[i] != none {
			ok = tree[from].add(ends[t.down[i]].parent) && ok
		}
	}
	return ok
}

// add appends a child; false where all places are taken.
func (t *TreeLinks) add(child int32) bool {
	for i, d := range t.Down {
		if d == none {
			t.Down[i] = child
			return true
		}
	}
	return false
}
