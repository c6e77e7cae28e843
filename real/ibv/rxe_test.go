package ibv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	simexec "github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/real/transport"
	"github.com/simccl/simccl/real/transport/transporttest"
	"github.com/simccl/simccl/units"
)

// wires opens the machine's RDMA devices or skips, unless SIMCCL_REQUIRE names
// ib. The last two devices carry the tests, so that data crosses a wire.
func wires(t *testing.T, set Settings) *Net {
	t.Helper()
	n, err := NewNet(set)
	if errors.Is(err, simexec.ErrUnsupported) && !strings.Contains(os.Getenv("SIMCCL_REQUIRE"), "ib") {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
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
	a, err := NewArena(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a.Bytes()[:n]
}

// subject is a net between its first device and its last, so that data crosses
// a wire.
func subject(t *testing.T, set Settings) transporttest.Subject {
	t.Helper()
	n := wires(t, set)
	return transporttest.Subject{Net: n, Memory: arena, To: len(n.phys) - 1}
}

// TestContract runs the tests of every transport, for each way of using QPs.
func TestContract(t *testing.T) {
	for _, c := range []struct {
		name string
		set  Settings
		long bool // left out of short runs
	}{
		{"one QP", Settings{}, false},
		{"four QPs in turn", Settings{QPs: units.Some(4)}, true},
		{"four QPs split", Settings{QPs: units.Some(4), SplitData: true}, true},
		{"adaptive routing, split, inline CTS", Settings{Adaptive: units.Some(1), QPs: units.Some(3), SplitData: true, Inline: true}, false},
		{"no threshold, strict order, no ECE", Settings{Adaptive: units.Some(1), ARThreshold: units.Some(0), Relaxed: units.Some(0), ECEOff: true}, true},
		{"classes of service", Settings{FifoTC: units.Some(96), Service: &Service{Timeout: 18, Retry: 6, TC: 32, SL: 1}}, true},
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
		set      Settings
	}{
		{"two to two", []int{0, 1}, []int{1, 0}, Settings{}},
		{"two to two, two QPs each, split", []int{0, 1}, []int{1, 0}, Settings{QPs: units.Some(2), SplitData: true}},
		{"one to two", []int{0}, []int{1, 0}, Settings{}},
		{"two to one", []int{0, 1}, []int{1}, Settings{QPs: units.Some(2)}},
	} {
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
	n := wires(t, Settings{})
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
	bytes := map[string]int{}
	s.(transport.Watched).Watch(func(w transport.Work) { bytes[w.Device] += w.Size })
	rq, err := r.Irecv([]transport.Buf{{Mem: dst, Size: 10_000}}, []int32{0})
	if err != nil {
		t.Fatal(err)
	}
	sq, err := transporttest.Start(func() (transport.Request, error) { return s.Isend(transport.Buf{Mem: src, Size: 10_000}, 0) })
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
	if a, b := bytes[n.phys[0].near.port.Device], bytes[n.phys[1].near.port.Device]; a != 5120 || b != 4880 {
		t.Errorf("%d bytes went by the first port and %d by the second: %v", a, b, bytes)
	}
	d, err := n.Devices()
	if err != nil {
		t.Fatal(err)
	}
	if f := d[v]; f.Mbps != d[0].Mbps+d[1].Mbps || f.Name != d[0].Name+"+"+d[1].Name {
		t.Errorf("the fused device is %s of %d Mb/s", f.Name, f.Mbps)
	}
}

// TestFaultsEndWithAClearError breaks a connection in the ways that hardware
// and peers do; each must end in an error that names the verb, never in wrong
// data or a hang.
func TestFaultsEndWithAClearError(t *testing.T) {
	quick := &Service{Timeout: 10, Retry: 2}
	for name, damage := range map[string]func(s *sendComm, r *recvComm){
		"wrong rkey": func(s *sendComm, r *recvComm) {
			for i := range s.fifo {
				s.fifo[i].rkeys[0] ^= 0x5a5a00
			}
		},
		"QP in error":  func(s *sendComm, r *recvComm) { _ = s.qps[0].Break() },
		"peer is gone": func(s *sendComm, r *recvComm) { _ = r.qps[0].Break() },
	} {
		t.Run(name, func(t *testing.T) {
			u := subject(t, Settings{Service: quick})
			ts, tr := transporttest.Pipe(t, u)
			s, r := ts.(*sendComm), tr.(*recvComm)
			src, dst := u.Registered(t, s, 4096), u.Registered(t, r, 4096)
			if _, err := transporttest.Start(func() (transport.Request, error) {
				return r.Irecv([]transport.Buf{{Mem: dst, Size: 4096}}, []int32{0})
			}); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(10 * time.Second); s.ready() == nil && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			damage(s, r)
			q, err := transporttest.Start(func() (transport.Request, error) { return s.Isend(transport.Buf{Mem: src, Size: 4096}, 0) })
			if err == nil {
				_, err = transporttest.Until(q)
			}
			var ce *CompletionError
			var ve *Error
			if !errors.As(err, &ce) && !errors.As(err, &ve) {
				t.Errorf("got %v, want a verbs error", err)
			}
			t.Log(err)
		})
	}
}

// TestLostCTSSendsNothing drops a clear-to-send on its way: the sender waits,
// and writes nowhere.
func TestLostCTSSendsNothing(t *testing.T) {
	u := subject(t, Settings{})
	ts, tr := transporttest.Pipe(t, u)
	s := ts.(*sendComm)
	src, dst := u.Registered(t, s, 4096), u.Registered(t, tr, 4096)
	if _, err := transporttest.Start(func() (transport.Request, error) {
		return tr.Irecv([]transport.Buf{{Mem: dst, Size: 4096}}, []int32{0})
	}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); s.ready() == nil && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	s.fifo[0].idx = 0 // lost
	for range 100 {
		if q, err := s.Isend(transport.Buf{Mem: src, Size: 4096}, 0); q != nil || err != nil {
			t.Fatalf("sends without a clear-to-send: %v %v", q, err)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestLossAndDelay sends over a wire that loses and delays packets: everything
// arrives, and as it was sent.
func TestLossAndDelay(t *testing.T) {
	if os.Getenv("SIMCCL_RXE") == "" {
		t.Skip("the wire is not ours to disturb; internal/rxe/run.sh makes one that is")
	}
	for _, what := range []string{"loss 1%", "delay 2ms 1ms"} {
		t.Run(what, func(t *testing.T) {
			for _, dev := range []string{"v0", "v1"} {
				args := append([]string{"qdisc", "replace", "dev", dev, "root", "netem"}, strings.Fields(what)...)
				if out, err := exec.Command("tc", args...).CombinedOutput(); err != nil {
					t.Fatalf("tc: %v: %s", err, out)
				}
				t.Cleanup(func() { _ = exec.Command("tc", "qdisc", "del", "dev", dev, "root").Run() })
			}
			transporttest.Order(t, subject(t, Settings{QPs: units.Some(2), SplitData: true, Service: &Service{Timeout: 15, Retry: 7}}), 40, 30_000)
		})
	}
}

// TestPerf measures a little: what is sent arrives, and numbers are numbers.
func TestPerf(t *testing.T) {
	n := wires(t, Settings{})
	devs, err := n.Devices()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range []string{"write", "read", "send", "nccl"} {
		for _, latency := range []bool{false, true} {
			for _, both := range []bool{false, true} {
				run := n.RunPerf
				if op == "nccl" {
					run = n.RunPattern
				}
				p, err := run(context.Background(), PerfConfig{Op: op, To: len(devs) - 1, Size: 3000, Iters: 40, QPs: 2, Latency: latency, Bidirectional: both})
				switch {
				case err != nil:
					t.Fatalf("%s latency %t: %v", op, latency, err)
				case p.Iters != 40, latency && (len(p.Times) != 40 || p.Times[0] <= 0), !latency && (p.Average <= 0 || p.Peak < p.Average*0.999 || p.Rate <= 0):
					t.Errorf("%s latency %t both %t: %d messages, %d times, %g of %g B/s", op, latency, both, p.Iters, len(p.Times), p.Average, p.Peak)
				}
			}
		}
	}
}

func TestLibraryAbsentIsTyped(t *testing.T) {
	_, err := Open()
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
