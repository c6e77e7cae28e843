package root

import (
	"context"
	"fmt"
	"net"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/web/page/site"
	"github.com/simccl/simccl/internal/fail"
	"github.com/spf13/cobra"
)

// ServeOptions are the flags and arguments of serve.
type ServeOptions struct {
	Listen string // ADDRESS:PORT of the loopback; port 0: a free one
}

// Serve returns `simccl serve`.
func Serve(a *cli.App) *cobra.Command {
	var o ServeOptions
	c := &cobra.Command{Use: "serve", Short: "Serve the web page to a browser of this machine",
		Long: `serve serves the web page: machines, curves, reasons, timelines and what-ifs, with
the simulator in the browser. It prints the address and serves until a signal ends
it. It listens on the loopback alone, and refuses requests for other hosts; files
that are dropped on the page stay in the browser.`,
		Example: "  simccl serve\n  simccl serve --listen 127.0.0.1:8080",
		Args:    cli.Exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.Run(cmd.Context(), a) }}
	c.Flags().StringVar(&o.Listen, "listen", "127.0.0.1:0",
		"`ADDRESS` of the loopback to listen on; port 0: a free one")
	return c
}

// Run serves the page until the context ends.
func (o *ServeOptions) Run(ctx context.Context, a *cli.App) error {
	page, err := site.Page()
	if err != nil {
		return fail.Unavailable(err)
	}
	if err := onLoopback(o.Listen); err != nil {
		return err
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return fail.Usage("--listen %s: %v", o.Listen, err)
	}
	address := "http://" + l.Addr().String() + "/"
	if a.JSON {
		err = a.PrintJSON(map[string]string{"address": address})
	} else {
		_, err = fmt.Fprintln(a.Out, address)
	}
	if err != nil {
		l.Close()
		return err
	}
	return servePage(ctx, l, page)
}

// onLoopback returns an error for an address that other machines could reach.
func onLoopback(listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fail.Usage("--listen %s: write an address and a port, 127.0.0.1:8080; port 0 is a free one",
			listen)
	}
	ip := net.ParseIP(host)
	if host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fail.Usage("--listen %s: the page is served on the loopback alone; write 127.0.0.1:0, and reach "+
		"it from elsewhere by ssh -L", listen)
}
