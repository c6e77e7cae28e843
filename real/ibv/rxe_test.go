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

// TestContract runs the tests of every transport, for each way of using QPs.
func TestContract(t *testing.T) {
	for name, set := range map[string]Settings{
		"one QP": {}, "four QPs in turn": {QPs: 4}, "four QPs split": {QPs: 4, SplitData: true},
		"adaptive routing": {Adaptive: true, AdaptiveSet: true}, "inline CTS": {Inline: true},
	} {
		if testing.Short() && name != "one QP" && name != "four QPs split" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			transporttest.Contract(t, func(t *testing.T) transporttest.Subject {
				return transporttest.Subject{Net: wires(t, set), Memory: arena}
			})
		})
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
				s.fifo[i].rkey ^= 0x5a5a00
			}
		},
		"QP in error":  func(s *sendComm, r *recvComm) { _ = s.qps[0].Break() },
		"peer is gone": func(s *sendComm, r *recvComm) { _ = r.qps[0].Break() },
	} {
		t.Run(name, func(t *testing.T) {
			n := wires(t, Settings{Service: quick})
			ts, tr := transporttest.Pipe(t, n)
			s, r := ts.(*sendComm), tr.(*recvComm)
			u := transporttest.Subject{Net: n, Memory: arena}
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
	n := wires(t, Settings{})
	ts, tr := transporttest.Pipe(t, n)
	s := ts.(*sendComm)
	u := transporttest.Subject{Net: n, Memory: arena}
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
			transporttest.Order(t, transporttest.Subject{Net: wires(t, Settings{QPs: 2, SplitData: true, Service: &Service{Timeout: 15, Retry: 7}}), Memory: arena}, 40, 30_000)
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
