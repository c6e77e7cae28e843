// Package interrupt ends a command after SIGINT or SIGTERM: nothing that it writes
// appears from then on, its context is cancelled, and what does not end by itself
// in time is cut off.
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

// Error is why a context ended: a signal.
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

// Signal is the signal: by it the other ranks of a bench learn why this one ends.
func (e *Error) Signal() os.Signal { return e.sig }

// Status is the exit status that shells give to a process which the signal ended.
func (e *Error) Status() int { return 128 + int(e.sig) }

// Is makes a signal's error one of a cancelled context too.
func (e *Error) Is(target error) bool { return target == context.Canceled }

// Of is the signal that ended a context; nil if the context has not ended, or
// otherwise. A cancellation without a reason is taken for Ctrl-C.
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
	// grace is how long a command may continue after a signal: what does not poll its
	// context, or waits in a system call, is cut off then. All must be over a second
	// after the signal, and the kernel takes a while to take back gigabytes.
	grace = 300 * time.Millisecond
	// peersGrace is the grace of a rank of several: the root of a bench passes on
	// for 400 ms why it ends.
	peersGrace = 600 * time.Millisecond
	// lastWords is how long the message of a command that was cut off may take:
	// standard error may be a pipe without a reader.
	lastWords = 100 * time.Millisecond
)

// Command is one command of a process. The zero value is ready.
type Command struct {
	// Peers says that other processes have to learn why this one ends.
	Peers atomic.Bool

	said sync.Once
}

// Say calls print, once for a Command: the command that ends by itself and the one
// who cuts it off both name the signal.
func (c *Command) Say(print func()) { c.said.Do(print) }

// Run runs a command, which returns its exit status. The first SIGINT or SIGTERM
// ends it: no file appears after it, its context is cancelled, and it has the
// grace to end by itself; say then prints the signal. A second one ends it at once.
//
// Also a signal that was ignored when the process began is handled: a script's
// background commands begin so, and are to end when a signal is sent to them.
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

// end has the command end after a signal.
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
