package ibv

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/real/transport"
	"github.com/simccl/simccl/real/transport/transporttest"
)

// wires opens the machine's RDMA devices or skips, unless SIMCCL_REQUIRE names
// ib. The last two devices carry the tests, so that data crosses a wire.
func wires(t *testing.T, set Settings) *Net {
	t.Helper()
	n, err := NewNet(set)
	if errors.Is(err, exec.ErrUnsupported) && !strings.Contains(os.Getenv("SIMCCL_REQUIRE"), "ib") {
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

func TestLibraryAbsentIsTyped(t *testing.T) {
	_, err := Open()
	if err == nil {
		t.Skip("libibverbs is here")
	}
	if !errors.Is(err, exec.ErrUnsupported) {
		t.Errorf("got %v, want it to match ErrUnsupported", err)
	}
}

func ExampleChosen() {
	fmt.Println(Chosen("^mlx5_bond", "mlx5_bond_0", 1), Chosen("=mlx5_0:1", "mlx5_0", 1))
	// Output: false true
}
