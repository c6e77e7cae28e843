package device

import (
	"context"
	"time"

	"github.com/simccl/simccl/units"
)

// eager returns the host's time for a loop of asynchronous launches. With BesideTime, only the time from an
// iteration's launch to its end counts (nccl-tests 2.19, common.cu BenchTime).
func (r *rank) eager(group func() error, o Options, each *[]units.Time) (units.Time, error) {
	if o.PerIter {
		if err := r.makeMarks(2 * max(o.Iters, 1)); err != nil {
			return 0, err
		}
	}
	if err := r.together(); err != nil {
		return 0, err
	}
	began := time.Now()
	spent, err := r.loop(group, o)
	if err != nil {
		return 0, err
	}
	if o.PerIter && o.Wait != BesideTime {
		if err := r.dev.Record(r.marks[o.Iters], r.stream); err != nil {
			return 0, err
		}
	}
	if err := r.wait(); err != nil {
		return 0, err
	}
	if !o.CPUTime && o.Wait != BesideTime {
		spent = time.Since(began)
	}
	t := units.Time(spent.Nanoseconds()) * units.Nanosecond
	if !o.PerIter {
		return t, nil
	}
	for i := range o.Iters {
		begin, end := o.Wait.marks(i)
		us, err := r.dev.Between(r.marks[begin], r.marks[end])
		if err != nil {
			return 0, err
		}
		*each = append(*each, units.FromMicros(us/float64(max(o.Agg, 1))))
	}
	return t, nil
}

// loop launches all iterations and returns the time until the last one was launched or, if requested,
// completed.
func (r *rank) loop(group func() error, o Options) (time.Duration, error) {
	began := time.Now()
	var beside time.Duration // time in barriers, which does not count
	for i := range o.Iters {
		if r.s.ctx.Err() != nil { // otherwise all remaining iterations would be launched only to be stopped
			return 0, context.Cause(r.s.ctx)
		}
		begin, end := o.Wait.marks(i)
		if o.PerIter {
			if err := r.dev.Record(r.marks[begin], r.stream); err != nil {
				return 0, err
			}
		}
		if err := group(); err != nil {
			return 0, err
		}
		if o.Wait != Onward {
			if err := r.wait(); err != nil {
				return 0, err
			}
		}
		// Otherwise the next iteration's first event is this one's last.
		if o.PerIter && o.Wait == BesideTime {
			if err := r.dev.Record(r.marks[end], r.stream); err != nil {
				return 0, err
			}
		}
		if o.Wait == UntilAll || o.Wait == BesideTime {
			done := time.Now()
			if err := r.together(); err != nil {
				return 0, err
			}
			beside += time.Since(done)
		}
	}
	spent := time.Since(began)
	if o.Wait == BesideTime {
		spent -= beside
	}
	return spent, nil
}

// marks returns the indexes of the events before and after iteration i.
func (w Wait) marks(i int) (begin, end int) {
	if w == BesideTime {
		return 2 * i, 2*i + 1
	}
	return i, i + 1
}

// makeMarks creates events until there are n.
func (r *rank) makeMarks(n int) error {
	for len(r.marks) < n {
		e, err := r.dev.NewEvent()
		if err != nil {
			return err
		}
		r.marks = append(r.marks, e)
	}
	return nil
}
