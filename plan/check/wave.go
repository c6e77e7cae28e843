package check

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// A ring is proved by its turns: what the rank at a position does in its j-th op about
// a block, the next rank does in its j-th op about the next block. So a set of
// contributions is known by how many ranks before its holder it has, and one program
// shows all. That programs are such turns of each other is seen on ranks that are drawn.
//
// Example: of 4 ranks, the one at position 2 adds to block 0 in op 1 what position 1
// sent of it in op 0: in both, the block is as far behind the rank as the op says. The
// sum has 2 contributions, those of positions 1 and 2.

// turned is what a rank has sent: about a block so far from its position, the
// contributions of so many ranks up to itself, or that of the rank so far behind it.
type turned struct {
	iter, behind, ranks int64
	scaled              bool
}

// wave proves the rings of a plan, channel by channel.
type wave struct {
	p      *plan.Plan
	n      int64
	block  units.Bytes // of a rank, in the larger buffer
	shared bool        // buffers
	f      coll.Func

	channel *connect.Channel
	order   []int32
	pos     []int32
	ranks   []int32 // drawn
	cursors []plan.Cursor
	progs   []plan.Program
	op      plan.Op        // of the first drawn rank
	conns   [][2]plan.Conn // drawn rank → where it received and sent last

	next         units.Bytes // where what the channel does begins, and then its next iteration
	iter         int64
	off          []units.Bytes // block → its place in the iteration, or one for all; -1: unknown
	bytes        []units.Bytes
	copied       []bool // block → the first drawn rank has written it
	copies       int64
	queue        []turned // sent, not received yet
	sends, takes int64
	j            int32
}

// ofRing proves an all_reduce, all_gather or reduce_scatter by rings, from the programs
// of some of its ranks, or of all.
func ofRing(p *plan.Plan, ranks []int32) error {
	w := &wave{p: p, n: int64(p.Comm.NRanks), block: units.Bytes(p.Req.Count) * p.Req.Type.Size(),
		shared: p.Layout(0).Shared, f: p.Req.Func}
	w.ranks = ranks
	for range w.ranks {
		w.conns = append(w.conns, [2]plan.Conn{{ID: -1}, {ID: -1}})
	}
	blocks := 1
	if w.f == coll.AllReduce {
		blocks = p.Comm.NRanks
	}
	w.off, w.bytes, w.copied = make([]units.Bytes, blocks), make([]units.Bytes, blocks),
		make([]bool, p.Comm.NRanks)
	for ch := p.Split.ChannelLo; ch <= p.Split.ChannelHi; ch++ {
		if err := w.ofChannel(int32(ch)); err != nil {
			return err
		}
	}
	if w.next != w.block {
		return &Error{0, -1, -1, -1, fmt.Sprintf("channels do %d bytes of %d", w.next, w.block)}
	}
	return nil
}

// mostTurned is how many ops of drawn ranks are compared, where two ranks have no more.
const mostTurned = 4_000_000

// drawnWithin draws ranks with so many ops together, at least two.
func drawnWithin(p *plan.Plan, most int64) []int32 {
	ranks, ops := drawn(p.Comm.NRanks), int64(0)
	for _, pr := range p.Programs(0) {
		ops += p.NumOps(&pr)
	}
	return ranks[:max(min(2, len(ranks)), min(len(ranks), int(most/max(1, ops))))]
}

// fewDrawn are the ranks that drawn lists.
const fewDrawn = 6

// drawn lists some ranks: the first, the last and others that a hash draws.
func drawn(n int) []int32 { return drawnOf(n, fewDrawn) }

// drawnOf lists up to so many ranks, of which some may be equal.
func drawnOf(n, most int) []int32 {
	out := []int32{0}
	if n > 1 {
		out = append(out, int32(n-1))
	}
	for i := uint64(1); len(out) < most && i < uint64(most)+10; i++ {
		if r := int32(scramble(i) % uint64(n)); r > 0 && int(r) < n-1 {
			out = append(out, r)
		}
	}
	return out
}

func (w *wave) fault(i int, format string, args ...any) error {
	pr := &w.progs[i]
	return &Error{pr.Rank, pr.Channel, pr.Group, w.j, fmt.Sprintf(format, args...)}
}

// ofChannel proves one ring.
func (w *wave) ofChannel(ch int32) error {
	if err := w.enter(ch); err != nil {
		return err
	}
	w.iter, w.j, w.sends, w.takes, w.queue = -1, 0, 0, 0, w.queue[:0]
	var op plan.Op
	for w.cursors[0].Next(&w.op) {
		if w.j%(1<<12) == 0 {
			if err := w.p.Req.Params.Poll(); err != nil {
				return err
			}
		}
		if iter := int64(w.op.Chunk) / w.n; iter != w.iter {
			if err := w.endIteration(); err != nil {
				return err
			}
			w.iter = iter
		}
		if err := w.place(0, &w.op); err != nil {
			return err
		}
		for i := 1; i < len(w.ranks); i++ {
			if !w.cursors[i].Next(&op) {
				return w.fault(i, "has fewer ops than rank %d", w.ranks[0])
			}
			if err := w.turnedBy(i, &op); err != nil {
				return err
			}
		}
		if err := w.run(); err != nil {
			return err
		}
		w.j++
	}
	for i := 1; i < len(w.ranks); i++ {
		if w.cursors[i].Next(&op) {
			return w.fault(i, "has more ops than rank %d", w.ranks[0])
		}
	}
	if len(w.queue) > 0 {
		return w.fault(0, "%d steps are never received", len(w.queue))
	}
	return w.endIteration()
}

// enter checks that a channel is one ring, and opens the drawn ranks' programs.
func (w *wave) enter(ch int32) error {
	c := &w.p.Comm.Channels[ch]
	if w.channel == nil || &c.Ring[0] != &w.channel.Ring[0] {
		w.order, w.pos = make([]int32, 0, w.n), make([]int32, w.n)
		for i := range w.pos {
			w.pos[i] = -1
		}
		for r := int32(0); w.pos[r] < 0; r = c.Ring[r].Next {
			w.pos[r] = int32(len(w.order))
			w.order = append(w.order, r)
			if next := c.Ring[r].Next; next < 0 || int64(next) >= w.n || c.Ring[next].Prev != r {
				return &Error{r, ch, -1, -1, "the next rank of its ring has another one before it"}
			}
		}
		if int64(len(w.order)) != w.n {
			return &Error{0, ch, -1, -1, fmt.Sprintf("its ring has %d of %d ranks", len(w.order), w.n)}
		}
	}
	w.channel = c
	w.progs, w.cursors = w.progs[:0], make([]plan.Cursor, len(w.ranks))
	for i, r := range w.ranks {
		for _, pr := range w.p.Programs(r) {
			if pr.Channel == ch {
				w.progs = append(w.progs, pr)
			}
		}
		if len(w.progs) != i+1 || w.progs[i].OpSteps() != w.progs[0].OpSteps() {
			return &Error{r, ch, -1, -1, "has not one program of a ring as the others"}
		}
		w.p.OpenInto(&w.cursors[i], &w.progs[i])
	}
	return nil
}

// at is the block that an op of a drawn rank is about: a position in the ring.
func (w *wave) at(op *plan.Op) int64 { return int64(op.Chunk) % w.n }

// behind is how far an op's block is from a rank's position.
func (w *wave) behind(i int, op *plan.Op) int64 {
	return (w.at(op) - int64(w.pos[w.ranks[i]]) + w.n) % w.n
}

// turnedBy checks that a drawn rank's op is that of the first, turned.
func (w *wave) turnedBy(i int, op *plan.Op) error {
	if op.Do != w.op.Do || op.Step != w.op.Step || (op.Src.Buf != w.op.Src.Buf) ||
		(op.Dst.Buf != w.op.Dst.Buf) || int64(op.Chunk)/w.n != w.iter || w.behind(i, op) != w.behind(0,
		&w.op) {
		return w.fault(i, "is not the op of rank %d, turned by the ranks between them", w.ranks[0])
	}
	return w.place(i, op)
}

// place checks which memory an op uses: that of its block, the same on every rank, and
// which connections.
func (w *wave) place(i int, op *plan.Op) error {
	rank, b := w.ranks[i], int64(0)
	if pr := &w.progs[i]; op.Rank != rank || op.Channel != pr.Channel || op.Group != pr.Group ||
		op.RecvAhead != 0 || op.SendAhead != 0 || op.RecvOff != 0 || op.SendOff != 0 {
		return w.fault(i, "is not the op of a ring")
	}
	src, dst := op.Src.Off, op.Dst.Off
	switch w.f {
	case coll.AllReduce:
		b = w.at(op)
	case coll.AllGather:
		dst -= units.Bytes(w.order[w.at(op)]) * w.block
	case coll.ReduceScatter:
		src -= units.Bytes(w.order[w.at(op)]) * w.block
	}
	for _, x := range [2]struct {
		ref plan.Ref
		off units.Bytes
		buf plan.Buffer
	}{{op.Src, src, plan.Input}, {op.Dst, dst, plan.Output}} {
		if x.ref.Buf == plan.NoBuffer {
			continue
		}
		if w.off[b] < 0 {
			w.off[b] = x.off
		}
		if x.ref.Buf != x.buf || x.off != w.off[b] {
			return w.fault(i, "%v is not where the block of position %d lies", x.ref, w.at(op))
		}
	}
	if w.bytes[b] < 0 {
		w.bytes[b] = op.Bytes
	}
	if op.Bytes != w.bytes[b] || op.Bytes < 0 {
		return w.fault(i, "moves %d bytes of a block of %d", op.Bytes, w.bytes[b])
	}
	return w.ends(i, rank, op)
}

// ends checks that an op's connections lead along the ring.
func (w *wave) ends(i int, rank int32, op *plan.Op) error {
	sends, takes := op.Do&plan.Send != 0, op.Do&plan.Recv != 0
	if len(op.To) > 1 || len(op.From) > 1 || sends != (len(op.To) == 1) || takes != (len(op.From) == 1) {
		return w.fault(i, "%v over %d and %d connections", op.Do, len(op.From), len(op.To))
	}
	ring := w.channel.Ring
	for _, id := range op.To {
		if c := w.conn(i, 1, id); c.Src != rank || c.Dst != ring[rank].Next || c.Channel != op.Channel {
			return w.fault(i, "sends to rank %d, not to the next of the ring", c.Dst)
		}
	}
	for _, id := range op.From {
		if c := w.conn(i, 0, id); c.Dst != rank || c.Src != ring[rank].Prev || c.Channel != op.Channel {
			return w.fault(i, "receives from rank %d, not from the one before it in the ring", c.Src)
		}
	}
	return nil
}

// conn describes a connection of a drawn rank: mostly that of its op before.
func (w *wave) conn(i, end int, id int32) *plan.Conn {
	c := &w.conns[i][end]
	if c.ID != id || id < 0 {
		w.p.EndsInto(c, id)
	}
	return c
}

// run does the op on all ranks at once. All have done those before it, so it can run
// where the rank before has sent, and the next one has taken, enough by then.
func (w *wave) run() error {
	op, behind := &w.op, w.behind(0, &w.op)
	if op.Do&(plan.HoldRecv|plan.HoldSend|plan.Accum) != 0 {
		return w.fault(0, "%v in a ring", op.Do)
	}
	depth := int64(plan.FIFOSteps) / int64(max(1, w.progs[0].OpSteps()))
	step := w.sends
	if op.Do&plan.Send == 0 {
		step = w.takes
	}
	switch {
	case int64(op.Step) != step*int64(w.progs[0].OpSteps()):
		return w.fault(0, "says it is at step %d, but is at %d", op.Step, step*int64(w.progs[0].OpSteps()))
	case op.Do&plan.Recv != 0 && len(w.queue) == 0:
		return w.fault(0, "deadlock: every rank waits for the one before it")
	case op.Do&plan.Send != 0 && int64(len(w.queue)) >= depth:
		return w.fault(0, "deadlock: every rank waits for the next one")
	}
	v := turned{iter: w.iter, behind: behind}
	if op.Do&plan.Recv != 0 {
		from := w.queue[0]
		w.queue = w.queue[:copy(w.queue, w.queue[1:])]
		w.takes++
		if from.iter != w.iter || from.behind != (behind+1)%w.n {
			return w.fault(0, "receives another block than it is about")
		}
		v.ranks, v.scaled = from.ranks, from.scaled
	}
	if err := w.combine(&v); err != nil {
		return err
	}
	if op.Do&plan.Copy != 0 {
		if err := w.write(&v); err != nil {
			return err
		}
	}
	if op.Do&plan.Send != 0 {
		w.sends++
		w.queue = append(w.queue, v)
	}
	return nil
}

// combine adds the rank's own contribution, and scales.
func (w *wave) combine(v *turned) error {
	op, received, own := &w.op, w.op.Do&plan.Recv != 0, w.op.Src.Buf != plan.NoBuffer
	switch {
	case !received && !own:
		return w.fault(0, "%v has no operand", op.Do)
	case received && own != (op.Do&plan.Reduce != 0):
		return w.fault(0, "%v of another number of operands", op.Do)
	case own && w.f == coll.AllReduce && w.shared && w.copied[w.at(op)]:
		return w.fault(0, "reads a block that was overwritten")
	case !w.f.Reduces():
		if received && (own || v.ranks >= w.n-1) || own && v.behind != 0 {
			return w.fault(0, "%v of a block of another rank", op.Do)
		}
		if received {
			v.ranks++
		}
		return nil
	case own && (v.scaled || v.ranks >= w.n):
		return w.fault(0, "adds a contribution twice, or to what was scaled")
	case own:
		v.ranks++
	}
	if op.Do&plan.PostOp != 0 {
		if v.ranks != w.n || v.scaled {
			return w.fault(0, "scales a sum that is not complete")
		}
		v.scaled = w.p.Req.Op == coll.Avg
	}
	return nil
}

// write checks what an op stores: the result.
func (w *wave) write(v *turned) error {
	b := w.at(&w.op)
	if w.copied[b] {
		return w.fault(0, "writes a block twice")
	}
	w.copied[b] = true
	w.copies++
	if w.f.Reduces() {
		if v.ranks != w.n || v.scaled != (w.p.Req.Op == coll.Avg) {
			return w.fault(0, "stores a sum of %d of %d contributions", v.ranks, w.n)
		}
		if w.f == coll.ReduceScatter && v.behind != 0 {
			return w.fault(0, "stores another rank's block")
		}
		return nil
	}
	// The block of position pos+behind began with the rank that is so many before.
	if (v.behind+v.ranks)%w.n != 0 {
		return w.fault(0, "stores another rank's data")
	}
	return nil
}

// endIteration checks that an iteration's blocks were all done and lie side by side,
// and forgets them.
func (w *wave) endIteration() error {
	if w.iter >= 0 {
		want := w.n
		switch {
		case w.f == coll.ReduceScatter:
			want = 1
		case w.f == coll.AllGather && w.shared:
			want-- // the own block is in place
		}
		if w.copies != want {
			return w.fault(0, "%d blocks of %d were written before it", w.copies, want)
		}
		for b := range w.off {
			if w.bytes[b] > 0 && w.off[b] != w.next {
				return w.fault(0, "the block of position %d begins at byte %d, the one before it ended at %d",
					b, w.off[b], w.next)
			}
			w.next += max(0, w.bytes[b])
		}
	}
	for b := range w.off {
		w.off[b], w.bytes[b] = -1, -1
	}
	clear(w.copied)
	w.copies = 0
	return nil
}
