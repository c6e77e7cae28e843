// Package interrupt ends a command after SIGINT or SIGTERM: from then on none of its output files appear, its
// context is cancelled, and after a grace period the process exits.
package interrupt

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/simccl/simccl/internal/newfile"
)

// Error is the cause of a cancelled context: a signal.
type Error struct{ sig syscall.Signal }

func (e *Error) Error() string {
	switch e.sig {
	case syscall.SIGINT:
		return "interrupted"
	case syscall.SIGTERM:
		return "terminated"
	}
	return e.sig.String()
}

// Signal returns the signal; a bench reports it to the other ranks.
func (e *Error) Signal() os.Signal { return e.sig }

// Status returns 128 plus the signal, the exit status of shells.
func (e *Error) Status() int { return 128 + int(e.sig) }

// Is makes errors.Is(err, context.Canceled) true.
func (e *Error) Is(target error) bool { return target == context.Canceled }

// Of returns the signal that ended a context; nil if the context has not ended, or for another reason. A
// cancellation without a cause counts as Ctrl-C.
func Of(ctx context.Context) *Error {
	var s *Error
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &s):
		return s
	case cause == context.Canceled:
		return &Error{syscall.SIGINT}
	}
	return nil
}

const (
	// grace is the time that a command has to end after a signal. Code that does not poll its context, or
	// waits in a system call, is then cut off. The process should have exited a second after the signal, and
	// the kernel needs time to free gigabytes.
	grace = 300 * time.Millisecond
	// peersGrace is the grace of a rank of several: the root of a bench passes on
	// for 400 ms why it ends.
	peersGrace = 600 * time.Millisecond
	// lastWords is the time limit for the message of a command that is cut off: standard error may be a pipe
	// without a reader.
	lastWords = 100 * time.Millisecond
)

// Command runs a command of the process and ends it on SIGINT and SIGTERM. The zero value is ready.
type Command struct {
	// Peers reports that other processes of the run must be informed why this one ends, which extends the
	// grace period.
	Peers atomic.Bool

	said sync.Once
}

// Say calls print at most once: both the command that ends by itself and the handler that cuts it off report
// the signal.
func (c *Command) Say(print func()) { c.said.Do(print) }

// Run executes a command and returns its exit status. The first SIGINT or SIGTERM ends it: none of its files
// appear after it, its context is cancelled, and it may end by itself within the grace period; say then
// prints the signal. A second signal ends it at once.
//
// A signal that was ignored when the process started is handled too: shells start background commands of
// scripts so, and a signal should end these.
func (c *Command) Run(command func(ctx context.Context) int, say func(*Error)) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	done := make(chan int, 1)
	go func() { done <- command(ctx) }()
	select {
	case code := <-done:
		return code
	case s := <-signals:
		sig, _ := s.(syscall.Signal)
		why := &Error{sig}
		return c.end(why, cancel, done, signals, func() { say(why) })
	}
}

// end ends the command after a signal and returns its exit status.
func (c *Command) end(why *Error, cancel context.CancelCauseFunc, done <-chan int, signals <-chan os.Signal,
	say func()) int {
	abandoned := make(chan struct{})
	go func() { // a file system may hang
		newfile.Abandon(why)
		close(abandoned)
	}()
	limit := time.After(grace)
	if c.Peers.Load() {
		limit = time.After(peersGrace)
	}
	select {
	case <-abandoned:
	case <-limit:
	}
	cancel(why)
	select {
	case code := <-done:
		return code
	case <-signals:
	case <-limit:
	}
	said := make(chan struct{})
	go func() {
		c.Say(say)
		close(said)
	}()
	select {
	case <-said:
	case <-time.After(lastWords):
	}
	return why.Status()
}
