package nccl

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/units"
)

// Launch is how operations are started.
type Launch uint8

// Launch modes.
const (
	Eager    Launch = iota // one asynchronous call per operation
	GraphRun               // one CUDA graph of all iterations, device time alone
)

// Timing asks for one measurement.
type Timing struct {
	Iters, Warmup int
	Launch        Launch
}

// Member is one local rank of a communicator on its GPU. Its methods run on
// the goroutine that called Device.Bind.
type Member struct {
	lib    *Lib
	dev    *cuda.Device
	comm   Handle
	stream cuda.Stream
	begin  cuda.Event
	end    cuda.Event
	Rank   int
	N      int
}

// NewMember joins the communicator as one rank; all ranks call it together.
func NewMember(lib *Lib, dev *cuda.Device, id UniqueID, rank, n int) (*Member, error) {
	m := &Member{lib: lib, dev: dev, Rank: rank, N: n}
	var err error
	if m.stream, err = dev.NewStream(); err != nil {
		return nil, err
	}
	if m.begin, err = dev.NewEvent(); err != nil {
		return nil, err
	}
	if m.end, err = dev.NewEvent(); err != nil {
		return nil, err
	}
	if m.comm, err = lib.Init(id, rank, n); err != nil {
		return nil, err
	}
	return m, nil
}

// Close leaves the communicator and frees the stream.
func (m *Member) Close() error {
	err := m.lib.Destroy(m.comm)
	if e := m.dev.DestroyStream(m.stream); err == nil {
		err = e
	}
	return err
}

// Once runs the operation a single time and waits for it, giving up when ctx
// ends or NCCL reports an asynchronous error.
func (m *Member) Once(ctx context.Context, o *Call) error {
	if err := m.lib.Queue(m.comm, o, m.stream); err != nil {
		return err
	}
	return m.wait(ctx)
}

// wait polls the stream, so that a dead peer shows as an error and not a hang.
func (m *Member) wait(ctx context.Context) error {
	for spin := 0; ; spin++ {
		done, err := m.dev.Done(m.stream)
		if done || err != nil {
			return err
		}
		if spin%1024 != 1023 {
			continue
		}
		if err := m.lib.AsyncError(m.comm); err != nil {
			return fmt.Errorf("rank %d: %w", m.Rank, err)
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("rank %d: waiting for the GPU: %w", m.Rank, err)
		}
	}
}

// Time measures the mean duration of one operation. Eager is host wall time
// over the loop, as nccl-tests; GraphRun is device time between two events
// around a replay of all iterations. meet is called by every rank right before
// the clock starts.
func (m *Member) Time(ctx context.Context, o *Call, t Timing, meet func() error) (units.Time, error) {
	if t.Launch == GraphRun {
		// NCCL connects on first use, which a capture does not allow.
		if err := m.Once(ctx, o); err != nil {
			return 0, err
		}
		return m.TimeGraph(ctx, func() error { return m.lib.Queue(m.comm, o, m.stream) }, t.Iters, meet)
	}
	for range t.Warmup {
		if err := m.lib.Queue(m.comm, o, m.stream); err != nil {
			return 0, err
		}
	}
	if err := m.wait(ctx); err != nil {
		return 0, err
	}
	if err := meet(); err != nil {
		return 0, err
	}
	began := time.Now()
	for range t.Iters {
		if err := m.lib.Queue(m.comm, o, m.stream); err != nil {
			return 0, err
		}
	}
	if err := m.wait(ctx); err != nil {
		return 0, err
	}
	return units.FromMicros(float64(time.Since(began).Nanoseconds()) / 1e3 / float64(t.Iters)), nil
}

// TimeGraph measures the mean device time of whatever queue puts on the
// member's stream, replayed iters times as one CUDA graph.
func (m *Member) TimeGraph(ctx context.Context, queue func() error, iters int, meet func() error) (units.Time,
	error) {
	g, err := m.dev.Capture(m.stream, func() error {
		for range iters {
			if err := queue(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	defer m.dev.DestroyGraph(g)
	run := func() error {
		if err := m.dev.Record(m.begin, m.stream); err != nil {
			return err
		}
		if err := m.dev.LaunchGraph(g, m.stream); err != nil {
			return err
		}
		if err := m.dev.Record(m.end, m.stream); err != nil {
			return err
		}
		return m.wait(ctx)
	}
	// The first replay uploads the graph; it is the warm-up.
	if err := run(); err != nil {
		return 0, err
	}
	if err := meet(); err != nil {
		return 0, err
	}
	if err := run(); err != nil {
		return 0, err
	}
	us, err := m.dev.Between(m.begin, m.end)
	return units.FromMicros(us / float64(iters)), err
}

// Team is the ranks of this process, each on its own goroutine and OS thread.
type Team struct {
	driver *cuda.Driver
	lib    *Lib
	jobs   []chan func(*Member) error
	done   []chan error
	N      int
}

// NewTeam joins ranks first..first+len(gpus)-1 of n, one per GPU.
func NewTeam(driver *cuda.Driver, lib *Lib, id UniqueID, gpus []int, first, n int) (*Team, error) {
	t := &Team{driver: driver, lib: lib, N: n}
	ready := make([]chan error, len(gpus))
	for i, g := range gpus {
		t.jobs = append(t.jobs, make(chan func(*Member) error))
		t.done = append(t.done, make(chan error))
		ready[i] = make(chan error, 1)
		go t.serve(g, id, first+i, t.jobs[i], t.done[i], ready[i])
	}
	var first1 error
	for i := range ready {
		if err := <-ready[i]; err != nil && first1 == nil {
			first1 = fmt.Errorf("rank %d on GPU %d: %w", first+i, gpus[i], err)
		}
	}
	return t, first1
}

func (t *Team) serve(gpu int, id UniqueID, rank int, jobs chan func(*Member) error, done, ready chan error) {
	dev, err := t.driver.Device(gpu)
	if err != nil {
		ready <- err
		return
	}
	unbind, err := dev.Bind()
	if err != nil {
		ready <- err
		return
	}
	defer unbind()
	m, err := NewMember(t.lib, dev, id, rank, t.N)
	ready <- err
	if err != nil {
		return
	}
	for f := range jobs {
		done <- f(m)
	}
	done <- m.Close()
}

// Each runs f on every local rank at the same time and returns the first
// error.
func (t *Team) Each(f func(*Member) error) error {
	for _, j := range t.jobs {
		j <- f
	}
	var first error
	for _, d := range t.done {
		if err := <-d; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Close leaves the communicator on all local ranks.
func (t *Team) Close() error {
	for _, j := range t.jobs {
		close(j)
	}
	var first error
	for _, d := range t.done {
		if err := <-d; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Meeting is a reusable barrier for the ranks of one process.
type Meeting struct {
	mu   sync.Mutex
	cond *sync.Cond
	n    int
	here int
	turn int
}

// NewMeeting makes a barrier for n callers.
func NewMeeting(n int) *Meeting {
	m := &Meeting{n: n}
	m.cond = sync.NewCond(&m.mu)
	return m
}

// Wait returns when all n callers are here.
func (m *Meeting) Wait() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	turn := m.turn
	if m.here++; m.here == m.n {
		m.here, m.turn = 0, m.turn+1
		m.cond.Broadcast()
		return nil
	}
	for turn == m.turn {
		m.cond.Wait()
	}
	return nil
}

// bufferElems returns the sizes of an operation's buffers in elements per rank.
func bufferElems(f coll.Func, count int64, n int) (send, recv int64) {
	switch f {
	case coll.AllGather:
		return count, count * int64(n)
	case coll.ReduceScatter:
		return count * int64(n), count
	case coll.AllToAll:
		return count * int64(n), count * int64(n)
	case coll.Gather:
		return count, count * int64(n)
	case coll.Scatter:
		return count * int64(n), count
	}
	return count, count
}
