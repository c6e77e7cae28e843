package device

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/simccl/simccl/real/internal/cuda"
)

// closeTime bounds the time to leave a communicator whose peers may have exited.
const closeTime = 10 * time.Second

// Close leaves the communicator and frees all resources. After a failure it aborts the communicator, since
// peers may never arrive, and the stop flag ends kernels; memory that other processes may still write to is
// freed by the end of the process.
func (s *Session) Close() error {
	failed := s.ctx.Err() != nil
	if failed {
		s.announce() // before the process can end
	}
	err := s.stage(func(r *rank) error { return r.leave(failed) })
	if err == nil && !failed {
		err = s.barrier()
	}
	alone := s.cfg.Boot == nil || s.cfg.Boot.Size() == 1
	if err == nil && (!failed || alone) {
		err = s.stage((*rank).release)
	}
	for _, r := range s.ranks {
		if !r.closed {
			r.closed = true
			close(r.jobs)
		}
	}
	s.announced.Do(func() {}) // later failures need not be reported
	s.abort(context.Canceled)
	if failed {
		return nil // the failure was reported already
	}
	return err
}

// stage runs do on every rank that still responds, for at most closeTime.
func (s *Session) stage(do func(*rank) error) error {
	var errs []error
	for _, r := range s.ranks {
		if r.closed {
			errs = append(errs, fmt.Errorf("rank %d: stuck", r.id))
			continue
		}
		r.jobs <- do
	}
	late := time.NewTimer(closeTime)
	defer late.Stop()
	for _, r := range s.ranks {
		if r.closed {
			continue
		}
		select {
		case err := <-r.done:
			errs = append(errs, err)
		case <-late.C:
			r.closed = true
			errs = append(errs, fmt.Errorf("rank %d: did not leave within %v", r.id, closeTime))
			late.Reset(0)
		}
	}
	return errors.Join(errs...)
}

// leave ends the rank's work in progress and unmaps others' memory.
func (r *rank) leave(failed bool) error {
	var errs []error
	if r.comm != 0 {
		leave := r.s.cfg.NCCL.Destroy
		if failed {
			leave, r.handles = r.s.cfg.NCCL.Abort, nil
		}
		forget := r.s.cfg.NCCL.Deregister
		if r.s.cfg.Register == Symmetric {
			forget = r.s.cfg.NCCL.CloseWindow
		}
		for _, h := range r.handles {
			errs = append(errs, forget(r.comm, h))
		}
		r.handles = nil
		errs = append(errs, leave(r.comm))
		r.comm = 0
	}
	if r.stream != 0 {
		if err := r.settle(); err != nil { // the other processes' memory is still in use
			return errors.Join(append(errs, err)...)
		}
	}
	for _, p := range append(r.opened, r.borrowed...) {
		errs = append(errs, r.dev.Unmap(p))
	}
	r.opened, r.borrowed = nil, nil
	errs = append(errs, r.giveBack())
	return errors.Join(errs...)
}

// settle waits until the GPU is idle, so that it no longer writes to any rank's memory: its stream, then the
// other streams of the free algorithms.
func (r *rank) settle() error {
	for until := time.Now().Add(r.s.cfg.graceTime()); time.Now().Before(until); time.Sleep(
		100 * time.Microsecond) {
		done, err := r.dev.Done(r.stream)
		if done && err == nil && r.free != nil {
			done, err = r.free.Done()
		}
		if done || err != nil {
			return err
		}
	}
	return fmt.Errorf("rank %d: GPU %d is still busy after %v", r.id, r.dev.Index, r.s.cfg.graceTime())
}

// release frees the rank's resources, as far as they were allocated.
func (r *rank) release() error {
	var errs []error
	if r.planned != nil {
		errs = append(errs, r.planned.Close())
	}
	errs = append(errs, r.freeBeside())
	if r.free != nil {
		errs = append(errs, r.free.Close())
	}
	if r.local == 0 && r.s.stop != nil {
		if r.s.disarm != nil {
			r.s.disarm()
		}
		errs = append(errs, r.s.stop.Close(r.dev))
	}
	if r.checker != nil {
		errs = append(errs, r.checker.Close())
	}
	free := r.dev.Free
	if r.s.cfg.Register != Unregistered {
		free = r.s.cfg.NCCL.MemFree
	}
	for _, p := range []cuda.Ptr{r.send, r.recv} {
		if p != 0 {
			errs = append(errs, free(p))
		}
	}
	if r.kernels != nil {
		errs = append(errs, r.kernels.Close())
	}
	for _, e := range append(r.marks, r.begin, r.end) {
		if e != 0 {
			errs = append(errs, r.dev.DestroyEvent(e))
		}
	}
	if r.stream != 0 {
		errs = append(errs, r.dev.DestroyStream(r.stream))
	}
	return errors.Join(errs...)
}
