package sock

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/simccl/simccl/config/netcfg"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/real/internal/transport"
)

// Net is the transport over the selected interfaces.
type Net struct {
	set netcfg.Socket
	ifs []Interface
}

var _ transport.Net = (*Net)(nil)

// NewNet selects the interfaces. Error: *exec.UnsupportedError if there are none.
func NewNet(set netcfg.Socket) (*Net, error) {
	all, err := interfaces()
	if err != nil {
		return nil, err
	}
	n := &Net{set: set, ifs: choose(all, set.IfName, set.Family)}
	if len(n.ifs) == 0 {
		return nil, absent(set.IfName, set.Family)
	}
	if !set.Inline.Set {
		n.set.Inline.Value = 128
	}
	if !set.MinTask.Set {
		n.set.MinTask.Value = 1 << 16
	}
	if in, task := n.set.Inline.Value, n.set.MinTask.Value; in < 0 || in > maxInline || task < 1 ||
		task > maxTask {
		return nil, fmt.Errorf("sockets: NCCL_SOCKET_INLINE=%d and NCCL_SOCKET_MIN_TASKSIZE=%d: bytes from "+
			"0 to %d and from 1 to %d", in, task, maxInline, maxTask)
	}
	return n, nil
}

// Name returns the plugin's name in NCCL's logs.
func (n *Net) Name() string { return "Socket" }

// Devices lists the interfaces in use.
func (n *Net) Devices() ([]transport.Properties, error) {
	var out []transport.Properties
	for _, i := range n.ifs {
		out = append(out, transport.Properties{Name: i.Name, Mbps: speed(i.Name), MaxRecvs: 1})
	}
	return out, nil
}

// Close does nothing: connections are closed one by one.
func (n *Net) Close() error { return nil }

// invitation is the content of a Handle. The sender opens as many sockets as it says.
type invitation struct {
	Addr           string
	Key            transport.Key
	Socks, Threads int
	Inline         int
	MinTask        int
}

// Limits of the inline part of a message, and of the size of a part on one socket.
const (
	maxInline = 16 << 20
	maxTask   = 1 << 30
)

// check returns an error for handles that none of our listeners writes.
func (v *invitation) check() error {
	switch {
	case v.Socks < 0 || v.Socks > connect.MaxSockets || v.Threads < 0 ||
		v.Threads > connect.MaxSocketThreads || (v.Socks > 0) != (v.Threads > 0):
		return fmt.Errorf("a handle with %d sockets and %d helpers", v.Socks, v.Threads)
	case v.Inline < 0 || v.Inline > maxInline || v.MinTask < 1 || v.MinTask > maxTask:
		return fmt.Errorf("a handle with %d bytes inline and parts of %d bytes or more", v.Inline, v.MinTask)
	}
	addr, err := netip.ParseAddrPort(v.Addr)
	if err != nil || addr.Port() == 0 {
		return fmt.Errorf("a handle with the address %q", v.Addr)
	}
	return nil
}

type listener struct {
	net *Net
	ln  *net.TCPListener
	inv invitation
}

func (n *Net) device(dev int) (Interface, error) {
	if dev < 0 || dev >= len(n.ifs) {
		return Interface{}, fmt.Errorf("no network interface %d, there are %d", dev, len(n.ifs))
	}
	return n.ifs[dev], nil
}

// Listen waits for a sender on an interface.
func (n *Net) Listen(dev int) (transport.Listener, error) {
	i, err := n.device(dev)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: i.Addr, Zone: i.Zone})
	if err != nil {
		return nil, err
	}
	l := &listener{net: n, ln: ln, inv: invitation{Addr: ln.Addr().String(), Inline: n.set.Inline.Value,
		MinTask: n.set.MinTask.Value}}
	l.inv.Socks, l.inv.Threads = split(&n.set, i.Name)
	l.inv.Key, err = transport.NewKey()
	return l, err
}

func (l *listener) Handle() transport.Handle {
	b, _ := json.Marshal(l.inv)
	return b
}

func (l *listener) Close() error { return l.ln.Close() }

// setupTime bounds the time of a new connection to prove the handle's key.
const setupTime = 20 * time.Second

// Accept accepts all sockets of the first peer that proves the handle's key.
func (l *listener) Accept(ctx context.Context) (transport.RecvComm, error) {
	socks, got := make([]net.Conn, l.inv.Socks+1), 0
	err := transport.Admit(ctx, l.ln, setupTime, l.inv.Key.Check, func(c net.Conn, which byte) bool {
		k := int(which)
		if k >= len(socks) || socks[k] != nil {
			c.Close()
			return false
		}
		l.net.tune(c)
		socks[k] = c
		got++
		return got == len(socks)
	})
	if err != nil {
		for _, s := range socks {
			if s != nil {
				s.Close()
			}
		}
		return nil, err
	}
	return &recvComm{newConn(socks, &l.inv, false)}, nil
}

// Connect connects to a listener.
func (n *Net) Connect(ctx context.Context, dev int, to transport.Handle) (transport.SendComm, error) {
	i, err := n.device(dev)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	var inv invitation
	if err := json.Unmarshal(to, &inv); err != nil {
		return nil, fmt.Errorf("connect: not a handle of this transport: %w", err)
	}
	if err := inv.check(); err != nil {
		return nil, fmt.Errorf("connect: not a handle of this transport: %w", err)
	}
	var socks []net.Conn
	for k := range inv.Socks + 1 {
		c, err := n.dial(ctx, i, &inv, k)
		if err != nil {
			for _, s := range socks {
				s.Close()
			}
			return nil, fmt.Errorf("connect to %s: %w", inv.Addr, err)
		}
		socks = append(socks, c)
	}
	return &sendComm{newConn(socks, &inv, true)}, nil
}

func (n *Net) dial(ctx context.Context, i Interface, inv *invitation, k int) (net.Conn, error) {
	d := net.Dialer{Timeout: setupTime}
	host, _, err := net.SplitHostPort(inv.Addr)
	if err != nil {
		return nil, err
	}
	// Packets leave from the interface's address if it can reach the peer.
	if far := net.ParseIP(host); far != nil && (far.To4() != nil) == (i.Addr.To4() != nil) &&
		far.IsLoopback() == i.Addr.IsLoopback() {
		d.LocalAddr = &net.TCPAddr{IP: i.Addr, Zone: i.Zone}
	}
	c, err := d.DialContext(ctx, "tcp", inv.Addr)
	if err != nil {
		return nil, err
	}
	n.tune(c)
	// The listener answers once the peer accepts; ctx bounds that wait too.
	_ = c.SetDeadline(time.Now().Add(setupTime))
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	err = inv.Key.Prove(c, byte(k))
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	_ = c.SetDeadline(time.Time{})
	return c, nil
}

// tune sets buffer sizes; Go's sockets already have TCP_NODELAY.
func (n *Net) tune(c net.Conn) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	if b := n.set.SndBuf; b.Set && b.Value > 0 {
		_ = t.SetWriteBuffer(b.Value)
	}
	if b := n.set.RcvBuf; b.Set && b.Value > 0 {
		_ = t.SetReadBuffer(b.Value)
	}
}

// header is the size in bytes of a message's size on the control socket.
const header = 4
