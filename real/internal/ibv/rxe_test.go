package ibv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/simccl/simccl/config/netcfg"
	simexec "github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/require"
	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/real/internal/transport/transporttest"
	"github.com/simccl/simccl/real/internal/verbs"
	"github.com/simccl/simccl/units"
)

// wires opens the machine's RDMA devices or skips, unless SIMCCL_REQUIRE names
// ib. The last two devices carry the tests, so that data crosses a wire.
func wires(t *testing.T, set netcfg.IB) *Net {
	t.Helper()
	n, err := NewNet(set)
	require.Hardware(t, "ib", err, simexec.ErrUnsupported)
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return n
}

// arena is memory that the NIC may use.
func arena(t *testing.T, n int) []byte {
	t.Helper()
	a, err := verbs.NewArena(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a.Bytes()[:n]
}

// subject is a net between its first device and its last, so that data crosses
// a wire.
func subject(t *testing.T, set netcfg.IB) transporttest.Subject {
	t.Helper()
	n := wires(t, set)
	return transporttest.Subject{Net: n, Memory: arena, To: len(n.phys) - 1}
}

// TestContract runs the tests of every transport, for each way of using QPs.
func TestContract(t *testing.T) {
	for _, c := range []struct {
		name string
		set  netcfg.IB
		long bool // left out of short runs
	}{
		{"one QP", netcfg.IB{}, false},
		{"four QPs in turn", netcfg.IB{QPs: units.Some(4)}, true},
		{"four QPs split", netcfg.IB{QPs: units.Some(4), SplitData: true}, true},
		{"adaptive routing, split, inline CTS", netcfg.IB{Adaptive: units.Some(1), QPs: units.Some(3),
			SplitData: true, Inline: true}, false},
		{"no threshold, strict order, no ECE", netcfg.IB{Adaptive: units.Some(1), ARThreshold: units.Some(0),
			Relaxed: units.Some(0), ECEOff: true}, true},
		{"classes of service", netcfg.IB{FifoTC: units.Some(96), Service: &netcfg.Service{Timeout: 18,
			Retry: 6, TC: 32, SL: 1}}, true},
	} {
		if testing.Short() && c.long {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			transporttest.Contract(t, func(t *testing.T) transporttest.Subject { return subject(t, c.set) })
		})
	}
}

// TestFusedContract runs them over ports fused into one device: of both sides,
// crosswise, and of one side only, whose peer has one port.
func TestFusedContract(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to []int
		set      netcfg.IB
		long     bool // left out of short runs
	}{
		{"two to two", []int{0, 1}, []int{1, 0}, netcfg.IB{}, true},
		{"two to two, two QPs each, split", []int{0, 1}, []int{1, 0}, netcfg.IB{QPs: units.Some(2),
			SplitData: true}, false},
		{"one to two", []int{0}, []int{1, 0}, netcfg.IB{}, false},
		{"two to one", []int{0, 1}, []int{1}, netcfg.IB{QPs: units.Some(2)}, true},
	} {
		if testing.Short() && c.long {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			transporttest.Contract(t, func(t *testing.T) transporttest.Subject {
				n := wires(t, c.set)
				if len(n.phys) < 2 {
					t.Skip("needs two RDMA ports")
				}
				from, err := n.Fuse(c.from...)
				if err != nil {
					t.Fatal(err)
				}
				to, err := n.Fuse(c.to...)
				if err != nil {
					t.Fatal(err)
				}
				return transporttest.Subject{Net: n, Memory: arena, From: from, To: to}
			})
		})
	}
}

// TestFusedDataGoesOverAllPorts watches the work of a message over two ports:
// each carries half of it.
func TestFusedDataGoesOverAllPorts(t *testing.T) {
	n := wires(t, netcfg.IB{})
	if len(n.phys) < 2 {
		t.Skip("needs two RDMA ports")
	}
	v, err := n.Fuse(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	u := transporttest.Subject{Net: n, Memory: arena, From: v, To: v}
	s, r := transporttest.Pipe(t, u)
	src, dst := u.Registered(t, s, 10_000), u.Registered(t, r, 10_000)
	carried := map[string]int{}
	s.(transport.Watched).Watch(func(w transport.Work) { carried[w.Device] += w.Size })
	rq, err := r.Irecv([]transport.Buf{{Mem: dst, Size: 10_000}}, []int32{0})
	if err != nil {
		t.Fatal(err)
	}
	sq, err := transporttest.Start(func() (transport.Request, error) {
		return s.Isend(transport.Buf{Mem: src, Size: 10_000}, 0)
	})
	if err == nil {
		_, err = transporttest.Until(sq)
	}
	if err == nil {
		_, err = transporttest.Until(rq)
	}
	if err != nil {
		t.Fatal(err)
	}
	// Half of it in whole 128 bytes: 5,120 and the rest.
	if a, b := carried[n.phys[0].near.Port.Device], carried[n.phys[1].near.Port.Device]; a != 5120 ||
		b != 4880 {
		t.Errorf("%d bytes went by the first port and %d by the second: %v", a, b, carried)
	}
	d, err := n.Devices()
	if err != nil {
		t.Fatal(err)
	}
	if f := d[v]; f.Mbps != d[0].Mbps+d[1].Mbps || f.Name != d[0].Name+"+"+d[1].Name {
		t.Errorf("the fused device is %s of %d Mb/s", f.Name, f.Mbps)
	}
}

// faultCase is a connection after it was damaged: a receive is offered, its
// clear-to-send has arrived, nothing has been sent.
type faultCase struct {
	t        *testing.T
	s        *sendComm
	r        *recvComm
	src, dst transport.Memory
	recv     transport.Request
}

func newFaultCase(t *testing.T, u transporttest.Subject) *faultCase {
	t.Helper()
	ts, tr := transporttest.Pipe(t, u)
	c := &faultCase{t: t, s: ts.(*sendComm), r: tr.(*recvComm)}
	c.src, c.dst = u.Registered(t, ts, 4096), u.Registered(t, tr, 4096)
	for i := range c.src.Bytes() {
		c.src.Bytes()[i] = byte(i) | 1
	}
	var err error
	if c.recv, err = c.r.Irecv([]transport.Buf{{Mem: c.dst, Size: 4096}}, []int32{0}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(5 * time.Minute); c.s.ready() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no clear-to-send has come")
		}
	}
	return c
}

// send is what the sender gets to know.
func (c *faultCase) send() error {
	q, err := transporttest.Start(func() (transport.Request, error) {
		return c.s.Isend(transport.Buf{Mem: c.src, Size: 4096}, 0)
	})
	if err == nil {
		_, err = transporttest.Until(q)
	}
	return err
}

// clean: the receiver's memory holds nothing, or the whole message.
func (c *faultCase) clean() {
	c.t.Helper()
	if got := c.dst.Bytes(); !bytes.Equal(got, make([]byte, 4096)) && !bytes.Equal(got, c.src.Bytes()) {
		c.t.Error("the receiver holds a part of the message")
	}
}

// TestFaultsEndWithAClearError breaks a connection in the ways that hardware
// and peers do. Who can know of it gets an error that names the verb; no one else
// gets wrong data, nothing hangs.
func TestFaultsEndWithAClearError(t *testing.T) {
	for _, f := range []struct {
		name    string
		damage  func(c *faultCase)
		sender  string // what its error says, "" where it may not know
		hears   bool   // the receiver ends too
		untried bool   // no send: the receiver alone looks
	}{
		{"wrong rkey", func(c *faultCase) { c.s.fifo[0].rkeys[0] ^= 0x5a5a00 }, "remote access error", true,
			false},
		{"address outside the registration", func(c *faultCase) { c.s.fifo[0].addr += 1 << 30 },
			"remote access error", true, false},
		{"rkey of nothing", func(c *faultCase) { c.s.fifo[0].rkeys[0] = 0 }, "rkey 0x0", false, false},
		{"local memory not registered", func(c *faultCase) { c.src.(*memory).mrs[0].Lkey ^= 0x5a5a00 },
			"local", false, false},
		{"sender's QP in error", func(c *faultCase) { _ = c.s.qps[0].Break() }, "Flushed", false, false},
		{"receiver's QP in error", func(c *faultCase) { _ = c.r.qps[0].Break() }, "retry counter exceeded",
			true, false},
		{"receiver's QP in error before anything is sent", func(c *faultCase) { _ = c.r.qps[0].Break() }, "",
			true, true},
		{"receiver gone", func(c *faultCase) { _ = c.r.qps[0].Close(); c.r.qps = nil },
			"retry counter exceeded", false, false},
		{"wire cut", func(c *faultCase) { transporttest.Disturb(c.t, "loss 100%") }, "retry counter exceeded",
			false, false},
		{"device says that it failed", func(c *faultCase) {
			c.s.nics[0].dev.Fail("local catastrophic error")
		}, "local catastrophic error", false, false},
	} {
		t.Run(f.name, func(t *testing.T) {
			c := newFaultCase(t, subject(t, netcfg.IB{Service: &netcfg.Service{Timeout: 10, Retry: 2}}))
			f.damage(c)
			began := time.Now()
			if !f.untried {
				err := c.send()
				if err == nil || !strings.Contains(err.Error(), f.sender) {
					t.Errorf("the sender gets %v, want %q", err, f.sender)
				}
				t.Logf("after %v the sender gets: %v", time.Since(began).Round(time.Millisecond), err)
			}
			if f.hears {
				_, err := transporttest.Until(c.recv)
				var ce *verbs.CompletionError
				if !errors.As(err, &ce) {
					t.Errorf("the receiver gets %v, want a failed completion", err)
				}
				t.Logf("after %v the receiver gets: %v", time.Since(began).Round(time.Millisecond), err)
			}
			if d := time.Since(began); d > 200*time.Second {
				t.Errorf("the end came after %v", d)
			}
			c.clean()
		})
	}
}

// TestLostCTSSendsNothing drops a clear-to-send on its way: the sender waits,
// and writes nowhere.
func TestLostCTSSendsNothing(t *testing.T) {
	c := newFaultCase(t, subject(t, netcfg.IB{}))
	c.s.fifo[0].idx = 0 // lost
	for range 100 {
		if q, err := c.s.Isend(transport.Buf{Mem: c.src, Size: 4096}, 0); q != nil || err != nil {
			t.Fatalf("sends without a clear-to-send: %v %v", q, err)
		}
		time.Sleep(time.Millisecond)
	}
	if done, _, err := c.recv.Test(); done || err != nil {
		t.Errorf("the receive ends: %t, %v", done, err)
	}
	c.clean()
}

// TestDisturbedWire sends over a wire that loses, delays, doubles, reorders and
// damages packets: everything arrives, and as it was sent.
func TestDisturbedWire(t *testing.T) {
	for _, what := range []string{"loss 1%", "loss 5% 25%", "delay 2ms 1ms", "duplicate 5%",
		"delay 1ms reorder 25% 50%", "corrupt 1%"} {
		t.Run(what, func(t *testing.T) {
			u := subject(t, netcfg.IB{QPs: units.Some(2), SplitData: true, Service: &netcfg.Service{
				Timeout: 14, Retry: 7}})
			transporttest.Disturb(t, what)
			transporttest.Order(t, u, 25, 30_000)
		})
	}
}

// TestPerf measures a little: what is sent arrives, and numbers are numbers.
func TestPerf(t *testing.T) {
	n := wires(t, netcfg.IB{})
	for _, op := range []string{"write", "read", "send", OpNCCL} {
		for i, c := range []PerfConfig{
			{Iters: 40, QPs: 2, TxDepth: 16}, {Iters: 40, QPs: 1, TxDepth: 128, Bidirectional: true},
			{Iters: 30, QPs: 2, TxDepth: 1, Latency: true, Bidirectional: true},
			{Duration: 30 * time.Millisecond, QPs: 1, TxDepth: 8, Bidirectional: true},
			{Duration: 30 * time.Millisecond, QPs: 1, TxDepth: 8, Latency: true},
		} {
			c.Op, c.Size = op, 3000
			p, err := n.RunPerf(context.Background(), 0, len(n.phys)-1, c)
			if err != nil {
				t.Fatalf("%s %d: %v", op, i, err)
			}
			least := max(c.Iters, 1)
			looked := op != OpNCCL && c.Duration == 0 // for the peak
			switch {
			case p.Iters < least || c.Iters > 0 && p.Iters != c.Iters:
				t.Errorf("%s %d: %d messages", op, i, p.Iters)
			case c.Latency && (len(p.Times) != p.Iters || p.Times[0] <= 0):
				t.Errorf("%s %d: %d times of %d messages", op, i, len(p.Times), p.Iters)
			case !c.Latency && (p.Average <= 0 || p.Rate <= 0 || looked && p.Peak < p.Average*0.999 ||
				!looked && p.Peak != 0):
				t.Errorf("%s %d: %g of %g B/s, %g a second", op, i, p.Average, p.Peak, p.Rate)
			}
		}
	}
}

// TestPerfServer: a client that does not know the secret is refused, one that
// dies leaves the server ready for the next, and the client's last call ends it.
func TestPerfServer(t *testing.T) {
	n := wires(t, netcfg.IB{})
	ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	secret, addr, ctx := []byte("secret"), ln.Addr().String(), context.Background()
	reported := make(chan error, 8)
	served := make(chan error, 1)
	go func() {
		served <- n.ServePerf(ctx, ln, len(n.phys)-1, secret, func(_ PerfConfig, err error) {
			reported <- err
		})
	}()
	c := PerfConfig{Op: "write", Size: 100, Iters: 10, QPs: 1, TxDepth: 4}
	if _, err := n.Perf(ctx, addr, 0, []byte("another"), c); err == nil {
		t.Error("a stranger measures")
	}
	conn, err := dialPerf(ctx, addr, secret, call{c})
	if err != nil {
		t.Fatal(err)
	}
	conn.Close() // dies
	// Callers are served concurrently: the next one waits until the dead one had its turn.
	if err := <-reported; err == nil {
		t.Error("the server measured with a dead client")
	}
	if _, err := n.Perf(ctx, addr, 0, secret, c); err != nil {
		t.Errorf("the next client: %v", err)
	}
	if err := EndPerf(ctx, addr, secret); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Errorf("the server ends with %v", err)
	}
	close(reported)
	if err, heard := <-reported; err != nil || !heard || len(reported) != 0 {
		t.Errorf("of the good measurement the server reports %v (received: %v), and %d more", err, heard,
			len(reported))
	}
}

func TestLibraryAbsentIsTyped(t *testing.T) {
	_, err := verbs.Open()
	if err == nil {
		t.Skip("libibverbs is here")
	}
	if !errors.Is(err, simexec.ErrUnsupported) {
		t.Errorf("got %v, want it to match ErrUnsupported", err)
	}
}

func ExampleChosen() {
	fmt.Println(Chosen("^mlx5_bond", "mlx5_bond_0", 1), Chosen("=mlx5_0:1", "mlx5_0", 1))
	// Output: false true
}
