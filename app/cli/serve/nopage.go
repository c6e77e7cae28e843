//go:build !webpage

package serve

import (
	"context"
	"io/fs"
	"net"

	"github.com/simccl/simccl/app/web/page/site"
)

// serve is never called: a program built without the page has returned an error before.
func serve(context.Context, net.Listener, fs.FS) error { return site.ErrNotBuilt }
