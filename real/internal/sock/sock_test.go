package sock

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/simccl/simccl/config/netcfg"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/iflist"
	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/real/internal/transport/transporttest"
	"github.com/simccl/simccl/units"
)

func loopback(t *testing.T, set netcfg.Socket) *Net {
	t.Helper()
	set.IfName = "lo"
	n, err := NewNet(set)
	if errors.Is(err, exec.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestContract runs the tests of every transport, for each way of using
// sockets.
func TestContract(t *testing.T) {
	for name, set := range map[string]netcfg.Socket{
		"control socket alone":   {},
		"two helpers, six socks": {Threads: units.Some(2), SocksPerThread: units.Some(3)},
		"one helper, one socket": {Threads: units.Some(1), SocksPerThread: units.Some(1)},
		"nothing inline":         {Inline: units.Some(0)},
		"small parts": {Threads: units.Some(4), SocksPerThread: units.Some(2),
			MinTask: units.Some(1000)},
		"set kernel buffers":      {SndBuf: units.Some(1 << 18), RcvBuf: units.Some(1 << 18)},
		"all inline that can be":  {Inline: units.Some(1 << 17)},
		"more sockets than there": {Threads: units.Some(16), SocksPerThread: units.Some(100)},
	} {
		t.Run(name, func(t *testing.T) {
			transporttest.Contract(t, func(t *testing.T) transporttest.Subject {
				return transporttest.Subject{Net: loopback(t, set), Memory: transporttest.GoMemory}
			})
		})
	}
}

// TestClosedPeerIsAnError: outstanding requests end when the other side closes.
func TestClosedPeerIsAnError(t *testing.T) {
	u := transporttest.Subject{Net: loopback(t, netcfg.Socket{}), Memory: transporttest.GoMemory}
	s, r := transporttest.Pipe(t, u)
	dst := u.Registered(t, r, 64)
	q, err := r.Irecv([]transport.Buf{{Mem: dst, Size: 64}}, []int32{0})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := transporttest.Until(q); !errors.Is(err, ErrPeerClosed) {
		t.Errorf("got %v, want %v", err, ErrPeerClosed)
	}
	if _, err := s.Isend(transport.Buf{Mem: memory(nil)}, 0); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("send on a closed connection: %v", err)
	}
}

// TestStrangersAreRefused: a connection without the token is dropped, and the
// true peer still gets in.
func TestStrangersAreRefused(t *testing.T) {
	n := loopback(t, netcfg.Socket{})
	l, err := n.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	stranger, err := net.Dial("tcp", l.(*listener).inv.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, err := stranger.Write(make([]byte, 17)); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	got := make(chan error, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err == nil {
			err = r.Close()
		}
		got <- err
	}()
	s, err := n.Connect(ctx, 0, l.Handle())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// TestAcceptEnds: no peer connects.
func TestAcceptEnds(t *testing.T) {
	l, err := loopback(t, netcfg.Socket{}).Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := l.Accept(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestChoose(t *testing.T) {
	var all []Interface
	for _, i := range []struct{ name, addr string }{
		{"lo", "127.0.0.1"}, {"lo", "::1"}, {"eth0", "10.0.0.1"}, {"eth0", "fd00::1"}, {"eth1", "fd00::2"},
		{"docker0", "172.17.0.1"}, {"virbr0", "192.168.122.1"}, {"ib0", "10.1.0.1"}, {"ib1", "10.1.0.2"},
	} {
		all = append(all, Interface{Name: i.name, Addr: net.ParseIP(i.addr)})
	}
	for _, c := range []struct {
		ifname, family string
		without        string // interfaces that are not there
		want           []string
	}{
		{"", "", "", []string{"ib0", "ib1"}},
		{"", "", "ib", []string{"eth0", "eth1"}},
		{"", "AF_INET", "ib", []string{"eth0"}},
		{"", "", "ib,eth", []string{"docker0"}},
		{"", "", "ib,eth,docker", []string{"lo"}},
		{"", "", "ib,eth,docker,lo", []string{"virbr0"}},
		{"eth", "AF_INET6", "", []string{"eth0", "eth1"}},
		{"=eth1", "", "", []string{"eth1"}},
		{"^ib,docker,virbr", "AF_INET", "", []string{"lo", "eth0"}},
		{"nosuch", "", "", nil},
	} {
		here := slices.DeleteFunc(slices.Clone(all), func(i Interface) bool {
			return c.without != "" && iflist.Listed(c.without, i.Name, -1)
		})
		var got []string
		for _, i := range choose(here, c.ifname, c.family) {
			got = append(got, i.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("NCCL_SOCKET_IFNAME=%q NCCL_SOCKET_FAMILY=%q without %q: %v, want %v", c.ifname,
				c.family, c.without, got, c.want)
		}
	}
}

func TestNoInterfaceIsTyped(t *testing.T) {
	if _, err := NewNet(netcfg.Socket{IfName: "=nosuchif"}); !errors.Is(err, exec.ErrUnsupported) {
		t.Errorf("got %v, want it to match ErrUnsupported", err)
	}
}

// TestSplit is NCCL's choice of sockets and helpers.
func TestSplit(t *testing.T) {
	for _, c := range []struct {
		threads, per   units.Opt[int]
		socks, helpers int
	}{
		{units.Opt[int]{}, units.Opt[int]{}, 0, 0},
		{units.Some(2), units.Opt[int]{}, 2, 2},
		{units.Some(4), units.Some(4), 16, 4},
		{units.Some(40), units.Some(1), 16, 16},
		{units.Some(10), units.Some(10), 60, 10},
		{units.Some(3), units.Some(0), 0, 0},
	} {
		s := netcfg.Socket{Threads: c.threads, SocksPerThread: c.per}
		if socks, helpers := split(&s, "nosuchif"); socks != c.socks || helpers != c.helpers {
			t.Errorf("threads %v, sockets a thread %v: %d sockets, %d helpers, want %d, %d", c.threads, c.per,
				socks, helpers, c.socks, c.helpers)
		}
	}
}

// foreign is memory of another transport.
type foreign struct{ memory }

// TestBuffersAreInside: a request's buffer is inside memory of this transport, up to both of its ends.
func TestBuffersAreInside(t *testing.T) {
	m := memory(make([]byte, 8))
	for _, c := range []struct {
		buf transport.Buf
		ok  bool
	}{{transport.Buf{Mem: m, Off: 0, Size: 8}, true}, {transport.Buf{Mem: m, Off: 8}, true},
		{transport.Buf{Mem: m, Off: 1, Size: 8}, false}, {transport.Buf{Mem: m, Off: 9}, false},
		{transport.Buf{Mem: m, Off: -1, Size: 4}, false}, {transport.Buf{Mem: m, Off: 4, Size: -1}, false},
		{transport.Buf{Mem: foreign{m}, Size: 4}, false}} {
		conn := &conn{queue: make(chan *request, 1)}
		if r, err := conn.post(c.buf, 0); (err == nil) != c.ok || (r != nil) != c.ok {
			t.Errorf("%d bytes at %d: %v, %v", c.buf.Size, c.buf.Off, r, err)
		}
	}
}
