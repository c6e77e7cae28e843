package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/internal/terminal"
)

// signalError is why a context ended: a signal. Its exit status is the one that
// shells give to a process which a signal ended.
type signalError struct{ sig syscall.Signal }

func (e *signalError) Error() string {
	switch e.sig {
	case syscall.SIGINT:
		return "interrupted"
	case syscall.SIGTERM:
		return "terminated"
	}
	return e.sig.String()
}

// Signal is the signal: by it the other ranks of a bench learn why this one ends.
func (e *signalError) Signal() os.Signal { return e.sig }

func (e *signalError) status() int { return 128 + int(e.sig) }

// Is makes a signal's error one of a cancelled context too.
func (e *signalError) Is(target error) bool { return target == context.Canceled }

// interruption is the signal that ended a context; nil if the context has not
// ended, or otherwise. Who cancels it without a reason is taken for Ctrl-C.
func interruption(ctx context.Context) *signalError {
	var s *signalError
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &s):
		return s
	case cause == context.Canceled:
		return &signalError{syscall.SIGINT}
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

// start runs a command line and returns the exit status. The first SIGINT or
// SIGTERM ends the command: no file appears after it, its context is
// cancelled, and it has the grace to end by itself. A second one ends it at once.
//
// Also a signal that was ignored when the process began is handled: a script's
// background commands begin so, and are to end when a signal is sent to them.
func start(args []string, a *app) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	done := make(chan int, 1)
	a.last = &lastLine{}
	go func() { done <- run(ctx, args, a) }()
	select {
	case code := <-done:
		return code
	case s := <-signals:
		sig, _ := s.(syscall.Signal)
		return a.end(&signalError{sig}, cancel, done, signals)
	}
}

// end has a command end after a signal.
func (a *app) end(why *signalError, cancel context.CancelCauseFunc, done <-chan int, signals <-chan os.Signal) int {
	abandoned := make(chan struct{})
	go func() { // a file system may hang
		newfile.Abandon(why)
		close(abandoned)
	}()
	limit := time.After(grace)
	if a.last.peers.Load() {
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
		a.sayInterrupted(why)
		close(said)
	}()
	select {
	case <-said:
	case <-time.After(lastWords):
	}
	return why.status()
}

// lastLine is shared by the command that ends by itself and the one who cuts it
// off: one of them names the signal.
type lastLine struct {
	once    sync.Once
	peers   atomic.Bool // other processes have to learn why this one ends
	showing atomic.Pointer[terminal.Progress]
}

// sayInterrupted prints the one line about a signal, in place of a progress line.
func (a *app) sayInterrupted(why *signalError) {
	a.last.once.Do(func() {
		if p := a.last.showing.Load(); p != nil {
			p.End()
		}
		fmt.Fprintf(a.err, "%s %v\n", a.paint(a.err).Red("simccl:"), why)
	})
}
