package host

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/real/sock"
	"github.com/simccl/simccl/real/transport"
	"github.com/simccl/simccl/trace"
)

// deaf is a net whose senders hear no clear-to-send after the first few.
type deaf struct {
	transport.Net
	after int
}

func (d deaf) Connect(ctx context.Context, dev int, to transport.Handle) (transport.SendComm, error) {
	s, err := d.Net.Connect(ctx, dev, to)
	return &deafSender{s, d.after}, err
}

type deafSender struct {
	transport.SendComm
	left int
}

func (d *deafSender) Isend(b transport.Buf, tag int32) (transport.Request, error) {
	if d.left == 0 {
		return nil, nil
	}
	r, err := d.SendComm.Isend(b, tag)
	if r != nil {
		d.left--
	}
	return r, err
}

// TestLostClearToSendIsNamed: a run that waits for ever ends at its limit and
// says who waits for whom.
func TestLostClearToSendIsNamed(t *testing.T) {
	n, err := sock.NewNet(sock.Settings{IfName: "lo"})
	if err != nil {
		t.Skip(err)
	}
	c := machine(t, "dgx-h100", 1, 2)
	j := job{coll.AllReduce, coll.Ring, coll.Simple, coll.Float32, coll.Sum, 40_000, 0, false}
	e := New(Config{Timeout: 300 * time.Millisecond, Wire: &Wire{Net: deaf{n, 3}, Device: func(int32, int32) int { return 0 }, Exchange: NewInProcess().Of}})
	_, err = e.Run(context.Background(), j.plan(t, c, 1), trace.Discard)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no clear-to-send from rank 1 for message 3") {
		t.Errorf("got %v, want a time-out that names the message", err)
	}
}

// broken is a net on which one end cannot listen.
type broken struct{ transport.Net }

var errNoListen = errors.New("cannot listen")

func (broken) Listen(int) (transport.Listener, error) { return nil, errNoListen }

// TestConnectFailureEndsAll: senders that wait for a handle do not wait for
// ever.
func TestConnectFailureEndsAll(t *testing.T) {
	c := machine(t, "dgx-h100", 1, 2)
	j := job{coll.AllReduce, coll.Ring, coll.Simple, coll.Float32, coll.Sum, 100, 0, false}
	e := New(Config{Wire: &Wire{Net: broken{}, Device: func(int32, int32) int { return 0 }, Exchange: NewInProcess().Of}})
	if _, err := e.Run(context.Background(), j.plan(t, c, 1), trace.Discard); !errors.Is(err, errNoListen) {
		t.Errorf("got %v, want %v", err, errNoListen)
	}
}
