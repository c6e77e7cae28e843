//go:build webpage

package root

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"time"

	webpage "github.com/simccl/simccl/app/web/page"
)

// Limits of a connection: all clients are on this machine.
const (
	headerTime = 10 * time.Second
	answerTime = time.Minute // of a file; a client that reads slower is let go
	idleTime   = 2 * time.Minute
	headerSize = 64 << 10
	goodbye    = 2 * time.Second // for answers that are being sent
)

// servePage answers requests until the context ends.
func servePage(ctx context.Context, l net.Listener, page fs.FS) error {
	s := &http.Server{Handler: webpage.Handler(page), ReadHeaderTimeout: headerTime, ReadTimeout: headerTime,
		WriteTimeout: answerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerSize}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		if !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	case <-ctx.Done():
	}
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer stop()
	s.Shutdown(last) //nolint:errcheck // it ends in any case
	return ctx.Err()
}
