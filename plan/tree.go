package plan

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
)

// Most children of a rank in a tree, and of the root (device.h:176).
const (
	treeArity    = 3
	treeArityTop = 2
)

// checkTrees makes sure that parents and children agree.
func (p *Plan) checkTrees() error {
	n := int32(p.Comm.NRanks)
	for ch := p.Split.ChannelLo; ch <= p.Split.ChannelHi; ch++ {
		t := p.Comm.Channels[ch].Tree
		bad := func(r int32, what string) error {
			return &RequestError{"Comm", fmt.Sprintf("channel %d: tree of rank %d: %s", ch, r, what)}
		}
		if len(t) != int(n) {
			return &RequestError{"Comm", fmt.Sprintf("channel %d has a tree of %d ranks, not %d", ch, len(t), n)}
		}
		for r := range n {
			up := t[r].Up
			switch {
			case up < -1 || up >= n:
				return bad(r, "parent is no rank")
			case up >= 0 && childIndex(&t[up], r) < 0:
				return bad(r, "its parent does not know it")
			case up < 0 && t[r].Down[0] < 0:
				return bad(r, "neither parent nor child")
			case up < 0 && t[r].Down[treeArityTop] >= 0:
				return bad(r, "a root has at most two children")
			}
			for _, d := range children(&t[r]) {
				if d >= n || t[d].Up != r {
					return bad(r, "a child has another parent")
				}
			}
		}
	}
	return nil
}

// children returns the children of a rank, up to the first -1 as NCCL does.
func children(t *connect.TreeLinks) []int32 {
	n := 0
	for n < treeArity && t.Down[n] >= 0 {
		n++
	}
	return t.Down[:n]
}

func childIndex(t *connect.TreeLinks, rank int32) int {
	for i, d := range children(t) {
		if d == rank {
			return i
		}
	}
	return -1
}

// Connections of a tree: id 2r is from rank r up to its parent, 2r+1 from the
// parent down to r.
func (p *Plan) treeConn(c *Conn) {
	n := int32(p.Comm.NRanks)
	i := c.ID / (2 * n)
	r, down := c.ID%(2*n)/2, c.ID%2 == 1
	c.Channel, c.Kind = int32(p.Split.ChannelLo)+i, connect.TreeRoute
	up := p.Comm.Channels[c.Channel].Tree[r].Up
	switch {
	case up < 0:
	case down:
		c.Src, c.Dst = up, r
	default:
		c.Src, c.Dst = r, up
	}
}

// treePrograms: the root does all in one group; other ranks reduce upwards and
// broadcast downwards in two (all_reduce.h:161-245).
func (p *Plan) treePrograms(dst []Program, base Program) []Program {
	if p.Comm.Channels[base.Channel].Tree[base.Rank].Up < 0 {
		base.Role = RoleTreeRoot
		return append(dst, base.withWorkers(true))
	}
	all := base.Threads
	up := all * 7 / (10 * WarpSize) * WarpSize
	if base.Proto == coll.Simple {
		up = all / 2
		if up >= 256 {
			up += 64
		}
	}
	reduce, bcast := base, base
	reduce.Role, reduce.Threads = RoleTreeReduce, up
	bcast.Role, bcast.Threads, bcast.Group = RoleTreeBroadcast, all-up, 1
	// The spare warp goes with the kind of primitive, so leaves spare it too.
	return append(dst, reduce.withWorkers(true), bcast.withWorkers(true))
}

func (c *Cursor) openTree() {
	n := int32(c.p.Comm.NRanks)
	base := (c.pr.Channel - int32(c.p.Split.ChannelLo)) * n * 2
	t := &c.p.Comm.Channels[c.pr.Channel].Tree[c.pr.Rank]
	c.from, c.to = c.fromBuf[:0], c.toBuf[:0]
	kids := children(t)
	switch c.pr.Role {
	case RoleTreeReduce, RoleTreeRoot:
		for _, d := range kids {
			c.from = append(c.from, base+2*d)
		}
		if t.Up >= 0 {
			c.to = append(c.to, base+2*c.pr.Rank)
		}
	}
	switch c.pr.Role {
	case RoleTreeBroadcast, RoleTreeRoot:
		if t.Up >= 0 {
			c.from = append(c.from, base+2*c.pr.Rank+1)
		}
		for _, d := range kids {
			c.to = append(c.to, base+2*d+1)
		}
	}
	c.next = (*Cursor).nextTree
}

func (c *Cursor) nextTree(op *Op) bool {
	if c.off >= c.total {
		return false
	}
	bytes := min(c.chunk, c.total-c.off)
	place := c.grid + c.off
	op.Chunk = c.turn
	switch {
	case c.pr.Role == RoleTreeRoot:
		c.emit(op, Recv|Reduce|Copy|Send|PostOp, bytes)
		op.Src, op.Dst = input(place), output(place)
	case c.pr.Role == RoleTreeReduce && len(c.from) == 0:
		c.emit(op, Send, bytes)
		op.Src = input(place)
	case c.pr.Role == RoleTreeReduce:
		c.emit(op, Recv|Reduce|Send, bytes)
		op.Src = input(place)
	case len(c.to) == 0:
		c.emit(op, Recv|Copy, bytes)
		op.Dst = output(place)
	default:
		c.emit(op, Recv|Copy|Send, bytes)
		op.Dst = output(place)
	}
	c.off += c.chunk
	c.turn++
	return true
}
