package transport

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// Admit accepts connections until take returns true. check must validate the first bytes of a connection
// within the timeout, and call known once the dialer is authenticated and before the dialer learns that;
// other connections are closed. A slow client does not block others. take must close the connections that it
// does not keep.
func Admit[T any](ctx context.Context, ln *net.TCPListener, timeout time.Duration,
	check func(c net.Conn, known func()) (T, error), take func(net.Conn, T) (enough bool)) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	// A past deadline ends the wait and leaves the listener usable.
	stop := context.AfterFunc(ctx, func() { _ = ln.SetDeadline(time.Unix(1, 0)) })
	type caller struct {
		conn net.Conn
		word T
	}
	arrived := make(chan caller)
	var all sync.WaitGroup
	all.Go(func() {
		end(Serve(ln, 0, func(c net.Conn, known func()) {
			_ = c.SetDeadline(time.Now().Add(timeout))
			// The end of all waiting ends this wait too.
			unwatch := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
			word, err := check(c, known)
			if unwatch() && err == nil {
				select {
				case arrived <- caller{c, word}:
					return
				case <-ctx.Done():
				}
			}
			c.Close()
		}))
	})
	defer func() {
		end(nil)
		all.Wait()
		if !stop() {
			_ = ln.SetDeadline(time.Time{})
		}
	}()
	for {
		select {
		case g := <-arrived:
			_ = g.conn.SetDeadline(time.Time{})
			if take(g.conn, g.word) {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("accept: %w", context.Cause(ctx))
		}
	}
}
