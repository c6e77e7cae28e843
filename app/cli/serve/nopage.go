//go:build !webpage

package serve

import (
	"context"
	"io/fs"
	"net"

	"github.com/simccl/simccl/app/web/page/site"
)

// serve is not reached: a program without the page has ended before.
func serve(context.Context, net.Listener, fs.FS) error { return site.ErrNotBuilt }
