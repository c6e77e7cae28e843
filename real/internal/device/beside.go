package device

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/units"
)

// Work is compute that runs at the same time as collectives: a product of n x n matrices of half-precision
// floats or, if Product is 0, an addition that reads and writes Bytes each.
type Work struct {
	Product int
	Bytes   units.Bytes
}

// Beside holds the times of collectives and compute, alone and together.
type Beside struct {
	Alone, Calls units.Time // n collectives on the slowest rank, alone and during compute
	Kernel       units.Time // one kernel of compute alone, mean of the ranks
	Kernels      int        // number of compute kernels that ran
	Compute      units.Time // all of them during the collectives, mean of the ranks
	Total        units.Time // both, on the slowest rank
}

// besideRepeats is the number of measurements; the median is used.
const besideRepeats = 5

// besideKernels bounds the number of compute kernels that run during collectives.
const besideKernels = 600

// besideTimes is how much longer than the collectives alone compute runs, so that the collectives end first
// even if they take twice as long.
const besideTimes = 2.2

// Products reports whether Beside can multiply matrices: cuBLAS is available.
func (s *Session) Products() bool {
	lib, err := cuda.OpenBlas()
	return lib != nil && err == nil
}

// Beside measures n operations in a row on one stream of each rank while compute kernels run on another. Both
// are CUDA graphs that a kernel blocks until all ranks' hosts have queued them. All processes must call it
// with equal arguments.
func (s *Session) Beside(ctx context.Context, op *Case, by Method, w Work, n int) (out Beside, err error) {
	stop := context.AfterFunc(ctx,
		func() { s.abort(fmt.Errorf("%s beside compute: %w", op.Func.TestName(), context.Cause(ctx))) })
	defer stop()
	if err := s.lacking(by); err != nil {
		return out, err
	}
	if w.Product > 0 && !s.Products() {
		return out, &exec.UnsupportedError{Feature: "products of matrices", Needs: "libcublas.so.12",
			Found: "none"}
	}
	if err := s.each(func(r *rank) error { return r.openBeside(op, by, w) }); err != nil {
		return out, err
	}
	alone, err := s.parts(op, by, w, n, 0)
	if err != nil {
		return out, err
	}
	out.Alone = alone.calls
	const some = 20
	one, err := s.parts(op, by, w, 0, some)
	if err != nil {
		return out, err
	}
	out.Kernel = one.compute / some
	out.Kernels = min(besideKernels, max(4, int(besideTimes*float64(out.Alone)/float64(max(1, out.Kernel)))+
		2))
	both, err := s.parts(op, by, w, n, out.Kernels)
	out.Calls, out.Compute, out.Total = both.calls, both.compute, both.total
	return out, err
}

// took holds the times of two streams.
type took struct{ calls, compute, total units.Time }

// parts measures n operations while kernels compute kernels run; if either number is 0, the other runs alone.
func (s *Session) parts(op *Case, by Method, w Work, n, kernels int) (took, error) {
	times := make([][3]units.Time, len(s.ranks))
	err := s.each(func(r *rank) (err error) {
		times[r.local], err = r.parts(op, by, w, n, kernels)
		return err
	})
	if err != nil {
		return took{}, err
	}
	var flat []units.Time
	for _, t := range times {
		flat = append(flat, t[:]...)
	}
	lists, err := s.gather(flat)
	if err != nil {
		return took{}, err
	}
	all := slices.Concat(lists...)
	var out took
	for i := 0; i+2 < len(all); i += 3 {
		out.calls, out.total = max(out.calls, all[i]), max(out.total, all[i+2])
		out.compute += all[i+1] / units.Time(len(all)/3)
	}
	return out, nil
}

// beside is a rank's second stream, for compute.
type beside struct {
	stream cuda.Stream
	marks  [4]cuda.Event // begin and end of the collectives, and of compute
	work   *cuda.Compute
	size   units.Bytes
}

// openBeside makes the second stream and runs each kind of kernel once: a captured kernel must be loaded.
func (r *rank) openBeside(op *Case, by Method, w Work) (err error) {
	size := max(w.Bytes, units.Bytes(2*w.Product*w.Product))
	if r.beside != nil && r.beside.size < size {
		if err = r.freeBeside(); err != nil {
			return err
		}
	}
	if r.beside == nil {
		if err = r.newBeside(size); err != nil {
			return err
		}
	}
	b := r.beside
	queue, err := r.queuer(op, by)
	if err == nil {
		err = queue()
	}
	if err == nil {
		err = r.queueWork(w)
	}
	if err != nil {
		return err
	}
	return r.waitBoth(b)
}

func (r *rank) newBeside(size units.Bytes) (err error) {
	b := &beside{size: size}
	r.beside = b
	if b.stream, err = r.dev.NewStream(); err != nil {
		return err
	}
	for i := range b.marks {
		if b.marks[i], err = r.dev.NewEvent(); err != nil {
			return err
		}
	}
	lib, err := cuda.OpenBlas()
	if err != nil {
		lib = nil // only additions, as Products reports
	}
	if b.work, err = cuda.NewCompute(r.kernels, r.s.stop, lib, size); err != nil {
		return err
	}
	return b.work.Prepare()
}

func (r *rank) queueWork(w Work) error {
	if w.Product > 0 {
		return r.beside.work.Multiply(w.Product, r.beside.stream)
	}
	return r.beside.work.Add(w.Bytes, r.beside.stream)
}

func (r *rank) waitBoth(b *beside) error {
	if err := r.dev.Record(b.marks[3], b.stream); err != nil {
		return err
	}
	if err := r.dev.After(r.stream, b.marks[3]); err != nil {
		return err
	}
	return r.wait()
}

func (r *rank) parts(op *Case, by Method, w Work, n, kernels int) (out [3]units.Time, err error) {
	queue, err := r.queuer(op, by)
	if err != nil {
		return out, err
	}
	graphs := [2]cuda.Graph{}
	defer func() {
		for _, g := range graphs {
			if g != 0 {
				err = errors.Join(err, r.dev.DestroyGraph(g))
			}
		}
	}()
	if graphs[0], err = r.repeated(r.stream, n, queue); err != nil {
		return out, err
	}
	if graphs[1], err = r.repeated(r.beside.stream, kernels, func() error { return r.queueWork(w) }); err !=
		nil {
		return out, err
	}
	var times [3][]units.Time
	for k := range besideRepeats + 1 { // the first one uploads the graphs
		t, err := r.both(graphs)
		if err != nil {
			return out, err
		}
		for i := range times {
			if k > 0 {
				times[i] = append(times[i], t[i])
			}
		}
	}
	for i := range times {
		slices.Sort(times[i])
		out[i] = times[i][len(times[i])/2]
	}
	return out, nil
}

// repeated captures n repetitions of queue as a graph; 0 for n = 0.
func (r *rank) repeated(s cuda.Stream, n int, queue func() error) (cuda.Graph, error) {
	if n == 0 {
		return 0, nil
	}
	return r.dev.Capture(s, func() error {
		for range n {
			if err := queue(); err != nil {
				return err
			}
		}
		return nil
	})
}

// both launches collectives and compute, which begin at the same time on all ranks, and returns the time of
// each, and of both. Compute is launched first, as in a framework, whose collectives' stream waits for an
// event.
func (r *rank) both(graphs [2]cuda.Graph) (out [3]units.Time, err error) {
	b := r.beside
	do := func(f func() error) {
		if err == nil {
			err = f()
		}
	}
	record := func(i int, s cuda.Stream) { do(func() error { return r.dev.Record(b.marks[i], s) }) }
	launch := func(g cuda.Graph, s cuda.Stream) {
		if g != 0 {
			do(func() error { return r.dev.LaunchGraph(g, s) })
		}
	}
	b.work.Shut()
	do(func() error { return b.work.Hold(r.stream) })
	record(0, r.stream)
	do(func() error { return r.dev.After(b.stream, b.marks[0]) })
	record(2, b.stream)
	launch(graphs[1], b.stream)
	record(3, b.stream)
	launch(graphs[0], r.stream)
	record(1, r.stream)
	do(func() error { return r.dev.After(r.stream, b.marks[3]) })
	do(func() error { return r.dev.Record(r.end, r.stream) })
	do(r.together)
	b.work.Release()
	do(r.wait)
	for i, m := range [3][2]cuda.Event{{b.marks[0], b.marks[1]}, {b.marks[2], b.marks[3]},
		{b.marks[0], r.end}} {
		do(func() error {
			us, err := r.dev.Between(m[0], m[1])
			out[i] = units.FromMicros(us)
			return err
		})
	}
	return out, err
}

func (r *rank) freeBeside() error {
	b := r.beside
	if b == nil {
		return nil
	}
	r.beside = nil
	var errs []error
	if b.work != nil {
		b.work.Release()
		errs = append(errs, b.work.Free())
	}
	for _, e := range b.marks {
		if e != 0 {
			errs = append(errs, r.dev.DestroyEvent(e))
		}
	}
	if b.stream != 0 {
		errs = append(errs, r.dev.DestroyStream(b.stream))
	}
	return errors.Join(errs...)
}
