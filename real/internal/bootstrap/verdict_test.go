package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/simccl/simccl/real/internal/transport"
)

// signalled is a context's cause that carries a signal.
type signalled struct{ sig os.Signal }

func (s signalled) Error() string     { return "the user's " + s.sig.String() }
func (s signalled) Signal() os.Signal { return s.sig }

// TestVerdictsSurviveTheWire: every rank makes the error of a verdict that the
// root had.
func TestVerdictsSurviveTheWire(t *testing.T) {
	for _, v := range []verdict{
		{Kind: kindDead, Rank: 3, Text: "no sign of life for 5s"},
		{Kind: kindAbort, Rank: 1, Text: "QP 17 in error"},
		{Kind: kindInterrupt, Rank: 2, Text: "SIGTERM"},
		{Kind: kindTimeout, Text: "bootstrap", Ranks: []int{4, 7}},
		{Kind: kindMismatch, Rank: 1, Text: "rank 1 reported twice"},
	} {
		got := readVerdict(v.frame(frVerdict).payload)
		if got.Kind != v.Kind || got.err().Error() != v.err().Error() {
			t.Errorf("%+v arrives as %+v", v, got)
		}
	}
}

// TestVerdictsAreBounded: a hostile rank's reason neither floods nor steers the
// others' terminals.
func TestVerdictsAreBounded(t *testing.T) {
	v := verdict{Kind: kindAbort, Text: "\x1b[2J\u009b31m\u202eowned\x7f" + strings.Repeat("x", 3*maxReason)}
	got := readVerdict(v.frame(frAbort).payload).Text
	if len(got) > maxReason+3 || !strings.HasPrefix(got, "[2J31mowned") {
		t.Errorf("%d bytes: %.20q", len(got), got)
	}
	for _, bad := range [][]byte{nil, []byte("{"), []byte(`{"rank":"x"}`), bytes.Repeat([]byte(" "), 1<<20)} {
		if v := readVerdict(bad); v.Kind != kindAbort {
			t.Errorf("%.10q is %+v", bad, v)
		}
	}
}

// TestAnInterruptedRankIsNamedByAll, with its signal, and by nothing else,
// although their connections with it, and then with each other, break too.
func TestAnInterruptedRankIsNamedByAll(t *testing.T) {
	for cause, name := range map[error]string{
		signalled{syscall.SIGTERM}:              "SIGTERM",
		errors.New("interrupt signal received"): "SIGINT", // as os/signal's contexts have it
	} {
		errs := world(t, 5, quick, func(c *Group) error {
			if c.Rank() == 2 {
				c.Abort(cause)
				return nil
			}
			for {
				if _, err := c.AllGather(nil); err != nil {
					return err
				}
			}
		})
		for r, err := range errs {
			var by *InterruptError
			if r != 2 && (!errors.As(err, &by) || by.Rank != 2 || by.Signal != name) {
				t.Errorf("rank %d says %v, want rank 2 interrupted by %s", r, err, name)
			}
		}
	}
}

// TestInterruptedWhileTheOthersCome: a rank whose context ends before all ranks
// are there informs those that are.
func TestInterruptedWhileTheOthersCome(t *testing.T) {
	secret, _ := NewSecret()
	root, err := NewRoot("127.0.0.1:0", 3, secret, quick)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	errs := make([]chan error, 2)
	for r := range errs {
		errs[r] = make(chan error, 1)
		mine := ctx
		if r == 0 {
			mine = context.Background()
		}
		go func() {
			_, err := Join(mine, root.ID(), r, 3, quick)
			errs[r] <- err
		}()
	}
	for joined := 0; joined < 2; time.Sleep(time.Millisecond) {
		root.mu.Lock()
		joined = root.joined
		root.mu.Unlock()
	}
	cause := signalled{syscall.SIGINT}
	cancel(cause)
	if err := <-errs[1]; !errors.Is(err, cause) {
		t.Errorf("the interrupted rank says %v", err)
	}
	var by *InterruptError
	if err := <-errs[0]; !errors.As(err, &by) || by.Rank != 1 || by.Signal != "SIGINT" {
		t.Errorf("the other says %v", err)
	}
	if err := root.Wait(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestStrangersDoNotCrowdOutRanks: more silent connections than the root keeps
// hold up no rank, and the oldest are closed.
func TestStrangersDoNotCrowdOutRanks(t *testing.T) {
	secret, _ := NewSecret()
	root, err := NewRoot("127.0.0.1:0", 2, secret, quick)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var all []net.Conn
	for range transport.MaxUnproven() + 2 + 10 {
		c, err := net.Dial("tcp", root.ID().Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all = append(all, c)
	}
	for i, c := range all[:10] {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("stranger %d is answered", i)
		}
	}
	errs := make(chan error, 2)
	for r := range 2 {
		go func() {
			c, err := Join(context.Background(), root.ID(), r, 2, quick)
			if err == nil {
				err = c.Barrier()
				c.Close()
			}
			errs <- err
		}()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestASquatterIsNoRoot: who listens in the root's place, and says nothing that
// a root says, is distinguished from a root with another secret.
func TestASquatterIsNoRoot(t *testing.T) {
	for mode, serve := range map[string]func(net.Conn){
		"closes":  func(c net.Conn) { c.Close() },
		"garbage": func(c net.Conn) { _, _ = c.Write(bytes.Repeat([]byte("garbage"), 1000)); c.Close() },
		"echo":    func(c net.Conn) { b := make([]byte, 4096); n, _ := c.Read(b); _, _ = c.Write(b[:n]) },
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				serve(c)
			}
		}()
		secret, _ := NewSecret()
		_, err = Join(context.Background(), ID{Addr: ln.Addr().String(), Secret: secret}, 1, 2, quick)
		if !errors.Is(err, ErrNoRank) {
			t.Errorf("squatter that %s: %v", mode, err)
		}
		ln.Close()
	}
}

// FuzzMember: a rank that knows the secret, and says anything, makes no other
// rank crash, hang, or take it for a whole communicator.
func FuzzMember(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 3, 0, 0, 0, 'a', ':', '1'}, uint8(1), uint32(1), uint32(2))
	f.Add([]byte{9, 255, 255, 255, 255, 0, 0, 0, 0, 5, 9, 9, 9, 9, 0, 0, 0, 0}, uint8(3), uint32(1),
		uint32(2))
	f.Add([]byte{5, 0, 0, 0, 0, 2, 0, 0, 0, 'x', 'y'}, uint8(2), uint32(0xffffffff), uint32(2))
	f.Add(append([]byte{1, 0, 0, 0, 0, 1, 0, 0, 0, 'a', 5, 0, 0, 0, 0, 29, 0, 0, 0},
		`{"kind":"timeout","ranks":[9]}`...), uint8(1), uint32(1), uint32(2))
	f.Fuzz(func(t *testing.T, says []byte, as uint8, rank, n uint32) {
		opt := Options{Join: 150 * time.Millisecond, Op: 150 * time.Millisecond, Ping: 20 * time.Millisecond,
			Silence: 150 * time.Millisecond}
		secret := [secretSize]byte{7}
		root, err := NewRoot("127.0.0.1:0", 2, secret, opt)
		if err != nil {
			t.Skip(err)
		}
		defer root.Close()
		done := make(chan error, 1)
		// A member may name an address where no one answers: that lasts as long as a
		// handshake may, and longer than the fuzzer lets an input take.
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		go func() {
			c, err := Join(ctx, root.ID(), 0, 2, opt)
			if err == nil {
				_, err = c.AllGather([]byte("x"))
				c.Close()
			}
			done <- err
		}()
		if c, err := net.Dial("tcp", root.ID().Addr); err == nil {
			if safe, err := greet(c, secret, greeting{role(as), rank, n}); err == nil {
				_, _ = safe.Write(says)
			}
			time.AfterFunc(100*time.Millisecond, func() { c.Close() })
		}
		if err := <-done; err == nil {
			t.Fatal("a lone rank joined")
		}
	})
}

// TestAnAddressThatIsNoneIsNotTriedAgain: a member that reports an address
// without a port ends the job at once, not after the time of a handshake.
func TestAnAddressThatIsNoneIsNotTriedAgain(t *testing.T) {
	c := &Group{opt: Options{}.withDefaults(), failed: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		_, err := c.dial(context.Background(), "a", roleRing)
		done <- err
	}()
	var wrong *net.AddrError
	if err := <-done; !errors.As(err, &wrong) {
		t.Errorf("%v", err)
	}
}
