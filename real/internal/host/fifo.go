package host

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/simccl/simccl/plan"
)

// fifo is one end of a connection as a program uses it: plan.FIFOSteps slots, a count of steps posted by the
// sender and of steps released by the receiver. Within a process both ends are the same fifo; over a net each
// side has its own and a pump moves steps between them.
type fifo struct {
	buf      []byte
	slot     int // bytes of one step
	posted   atomic.Int64
	released atomic.Int64
	// size[s] is the number of bytes of the message that starts in slot s.
	size [plan.FIFOSteps]atomic.Int64
}

func newFIFO(buf []byte) *fifo { return &fifo{buf: buf, slot: len(buf) / plan.FIFOSteps} }

// at returns the memory from a step's slot up to the end of the ring.
func (f *fifo) at(step int64) []byte { return f.buf[int(step%plan.FIFOSteps)*f.slot:] }

// failure ends all programs of an executor with the first error.
type failure struct {
	err  atomic.Pointer[error]
	stop context.CancelFunc
}

func (x *failure) set(err error) {
	if x.err.CompareAndSwap(nil, &err) {
		x.stop()
	}
}

func (x *failure) get() error {
	if e := x.err.Load(); e != nil {
		return *e
	}
	return nil
}

// backoff is the back-off of a waiting loop: yield, then sleep for growing times. It ends when ctx does. If
// more goroutines wait than there are processors (crowded), it soon sleeps, as yields only delay the others.
type backoff struct {
	n       int
	crowded bool
}

func (w *backoff) wait(ctx context.Context) error {
	yields, step, most := 256, 4*time.Nanosecond, 50*time.Microsecond
	if w.crowded {
		yields, step, most = 16, 10*time.Microsecond, 500*time.Microsecond
	}
	w.n++
	if w.n%64 == 0 || w.n > yields {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
	}
	if w.n < yields {
		runtime.Gosched()
		return nil
	}
	time.Sleep(min(time.Duration(w.n)*step, most))
	return nil
}
