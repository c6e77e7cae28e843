package device

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/real/internal/nccl"
	"github.com/simccl/simccl/units"
)

// Case is one operation of the whole communicator that is measured.
type Case struct {
	Func    coll.Func
	Type    coll.DataType
	Red     coll.RedOp
	Root    int
	Sizes   coll.Sizes
	InPlace bool
	Plan    *plan.Plan  // of the operation, for the method Planned
	Pairs   *coll.Pairs // of an alltoall with unequal parts; nil: equal parts
	Blocks  int         // grid of a free algorithm, 0: chosen by size
	Piece   units.Bytes // of the shape Push, 0: chosen by size
}

// received returns the number of elements that a rank receives.
func (op *Case) received(rank int) int64 {
	if op.Pairs != nil {
		return op.Pairs.Received(int32(rank))
	}
	return op.Sizes.RecvCount
}

// sent returns the number of elements of a rank's send buffer.
func (op *Case) sent(rank int) int64 {
	if op.Pairs != nil {
		return op.Pairs.Sent(int32(rank))
	}
	return op.Sizes.SendCount
}

// Average says how the ranks' times are combined, with nccl-tests' numbers.
type Average int

// Averages of option -a.
const (
	OfRank0 Average = iota
	OfAll
	Fastest
	Slowest
)

// Options of a measurement.
type Options struct {
	Iters, Warmup, Agg int
	Replays            int // graph replays; 0: eager launches
	Check              int // number of checks of the result
	Average            Average
	PerIter            bool // also time each iteration by events
	Wait               Wait // after each iteration of an eager loop
	CPUTime            bool // of eager launches: until all are queued
	Seed               uint32
}

// Wait says what follows each iteration of an eager loop, with nccl-tests' numbers (-z).
type Wait int

// Waits.
const (
	Onward     Wait = iota // no wait
	UntilAll               // until it ends, then a barrier of all ranks
	UntilDone              // until it ends
	BesideTime             // until it ends, then a barrier that is not timed
)

// Measurement is the result of measuring one operation: times, and the check of its data.
type Measurement struct {
	Time units.Time   // of one operation, averaged as requested
	Each []units.Time // by iteration, the slowest rank; with PerIter
	// EachOf is the same by process, if there are several.
	EachOf  [][]units.Time
	Wrong   int64
	Checked bool
	First   string // the first wrong element, for people
}

// Measure times the operation with the given method and checks its result. All processes must call it with
// equal arguments.
func (s *Session) Measure(ctx context.Context, op *Case, by Method, o Options) (Measurement, error) {
	stop := context.AfterFunc(ctx,
		func() { s.abort(fmt.Errorf("%s: %w", op.Func.TestName(), context.Cause(ctx))) })
	defer stop()
	m := Measurement{}
	if op.Sizes.Count == 0 { // no launch
		m.Checked = o.Check > 0
		return m, nil
	}
	if err := s.lacking(by); err != nil {
		return m, err
	}
	if by == Planned {
		if err := s.load(op.Plan, false); err != nil {
			return m, err
		}
	}
	each := make([][]units.Time, len(s.ranks))
	err := s.each(func(r *rank) error { return r.measure(op, by, o, &each[r.local]) })
	if err != nil {
		return m, err
	}
	if m.Time, err = s.combine(o.Average); err != nil {
		return m, err
	}
	if o.PerIter {
		if m.Each, m.EachOf, err = s.iterations(each); err != nil {
			return m, err
		}
	}
	if o.Check > 0 && !(op.InPlace && noInPlace(op.Func)) {
		m.Checked = true
		for n := 0; n < o.Check && m.Wrong == 0; n++ {
			if m.Wrong, m.First, err = s.check(op, by, o.Seed+uint32(n)); err != nil {
				return m, err
			}
		}
	}
	return m, nil
}

// noInPlace reports whether an operation's in-place form is timed although its result is undefined
// (nccl-tests: sendrecv.cu:34, alltoall.cu:44).
func noInPlace(f coll.Func) bool { return f == coll.SendRecv || f == coll.AllToAll }

// slowest returns the largest time of each iteration.
func slowest(lists [][]units.Time) []units.Time {
	out := slices.Clone(lists[0])
	for _, l := range lists[1:] {
		for i := range out {
			out[i] = max(out[i], l[i])
		}
	}
	return out
}

// iterations returns the time of each iteration: of the slowest rank overall and, if there are several
// processes, in each of them (nccl-tests, common.cu:425).
func (s *Session) iterations(local [][]units.Time) (all []units.Time, of [][]units.Time, err error) {
	if of, err = s.gather(slowest(local)); err != nil {
		return nil, nil, err
	}
	all = slowest(of)
	if len(of) == 1 {
		of = nil
	}
	return all, of, nil
}

// gather returns the times of every process.
func (s *Session) gather(mine []units.Time) ([][]units.Time, error) {
	if s.cfg.Boot == nil {
		return [][]units.Time{mine}, nil
	}
	text := make([]byte, 0, 8*len(mine))
	for _, t := range mine {
		text = binary.LittleEndian.AppendUint64(text, uint64(t))
	}
	lists, err := s.cfg.Boot.AllGather(text)
	if err != nil {
		return nil, err
	}
	out := make([][]units.Time, len(lists))
	for i, l := range lists {
		for ; len(l) >= 8; l = l[8:] {
			out[i] = append(out[i], units.Time(binary.LittleEndian.Uint64(l)))
		}
	}
	return out, nil
}

// combine returns one time for all ranks' times.
func (s *Session) combine(a Average) (units.Time, error) {
	lists, err := s.gather(slices.Clone(s.scratch))
	if err != nil {
		return 0, err
	}
	all := slices.Concat(lists...)
	switch a {
	case OfRank0:
		return all[0], nil
	case Fastest:
		return slices.Min(all), nil
	case Slowest:
		return slices.Max(all), nil
	}
	var sum units.Time
	for _, t := range all {
		sum += t
	}
	return sum / units.Time(len(all)), nil
}

// place returns the addresses from which the rank sends and to which it receives.
func (r *rank) place(op *Case) (send, recv cuda.Ptr) {
	send, recv = r.base(op.Type.Size())
	if !op.InPlace {
		return send, recv
	}
	size := int64(op.Type.Size())
	return recv + cuda.Ptr(int64(r.id)*op.Sizes.SendInPlace*size),
		recv + cuda.Ptr(int64(r.id)*op.Sizes.RecvInPlace*size)
}

// places returns these addresses for all ranks, as mapped here.
func (r *rank) places(op *Case) (in, out [cuda.MaxRanks]cuda.Ptr) {
	if !op.InPlace {
		return r.sends, r.recvs
	}
	size := int64(op.Type.Size())
	for p := range r.s.cfg.Ranks {
		in[p] = r.recvs[p] + cuda.Ptr(int64(p)*op.Sizes.SendInPlace*size)
		out[p] = r.recvs[p] + cuda.Ptr(int64(p)*op.Sizes.RecvInPlace*size)
	}
	return in, out
}

// lacking returns an error for a resource that the session lacks for a method; it is the same on all ranks.
func (s *Session) lacking(by Method) error {
	switch {
	case by == NCCL && s.cfg.NCCL == nil:
		return &exec.UnsupportedError{Feature: "NCCL", Needs: "libnccl.so.2", Found: "a session without it"}
	case by == NCCL || by == Planned || s.ranks[0].free != nil:
		return nil
	}
	return cmp.Or(s.apart, error(&exec.UnsupportedError{Feature: by.String(), Needs: "peer access",
		Found: "a session without it"}))
}

// queuer returns a function that queues one operation on the rank's stream.
func (r *rank) queuer(op *Case, by Method) (func() error, error) {
	if err := r.s.lacking(by); err != nil {
		return nil, err
	}
	send, recv := r.place(op)
	n, size := r.s.cfg.Ranks, int64(op.Type.Size())
	if by == NCCL {
		o := &nccl.Call{Func: op.Func, Send: send, Recv: recv, Count: op.Sizes.Count, Type: op.Type,
			Size: size,
			Red:  op.Red, Root: op.Root, Rank: r.id, N: n, Pairs: op.Pairs}
		return func() error { return r.s.cfg.NCCL.Queue(r.comm, o, r.stream) }, nil
	}
	ins, outs := r.places(op)
	if by == Planned {
		all := &outs
		if r.s.cfg.Buffered {
			all = nil
		}
		return func() error { return r.planned.Queue(send, recv, all, r.stream) }, nil
	}
	shape, _ := by.shape()
	f := &cuda.FreeOp{Func: op.Func, Shape: shape, Bytes: units.Bytes(op.Sizes.Count * size), Type: op.Type,
		Red: op.Red, Root: op.Root, Blocks: op.Blocks, Piece: op.Piece, Pairs: op.Pairs, In: ins, Out: outs}
	if !r.free.Fits(f) {
		return nil, &exec.UnsupportedError{Feature: fmt.Sprintf("%v %v of %d bytes", shape, op.Func, f.Bytes),
			Needs: "a smaller operation"}
	}
	return func() error { return r.free.Queue(f, r.stream) }, r.free.Prepare(f)
}

// FreeMethods lists the free algorithms that can run the operation.
func (s *Session) FreeMethods(op *Case) []Method {
	var out []Method
	r := s.ranks[0]
	if r.free == nil {
		return nil
	}
	shapes := cuda.FreeShapes(op.Func)
	if op.Pairs != nil {
		shapes = cuda.UnevenShapes()
	}
	for _, sh := range shapes {
		f := &cuda.FreeOp{Func: op.Func, Shape: sh,
			Bytes: units.Bytes(op.Sizes.Count * int64(op.Type.Size())), Type: op.Type, Red: op.Red,
			Root: op.Root, Pairs: op.Pairs}
		if r.free.Fits(f) && r.free.Known(f) {
			out = append(out, Free(sh))
		}
	}
	return out
}

// wait polls the stream until its work has ended, so that a dead peer causes an error and not a hang. Stopped
// kernels have ended, but not completed their work.
func (r *rank) wait() error {
	for spin := 0; ; spin++ {
		done, err := r.dev.Done(r.stream)
		if err != nil || done && r.s.ctx.Err() == nil {
			return err
		}
		if !done && spin%256 != 255 {
			continue
		}
		runtime.Gosched() // fake GPUs need the CPU
		if r.comm != 0 {
			if err := r.s.cfg.NCCL.AsyncError(r.comm); err != nil {
				return err
			}
		}
		if r.s.ctx.Err() != nil {
			return fmt.Errorf("waiting for the GPU: %w", context.Cause(r.s.ctx))
		}
	}
}

func (r *rank) together() error { return r.s.meet.wait(r.s.ctx, r.s.barrier) }

func (r *rank) measure(op *Case, by Method, o Options, each *[]units.Time) error {
	queue, err := r.queuer(op, by)
	if err != nil {
		return err
	}
	group := queue
	if o.Agg > 1 {
		group = func() error { return r.aggregate(queue, by, o.Agg) }
	}
	if o.Check > 0 {
		if err := r.fill(op, o.Seed); err != nil {
			return err
		}
	}
	warm := o.Warmup
	if o.Replays > 0 {
		warm = max(warm, 1) // NCCL connects on first use, which is not allowed during a capture
	}
	if err := r.together(); err != nil {
		return err
	}
	for range warm {
		if err := group(); err != nil {
			return err
		}
	}
	if err := r.wait(); err != nil {
		return err
	}
	ops := units.Time(o.Iters * max(o.Agg, 1))
	if o.Replays > 0 {
		t, err := r.replay(group, o)
		r.s.scratch[r.local] = t / (ops * units.Time(o.Replays))
		return err
	}
	t, err := r.eager(group, o, each)
	r.s.scratch[r.local] = t / ops
	return err
}

// aggregate launches several operations as one group.
func (r *rank) aggregate(queue func() error, by Method, n int) error {
	run := func() error {
		for range n {
			if err := queue(); err != nil {
				return err
			}
		}
		return nil
	}
	if by == NCCL {
		return r.s.cfg.NCCL.Group(r.comm, run)
	}
	return run()
}

// replay returns the device's time for replays of one graph of all iterations. The first replay uploads the
// graph and is not timed.
func (r *rank) replay(group func() error, o Options) (units.Time, error) {
	g, err := r.dev.Capture(r.stream, func() error {
		for range o.Iters {
			if err := group(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	defer r.dev.DestroyGraph(g)
	run := func(n int) error {
		if err := r.together(); err != nil {
			return err
		}
		if err := r.dev.Record(r.begin, r.stream); err != nil {
			return err
		}
		for range n {
			if err := r.dev.LaunchGraph(g, r.stream); err != nil {
				return err
			}
		}
		if err := r.dev.Record(r.end, r.stream); err != nil {
			return err
		}
		return r.wait()
	}
	if err := run(1); err != nil {
		return 0, err
	}
	if err := run(o.Replays); err != nil {
		return 0, err
	}
	us, err := r.dev.Between(r.begin, r.end)
	return units.FromMicros(us), err
}
