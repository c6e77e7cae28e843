// Package device measures collectives on the GPUs of this process, alone or as one of several processes
// joined by real/internal/bootstrap: NCCL's own, the free algorithms of real/internal/cuda, and plans
// executed by kernels (Planned). Every GPU has a goroutine on a thread of its own. Results are
// checked on the GPU to the last element.
//
// A failure on any rank ends the others' waits, including those of kernels: nothing hangs, and no
// communicator is left behind.
package device

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/real/internal/bootstrap"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/real/internal/nccl"
	"github.com/simccl/simccl/units"
)

// Config says which GPUs take part and what they set up.
type Config struct {
	Driver   *cuda.Driver
	NCCL     *nccl.Lib // nil: no method NCCL
	Free     bool      // set up the free algorithms: arenas in peer memory
	Plans    bool      // let kernels execute plans: peer access where possible
	GPUs     []int     // local devices in order of rank
	First    int       // rank of the first local device
	Ranks    int       // number of ranks of all processes
	Boot     *bootstrap.Group
	Buffer   units.Bytes  // buffer size of the largest operation, each for send and receive
	Register Registration // of the buffers with NCCL
	// Unalign shifts both buffers by this many elements.
	Unalign int
	Warps   int // warps of a block that move a plan's data; 0: as cuda.NewCompiler
	// Buffered sends all of a plan's data through FIFOs, including data that could go directly to a peer's
	// output.
	Buffered bool
	// Grace is the time in which a rank must notice that another one failed, and its GPU become idle; 0:
	// three seconds.
	Grace time.Duration
}

// graceTime returns the configured grace, or the default.
func (c *Config) graceTime() time.Duration {
	if c.Grace > 0 {
		return c.Grace
	}
	return grace
}

// Registration says how the buffers are registered with NCCL, with nccl-tests' numbers (-R).
type Registration int

// Registrations.
const (
	Unregistered Registration = iota
	Registered                // by each rank separately (ncclCommRegister)
	Symmetric                 // by all ranks together (ncclCommWindowRegister)
)

// can returns nil if the library supports the registration.
func (g Registration) can(lib *nccl.Lib) error {
	switch {
	case g == Unregistered:
		return nil
	case lib == nil:
		return &exec.UnsupportedError{Feature: "registered buffers", Needs: "libnccl.so.2",
			Found: "a session without it"}
	case g == Symmetric:
		return lib.CanWindow()
	}
	return lib.CanRegister()
}

// Session holds the local ranks of one communicator.
type Session struct {
	cfg       Config
	ranks     []*rank
	meet      *meeting
	scratch   []units.Time // by local rank
	abort     context.CancelCauseFunc
	ctx       context.Context
	stop      *cuda.Stop // ends the waits of our kernels
	disarm    func() bool
	apart     error // why two GPUs cannot access each other's memory; nil: all can
	loaded    loading
	announced sync.Once // its end, or the reason of its abort, was sent
}

// rank is one GPU with its thread. Only that thread accesses its fields.
type rank struct {
	s          *Session
	id, local  int
	dev        *cuda.Device
	stream     cuda.Stream
	begin, end cuda.Event
	marks      []cuda.Event
	comm       nccl.Handle
	kernels    *cuda.Kernels
	free       *cuda.Free
	planned    *cuda.Planned
	checker    *cuda.Checker
	send, recv cuda.Ptr
	handles    []uintptr               // of registered buffers
	freeAt     [moments]units.Bytes    // free device memory at each moment
	sends      [cuda.MaxRanks]cuda.Ptr // all ranks' buffers as mapped here
	recvs      [cuda.MaxRanks]cuda.Ptr
	opened     []cuda.Ptr         // mapped memory of other processes
	borrowed   []cuda.Ptr         // the part of it that belongs to the loaded plan
	lent       []*cuda.HostMemory // the same, in host memory
	apart      []error            // by rank: why memory is not shared; nil: it can be
	jobs       chan func(*rank) error
	done       chan error
	closed     bool
	beside     *beside // see Session.Beside
}

// Open joins the communicator with all local GPUs. Error: *exec.UnsupportedError if a library or GPU is
// missing.
func Open(ctx context.Context, cfg Config) (*Session, error) {
	s := &Session{cfg: cfg, meet: newMeeting(len(cfg.GPUs)), scratch: make([]units.Time, len(cfg.GPUs))}
	s.ctx, s.abort = context.WithCancelCause(ctx)
	if err := cfg.Register.can(cfg.NCCL); err != nil {
		return nil, err
	}
	if cfg.Boot != nil {
		go func() {
			select {
			case <-cfg.Boot.Failed():
				s.abort(cfg.Boot.Err())
			case <-s.ctx.Done():
			}
		}()
		context.AfterFunc(s.ctx, s.announce)
	}
	for i, g := range cfg.GPUs {
		r := &rank{s: s, id: cfg.First + i, local: i, jobs: make(chan func(*rank) error, 1),
			done: make(chan error, 1)}
		dev, err := cfg.Driver.Device(g)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		r.dev = dev
		s.ranks = append(s.ranks, r)
		go r.serve()
	}
	id, err := s.uniqueID()
	if err == nil {
		err = s.armStop()
	}
	if err == nil {
		err = s.each(func(r *rank) error { return r.open(id) })
	}
	if err == nil && (cfg.Free || cfg.Plans) {
		err = s.meetPeers()
	}
	if err == nil && (cfg.Free || cfg.Plans) {
		err = s.share()
	}
	if err == nil {
		err = s.each(func(r *rank) error { return r.note(opened) })
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// armStop creates the flag that ends the waits of kernels when the session fails.
func (s *Session) armStop() error {
	err := s.each(func(r *rank) (err error) {
		if r.local == 0 {
			s.stop, err = cuda.NewStop(r.dev)
		}
		return err
	})
	if err == nil {
		s.disarm = context.AfterFunc(s.ctx, s.stop.Set)
	}
	return err
}

// uniqueID creates NCCL's id in rank 0's process and sends it to the others.
func (s *Session) uniqueID() (id nccl.UniqueID, err error) {
	if s.cfg.NCCL == nil {
		return id, nil
	}
	if s.cfg.First == 0 {
		if id, err = s.cfg.NCCL.NewID(); err != nil {
			return id, err
		}
	}
	if s.cfg.Boot == nil {
		return id, nil
	}
	all, err := s.cfg.Boot.AllGather(id[:])
	if err != nil {
		return id, err
	}
	copy(id[:], all[0])
	return id, nil
}

func (r *rank) serve() {
	unbind, err := r.dev.Bind()
	if err != nil {
		for range r.jobs {
			r.done <- err
		}
		return
	}
	defer unbind()
	for f := range r.jobs {
		r.done <- f(r)
	}
}

// each runs f on every local rank at the same time. The first error ends the waits of the others, here and in
// the other processes, and is returned.
func (s *Session) each(f func(*rank) error) error {
	for _, r := range s.ranks {
		r.jobs <- func(r *rank) error {
			err := f(r)
			if err != nil {
				err = fmt.Errorf("rank %d: %w", r.id, err)
				s.fail(err)
			}
			return err
		}
	}
	var first error
	for _, r := range s.ranks {
		select {
		case err := <-r.done:
			if err != nil && first == nil {
				first = err
			}
		case <-s.ctx.Done():
			if err := s.lastWord(r); first == nil {
				first = err
			}
		}
	}
	if cause := context.Cause(s.ctx); cause != nil {
		return cause
	}
	return first
}

// grace is the default of Config.Grace. A thread whose launch blocks in the driver, for a GPU that waits for
// a dead peer, never notices a failure: it is left behind, and the end of the process frees its GPU.
const grace = 3 * time.Second

// lastWord waits for a rank after a failure. NCCL's kernels end when their communicator is aborted, which
// another thread must do.
func (s *Session) lastWord(r *rank) error {
	late := time.NewTimer(s.cfg.graceTime())
	defer late.Stop()
	select {
	case err := <-r.done:
		return err
	case <-late.C:
	}
	if r.comm != 0 {
		go func(c nccl.Handle) { _ = s.cfg.NCCL.Abort(c) }(r.comm)
		r.comm = 0
	}
	r.closed = true
	return fmt.Errorf("rank %d: stuck: %w", r.id, context.Cause(s.ctx))
}

func (s *Session) fail(err error) {
	s.abort(err)
	s.announce()
}

// announce informs the other processes that this one aborts, and why: a failure here or the caller's own
// limit.
func (s *Session) announce() {
	s.announced.Do(func() {
		if s.cfg.Boot != nil {
			s.cfg.Boot.Abort(context.Cause(s.ctx))
		}
	})
}

// minAlloc is the least size of a buffer, which keeps it in an allocation of its own, so that a handle for
// another process covers exactly the buffer.
const minAlloc = units.Bytes(2 << 20)

func (r *rank) open(id nccl.UniqueID) (err error) {
	if r.stream, err = r.dev.NewStream(); err != nil {
		return err
	}
	if r.begin, err = r.dev.NewEvent(); err != nil {
		return err
	}
	if r.end, err = r.dev.NewEvent(); err != nil {
		return err
	}
	r.kernels = cuda.NewKernels(r.dev)
	if r.checker, err = cuda.NewChecker(r.kernels); err != nil {
		return err
	}
	size := max(r.s.cfg.Buffer, minAlloc) + units.Bytes(8*r.s.cfg.Unalign) // the size of the widest type is 8
	if err = r.buffers(size); err != nil {
		return err
	}
	if r.s.cfg.NCCL != nil {
		if r.comm, err = r.s.cfg.NCCL.Init(id, r.id, r.s.cfg.Ranks); err != nil {
			return err
		}
	}
	if err = r.note(afterInit); err != nil {
		return err
	}
	if err = r.register(size); err != nil {
		return err
	}
	return r.note(afterRegister)
}

// buffers allocates the send and the receive buffer.
func (r *rank) buffers(size units.Bytes) (err error) {
	if err = r.note(beforeBuffers); err != nil {
		return err
	}
	alloc := r.dev.Alloc
	if r.s.cfg.Register != Unregistered {
		alloc = r.s.cfg.NCCL.MemAlloc
	}
	if r.send, err = alloc(size); err != nil {
		return err
	}
	if r.recv, err = alloc(size); err != nil {
		return err
	}
	return r.note(afterBuffers)
}

// register registers the buffers with NCCL.
func (r *rank) register(size units.Bytes) error {
	if r.s.cfg.Register == Unregistered {
		return nil
	}
	announce := r.s.cfg.NCCL.Register
	if r.s.cfg.Register == Symmetric {
		announce = r.s.cfg.NCCL.Window
	}
	for _, p := range []cuda.Ptr{r.send, r.recv} {
		h, err := announce(r.comm, p, size)
		if err != nil {
			return err
		}
		r.handles = append(r.handles, h)
	}
	return nil
}

// base returns the rank's buffers, shifted for operations on elements of a size.
func (r *rank) base(size units.Bytes) (send, recv cuda.Ptr) {
	by := cuda.Ptr(units.Bytes(r.s.cfg.Unalign) * size)
	return r.send + by, r.recv + by
}

// barrier waits for the other processes; one local rank calls it.
func (s *Session) barrier() error {
	if s.cfg.Boot == nil {
		return nil
	}
	return s.cfg.Boot.Barrier()
}

// GPU describes a local rank's device.
type GPU struct {
	Rank, Device int
	Name, BusID  string
}

// GPUs lists the local devices in order of rank.
func (s *Session) GPUs() []GPU {
	var out []GPU
	for _, r := range s.ranks {
		out = append(out, GPU{r.id, r.dev.Index, r.dev.Name, r.dev.BusID})
	}
	return out
}
