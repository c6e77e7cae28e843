package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
)

// exhausted is a listener whose process has no descriptors at times.
type exhausted struct {
	net.Listener
	fail atomic.Int32
}

func (e *exhausted) Accept() (net.Conn, error) {
	if e.fail.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return e.Listener.Accept()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

func dial(t *testing.T, ln net.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestServeSurvivesALackOfDescriptors: it waits and serves on, and makes room by
// closing the unknown peer that has been there longest. A closed listener ends it.
func TestServeSurvivesALackOfDescriptors(t *testing.T) {
	ln := &exhausted{Listener: listen(t)}
	ended := make(chan error, 1)
	accepted := make(chan bool, 8)
	go func() {
		ended <- Serve(ln, 0, func(c net.Conn, known func()) {
			accepted <- true
			var b [1]byte
			if _, err := io.ReadFull(c, b[:]); err == nil {
				_, _ = c.Write(b[:])
			}
			c.Close()
		})
	}()
	silent := dial(t, ln)
	young := dial(t, ln) // which may stay
	<-accepted
	<-accepted // else the lack would come before there is one to close
	ln.fail.Store(3)
	dial(t, ln).Close() // wakes the accept in flight
	if _, err := silent.Read(make([]byte, 1)); !errors.Is(err, io.EOF) &&
		!errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the oldest stranger is not closed: %v", err)
	}
	c := dial(t, ln)
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); string(got) != "x" {
		t.Errorf("after the lack: %q, %v", got, err)
	}
	ln.Close()
	young.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener: %v", err)
	}
}

// TestServeKeepsThoseItKnows: beyond the limit the oldest unproven connection
// goes, and none that has proven itself.
func TestServeKeepsThoseItKnows(t *testing.T) {
	ln := listen(t)
	proven := make(chan bool)
	go func() {
		_ = Serve(ln, 2-MaxUnproven(), func(c net.Conn, known func()) {
			var b [1]byte
			for {
				if _, err := io.ReadFull(c, b[:]); err != nil {
					c.Close()
					return
				}
				known()
				known() // does nothing
				proven <- true
			}
		})
	}()
	caller := dial(t, ln)
	if _, err := caller.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	<-proven
	var unproven []net.Conn
	for range 5 {
		unproven = append(unproven, dial(t, ln))
	}
	for i, c := range unproven[:3] {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("stranger %d is answered", i)
		}
	}
	if _, err := caller.Write([]byte("y")); err != nil {
		t.Fatal(err)
	}
	<-proven
	if _, err := unproven[4].Write([]byte("z")); err != nil {
		t.Fatal(err)
	}
	<-proven
}

// TestKeys: the peer of a handle is known by both sides, an unknown peer by neither;
// the listener shows nothing that depends on the key before the caller's proof,
// and the key never goes over the wire.
func TestKeys(t *testing.T) {
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	other := key
	other[0] ^= 1
	for _, c := range []struct {
		name    string
		dialer  Key
		refused bool
	}{{"peer", key, false}, {"stranger", other, true}} {
		near, far := net.Pipe()
		type checked struct {
			which byte
			err   error
		}
		done := make(chan checked, 1)
		go func() {
			which, err := key.Check(far, func() {})
			if err != nil {
				far.Close()
			}
			done <- checked{which, err}
		}()
		err := c.dialer.Prove(near, 7)
		got := <-done
		if (err != nil) != c.refused || (got.err != nil) != c.refused || !c.refused && got.which != 7 ||
			c.refused && !errors.Is(got.err, ErrUnknownPeer) {
			t.Errorf("%s: %v; the listener has %d, %v", c.name, err, got.which, got.err)
		}
		near.Close()
		far.Close()
	}
	// A squatter at the listener's address.
	near, far := net.Pipe()
	go func() { _, _ = other.Check(far, func() {}); _, _ = far.Write(make([]byte, 32)) }()
	if err := key.Prove(near, 0); !errors.Is(err, ErrUnknownPeer) {
		t.Errorf("squatter: %v", err)
	}
	near.Close()
	far.Close()
}
