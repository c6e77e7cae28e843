package check

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// A chain along a ring, broadcast's from the root on or reduce's up to it, is proved by
// what its ranks do in their j-th op: the first sends a chunk, those between pass the same
// one on, with their contribution or a copy, and the last stores it. So after every op a
// connection has one step more and one less, and none waits for a rank behind it. That
// all ranks between do the same is seen on those that are drawn.

// isChain reports whether a plan is one of chains along rings.
func isChain(p *plan.Plan) bool {
	f := p.Req.Func
	return p.Req.Algo == coll.Ring && (f == coll.Broadcast || f == coll.Reduce) && p.Comm.NRanks > 1 &&
		p.ConnsPerRank() == 1 && !p.Split.Striped
}

// ofChain proves a broadcast or reduce by chains, from the programs of the first and the
// last rank of each, and of others.
func ofChain(p *plan.Plan, others []int32) error {
	root := p.Req.Root
	w := &wave{p: p, n: int64(p.Comm.NRanks), shared: p.Layout(root).Shared, f: p.Req.Func}
	for ch := p.Split.ChannelLo; ch <= p.Split.ChannelHi; ch++ {
		ring := p.Comm.Channels[ch].Ring
		w.ranks = append(w.ranks[:0], root, ring[root].Prev)
		if w.f == coll.Reduce {
			w.ranks = append(w.ranks[:0], ring[root].Next, root)
		}
		for _, r := range others {
			if !slices.Contains(w.ranks[:2], r) {
				w.ranks = append(w.ranks, r)
			}
		}
		if err := w.alongChain(int32(ch)); err != nil {
			return err
		}
	}
	if all := units.Bytes(p.Req.Count) * p.Req.Type.Size(); w.next != all {
		return &Error{0, -1, -1, -1, fmt.Sprintf("channels do %d bytes of %d", w.next, all)}
	}
	return nil
}

// alongChain proves one chain, whose first and last ranks are the first two of ranks.
func (w *wave) alongChain(ch int32) error {
	w.conns = w.conns[:0]
	for range w.ranks {
		w.conns = append(w.conns, [2]plan.Conn{{ID: -1}, {ID: -1}})
	}
	if err := w.enter(ch); err != nil {
		return err
	}
	if w.progs[0].OpSteps() > plan.FIFOSteps {
		return w.fault(0, "takes more steps than a FIFO has")
	}
	var op plan.Op
	for w.j = 0; w.cursors[0].Next(&w.op); w.j++ {
		if w.j%(1<<10) == 0 {
			if err := w.p.Req.Params.Poll(); err != nil {
				return err
			}
		}
		if err := w.passes(0, &w.op); err != nil {
			return err
		}
		for i := 1; i < len(w.ranks); i++ {
			if !w.cursors[i].Next(&op) {
				return w.fault(i, "has fewer ops than rank %d", w.ranks[0])
			}
			if err := w.passes(i, &op); err != nil {
				return err
			}
		}
		w.next += w.op.Bytes
	}
	for i := 1; i < len(w.ranks); i++ {
		if w.cursors[i].Next(&op) {
			return w.fault(i, "has more ops than rank %d", w.ranks[0])
		}
	}
	return nil
}

// deed returns the primitives that every op of the i-th rank of the chain must have: the first rank only
// sends, the last only receives, the others receive and send on, and reduce where the operation does.
func (w *wave) deed(i int) plan.Do {
	first, last := i == 0, i == 1
	switch {
	case w.f == coll.Reduce && first, first && w.shared:
		return plan.Send
	case first:
		return plan.Copy | plan.Send
	case w.f == coll.Reduce && last:
		return plan.Recv | plan.Reduce | plan.Copy | plan.PostOp
	case w.f == coll.Reduce:
		return plan.Recv | plan.Reduce | plan.Send
	case last:
		return plan.Recv | plan.Copy
	}
	return plan.Recv | plan.Copy | plan.Send
}

// passes checks that an op passes on the chunk that lies next, along the ring.
func (w *wave) passes(i int, op *plan.Op) error {
	pr := &w.progs[i]
	switch {
	case op.Rank != w.ranks[i] || op.Channel != pr.Channel || op.Group != pr.Group || op.RecvAhead != 0 ||
		op.SendAhead != 0 || op.RecvOff != 0 || op.SendOff != 0:
		return w.fault(i, "is not the op of a chain")
	case op.Do != w.deed(i):
		return w.fault(i, "does %v, should %v", op.Do, w.deed(i))
	case int64(op.Step) != int64(w.j)*int64(pr.OpSteps()):
		return w.fault(i, "says it is at step %d, but is at %d", op.Step, int64(w.j)*int64(pr.OpSteps()))
	case op.Bytes < 0 || op.Bytes != w.op.Bytes:
		return w.fault(i, "moves %d bytes of a chunk of %d", op.Bytes, w.op.Bytes)
	}
	reads, writes := plan.NoBuffer, plan.NoBuffer
	if w.f == coll.Reduce || i == 0 {
		reads = plan.Input
	}
	if op.Do&plan.Copy != 0 {
		writes = plan.Output
	}
	if op.Src.Buf != reads || reads != plan.NoBuffer && op.Src.Off != w.next {
		return w.fault(i, "reads %v, not its chunk at byte %d", op.Src, w.next)
	}
	if op.Dst.Buf != writes || writes != plan.NoBuffer && op.Dst.Off != w.next {
		return w.fault(i, "writes %v, not its chunk at byte %d", op.Dst, w.next)
	}
	return w.ends(i, w.ranks[i], op)
}
