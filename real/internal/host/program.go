package host

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// runner executes one program: its ops in order, slice by slice.
type runner struct {
	x       *run
	pr      plan.Program
	mem     *memory
	scratch []byte
	ctx     context.Context
	op      plan.Op
	steps   int64      // of one slice
	sum     nccl.Terms // terms of the run, if times are recorded
	end     int64      // of its last piece
	first   bool       // first slice of its op
}

// execute executes the program to its end.
func (r *runner) execute() error {
	var cur plan.Cursor
	r.x.p.OpenInto(&cur, &r.pr)
	r.steps = int64(max(r.pr.SliceSteps, 1))
	for cur.Next(&r.op) {
		if err := r.run(); err != nil {
			return fmt.Errorf("rank %d channel %d group %d op %d (%v): %w", r.op.Rank, r.op.Channel,
				r.op.Group, r.op.Seq, r.op.Do, err)
		}
	}
	return nil
}

// run executes the current op. Every slice takes its steps on every connection, empty slices too.
func (r *runner) run() error {
	n, size := r.x.p.Slices(&r.pr, r.op.Bytes)
	for i := range n {
		off := min(units.Bytes(i)*size, r.op.Bytes)
		r.first = i == 0
		if err := r.slice(int(off), int(min(size, r.op.Bytes-off))); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) slice(off, n int) error {
	op := &r.op
	began := r.x.log.now()
	came, err := r.await()
	if err != nil {
		return err
	}
	moving := r.x.log.now()
	val, err := r.value(off, n)
	if err != nil {
		return err
	}
	if r.scales() {
		r.x.k.scale(val, r.x.p.Comm.NRanks)
	}
	if op.Do&plan.Copy != 0 {
		copy(r.mem.at(op.Dst, off, n), val)
	}
	for _, id := range op.To {
		f := r.x.tx(id)
		at := f.posted.Load() + int64(op.SendAhead)
		if room := int(r.steps)*f.slot - int(op.SendOff); n > room {
			return fmt.Errorf("a slice of %d bytes does not fit the %d bytes of its step: the buffer of %v "+
				"is too small", n, room, r.pr.Proto)
		}
		copy(f.at(at)[op.SendOff:], val)
		s := &f.size[at%plan.FIFOSteps]
		s.Store(max(s.Load(), int64(op.SendOff)+int64(n)))
	}
	if r.x.log != nil {
		r.note(piece{began, came, moving, r.x.log.now(), int64(n), op.Chunk, r.first})
	}
	r.advance()
	return nil
}

// await waits until every From connection has data and every To connection has room; it returns the time at
// which the data was complete.
func (r *runner) await() (came int64, err error) {
	w := backoff{crowded: r.x.crowded}
	for _, id := range r.op.From {
		f := r.x.rx(id)
		for need := f.released.Load() + int64(r.op.RecvAhead) + r.steps; f.posted.Load() < need; {
			if err := w.wait(r.ctx); err != nil {
				return 0, err
			}
		}
	}
	came = r.x.log.now()
	for _, id := range r.op.To {
		f := r.x.tx(id)
		for need := f.posted.Load() + int64(r.op.SendAhead) + r.steps - plan.FIFOSteps; f.released.Load() <
			need; {
			if err := w.wait(r.ctx); err != nil {
				return 0, err
			}
		}
	}
	return came, nil
}

// value returns the slice's value: a view of its only operand, or the reduction of all operands in scratch,
// received ones first.
func (r *runner) value(off, n int) ([]byte, error) {
	op := &r.op
	var first []byte
	count := 0
	take := func(b []byte) error {
		count++
		if count == 1 {
			first = b
			return nil
		}
		if op.Do&plan.Reduce == 0 {
			return fmt.Errorf("%d operands, but nothing reduces them", count)
		}
		if count == 2 {
			first = r.own(first)
		}
		r.x.k.combine(first, b)
		return nil
	}
	for _, id := range op.From {
		f := r.x.rx(id)
		at := f.released.Load() + int64(op.RecvAhead)
		if have := f.size[at%plan.FIFOSteps].Load(); have < int64(op.RecvOff)+int64(n) {
			return nil, fmt.Errorf("%d bytes expected from connection %d, %d came", int64(op.RecvOff)+
				int64(n), id, have)
		}
		if err := take(f.at(at)[op.RecvOff:][:n]); err != nil {
			return nil, err
		}
	}
	if r.pr.Role == plan.RoleBlock && op.Do&plan.Accum != 0 { // adds Src to Dst
		if err := take(r.mem.at(op.Src, off, n)); err != nil {
			return nil, err
		}
	}
	if b := r.local(off, n); b != nil {
		if err := take(b); err != nil {
			return nil, err
		}
	}
	if r.scales() && count == 1 {
		first = r.own(first)
	}
	return first, nil
}

// scales reports whether the op completes an average: PostOp does nothing for other reductions.
func (r *runner) scales() bool { return r.op.Do&plan.PostOp != 0 && r.x.p.Req.Op == coll.Avg }

// own copies a value into the runner's scratch memory, which only grows.
func (r *runner) own(val []byte) []byte {
	if cap(r.scratch) < len(val) {
		r.scratch = make([]byte, len(val))
	}
	r.scratch = r.scratch[:len(val)]
	copy(r.scratch, val)
	return r.scratch
}

// local returns the rank's own operand; nil if there is none.
func (r *runner) local(off, n int) []byte {
	op := &r.op
	switch {
	case op.Do&plan.Accum != 0 && op.Do&plan.Send != 0:
		f := r.x.tx(op.To[0])
		return f.at(f.posted.Load() + int64(op.SendAhead))[op.SendOff:][:n]
	case op.Do&plan.Accum != 0:
		return r.mem.at(op.Dst, off, n)
	case op.Src.Buf == plan.NoBuffer:
		return nil
	}
	return r.mem.at(op.Src, off, n)
}

// advance releases the steps that were read and posts those that were written. The size of a released slot is
// cleared before the sender may use it again.
func (r *runner) advance() {
	if r.op.Do&plan.HoldRecv == 0 {
		for _, id := range r.op.From {
			f := r.x.rx(id)
			at := f.released.Load()
			for s := at; s < at+r.steps; s++ {
				f.size[s%plan.FIFOSteps].Store(0)
			}
			f.released.Store(at + r.steps)
		}
	}
	if r.op.Do&plan.HoldSend == 0 {
		for _, id := range r.op.To {
			f := r.x.tx(id)
			f.posted.Store(f.posted.Load() + r.steps)
		}
	}
}
