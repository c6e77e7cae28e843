package host

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/config/netcfg"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/real/internal/transport/transporttest"
	"github.com/simccl/simccl/real/internal/verbs"
	"github.com/simccl/simccl/trace"
)

// deaf is a net whose senders receive no clear-to-send after the first few.
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
	c := machine(t, "dgx-h100", 1, 2)
	j := job{coll.AllReduce, coll.Ring, coll.Simple, coll.Float32, coll.Sum, 40_000, 0, false}
	for name, open := range map[string]func(*testing.T) *Wire{
		"sockets": loopback, "verbs": func(t *testing.T) *Wire { return verbsWire(t, netcfg.IB{}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			w.Net = deaf{w.Net, 3}
			e := New(Config{Timeout: 3 * time.Second, Wire: w})
			_, err := e.Run(context.Background(), exec.One(j.plan(t, c, 1)), trace.Discard)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(),
				"no clear-to-send from rank 1 for message 3") {
				t.Errorf("got %v, want a time-out that names the message", err)
			}
		})
	}
}

// impatient gives up on a peer after some tens of milliseconds. Soft-RoCE takes
// 7 retries, NCCL's default, for retries without end.
var impatient = netcfg.IB{Service: &netcfg.Service{Timeout: 12, Retry: 6}}

// TestOperationsOnADisturbedWire: packets are lost, late, doubled and damaged,
// and every element is right.
func TestOperationsOnADisturbedWire(t *testing.T) {
	c := machine(t, "dgx-h100", 1, 4)
	list := []job{
		{coll.AllReduce, coll.Ring, coll.Simple, coll.Float32, coll.Sum, 4001, 0, false},
		{coll.AllReduce, coll.Tree, coll.LL, coll.Int64, coll.Max, 1001, 0, true},
		{f: coll.AllToAll, typ: coll.Uint8, count: 3001},
	}
	for _, what := range []string{"loss 1%", "delay 2ms 1ms", "duplicate 2%", "corrupt 1%"} {
		t.Run(what, func(t *testing.T) {
			w := verbsWire(t, impatient)
			transporttest.Disturb(t, what)
			runAll(t, New(Config{Wire: w, Seed: 9}), c, list, 1)
		})
	}
}

// TestCutWireEndsAnOperation in its midst: an error that names rank, peer and
// verb, and soon.
func TestCutWireEndsAnOperation(t *testing.T) {
	c := machine(t, "dgx-h100", 1, 4)
	j := job{coll.AllReduce, coll.Ring, coll.Simple, coll.Float32, coll.Sum, 4001, 0, false}
	s, err := New(Config{Wire: verbsWire(t, impatient)}).Open(context.Background(), j.plan(t, c, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(false)
	ended := make(chan error, 1)
	go func() {
		_, err := s.Iterate(context.Background(), 1_000_000)
		ended <- err
	}()
	time.Sleep(200 * time.Millisecond)
	began := time.Now()
	mend := transporttest.Disturb(t, "loss 100%")
	select {
	case err = <-ended:
	case <-time.After(20 * time.Minute):
		t.Fatal("no end after 20 minutes")
	}
	mend()
	t.Logf("after %v: %v", time.Since(began).Round(time.Millisecond), err)
	var ce *verbs.CompletionError
	if !errors.As(err, &ce) || !strings.Contains(err.Error(), "rank") {
		t.Errorf("got %v, want a failed completion and its rank", err)
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
	e := New(Config{Wire: &Wire{Net: broken{}, Device: func(int32, int32) int { return 0 },
		Exchange: NewInProcess().Of}})
	if _, err := e.Run(context.Background(), exec.One(j.plan(t, c, 1)), trace.Discard); !errors.Is(err,
		errNoListen) {
		t.Errorf("got %v, want %v", err, errNoListen)
	}
}
