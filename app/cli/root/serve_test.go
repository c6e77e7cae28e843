package root

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/web/page/site"
)

// Other machines cannot reach the page: only addresses of the loopback are listened on.
func TestOnLoopback(t *testing.T) {
	for listen, ok := range map[string]bool{"127.0.0.1:0": true, "127.8.8.8:80": true, "localhost:80": true,
		"[::1]:80":   true,
		"0.0.0.0:80": false, ":80": false, "[::]:80": false, "10.0.0.1:80": false, "example.org:80": false,
		"127.0.0.1": false, "": false} {
		if err := onLoopback(listen); (err == nil) != ok {
			t.Errorf("%q: %v", listen, err)
		}
	}
}

// address receives what serve prints first.
type address chan string

func (a address) Write(p []byte) (int, error) { a <- strings.TrimSpace(string(p)); return len(p), nil }

// A program with the page serves it until it is ended; one without says how to build it.
func TestServe(t *testing.T) {
	a := &cli.App{}
	if _, err := site.Page(); err != nil {
		a.Out = &bytes.Buffer{}
		o := &ServeOptions{Listen: "127.0.0.1:0"}
		if err := o.Run(context.Background(), a); !errors.Is(err, site.ErrNotBuilt) {
			t.Errorf("without a page: %v", err)
		}
		return
	}
	out := make(address, 1)
	a.Out = out
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- (&ServeOptions{Listen: "127.0.0.1:0"}).Run(ctx, a) }()
	r, err := http.Get(<-out)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Error(r.Status)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}
