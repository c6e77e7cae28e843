//go:build !webpage

package root

import (
	"context"
	"io/fs"
	"net"

	"github.com/simccl/simccl/app/web/page/site"
)

// servePage is never called: a program built without the page has returned an error before.
func servePage(context.Context, net.Listener, fs.FS) error { return site.ErrNotBuilt }
