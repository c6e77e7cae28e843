package device

import (
	"context"
	"runtime"
	"sync/atomic"
)

// meeting is a barrier of the local ranks. It spins, because waking a sleeping thread takes as long as a
// small collective and would distort its time.
type meeting struct {
	n     int32
	here  atomic.Int32
	round atomic.Uint32
	err   atomic.Pointer[error]
}

func newMeeting(n int) *meeting { return &meeting{n: int32(n)} }

// wait returns once all ranks have arrived and the last one has run its function last, whose error all
// return; or when ctx ends.
func (m *meeting) wait(ctx context.Context, last func() error) error {
	round := m.round.Load()
	if m.here.Add(1) == m.n {
		if err := last(); err != nil {
			m.err.Store(&err)
		}
		m.here.Store(0)
		m.round.Add(1)
	}
	for spin := 0; m.round.Load() == round; spin++ {
		if spin%256 != 255 {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		runtime.Gosched()
	}
	if p := m.err.Load(); p != nil {
		return *p
	}
	return nil
}
