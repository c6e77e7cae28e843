package ibv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/real/transport"
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

// pipe connects device 0 to the last device.
func pipe(t *testing.T, n *Net) (transport.SendComm, transport.RecvComm) {
	t.Helper()
	devs, _ := n.Devices()
	l, err := n.Listen(len(devs) - 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	type accepted struct {
		r   transport.RecvComm
		err error
	}
	ch := make(chan accepted, 1)
	go func() {
		r, err := l.Accept(ctx)
		ch <- accepted{r, err}
	}()
	s, err := n.Connect(ctx, 0, l.Handle())
	if err != nil {
		t.Fatal(err)
	}
	a := <-ch
	if a.err != nil {
		t.Fatal(a.err)
	}
	return s, a.r
}

func registered(t *testing.T, c interface {
	Register([]byte) (transport.Memory, error)
}, n int) transport.Memory {
	t.Helper()
	a, err := NewArena(n)
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.Register(a.Bytes()[:n])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return m
}

const patience = 60 * time.Second

// until polls a request to its end.
func until(r transport.Request) ([]int, error) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if done, sizes, err := r.Test(); done || err != nil {
			return sizes, err
		}
	}
	return nil, errors.New("timed out")
}

// start repeats an operation until the transport takes it.
func start(f func() (transport.Request, error)) (transport.Request, error) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if r, err := f(); r != nil || err != nil {
			return r, err
		}
	}
	return nil, errors.New("timed out: the transport never was ready")
}

func fill(b []byte, seed int) {
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed*31)
	}
}

// TestMessagesCrossTheWire sends messages of many sizes with eight in flight
// and compares every byte, for each way of using QPs.
func TestMessagesCrossTheWire(t *testing.T) {
	for name, set := range map[string]Settings{
		"one QP": {}, "four QPs in turn": {QPs: 4}, "four QPs split": {QPs: 4, SplitData: true},
		"adaptive routing": {Adaptive: true, AdaptiveSet: true}, "inline CTS": {Inline: true},
	} {
		t.Run(name, func(t *testing.T) {
			n := wires(t, set)
			s, r := pipe(t, n)
			defer s.Close()
			defer r.Close()
			const most = 1 << 20
			src, dst := registered(t, s, 8*most), registered(t, r, 8*most)
			defer src.Release()
			defer dst.Release()
			for _, size := range []int{0, 1, 13, 4096, 4097, 100_000, most} {
				eightInFlight(t, s, r, src, dst, size, most)
			}
		})
	}
}

func eightInFlight(t *testing.T, s transport.SendComm, r transport.RecvComm, src, dst transport.Memory, size, most int) {
	t.Helper()
	fill(src.Bytes(), size)
	clear(dst.Bytes())
	var recvs, sends []transport.Request
	for i := range 8 {
		q, err := start(func() (transport.Request, error) {
			return r.Irecv([]transport.Buf{{Mem: dst, Off: i * most, Size: most}}, []int32{int32(i)})
		})
		if err != nil {
			t.Fatal(err)
		}
		recvs = append(recvs, q)
		q, err = start(func() (transport.Request, error) {
			return s.Isend(transport.Buf{Mem: src, Off: i * most, Size: size}, int32(i))
		})
		if err != nil {
			t.Fatal(err)
		}
		sends = append(sends, q)
	}
	for i := range 8 {
		if _, err := until(sends[i]); err != nil {
			t.Fatalf("send %d: %v", i, err)
		}
		sizes, err := until(recvs[i])
		if err != nil || sizes[0] != size {
			t.Fatalf("receive %d: sizes %v, want %d: %v", i, sizes, size, err)
		}
		f, err := r.Iflush([]transport.Buf{{Mem: dst, Off: i * most, Size: size}})
		if err != nil {
			t.Fatal(err)
		}
		if f != nil {
			if _, err := until(f); err != nil {
				t.Fatalf("flush: %v", err)
			}
		}
		if !bytes.Equal(dst.Bytes()[i*most:i*most+size], src.Bytes()[i*most:i*most+size]) {
			t.Fatalf("message %d of %d bytes arrived changed", i, size)
		}
	}
}

// TestOneReceiveOfManyMessages is NCCL's multi-receive: eight tags, sent in
// another order, one completion.
func TestOneReceiveOfManyMessages(t *testing.T) {
	n := wires(t, Settings{})
	s, r := pipe(t, n)
	defer s.Close()
	defer r.Close()
	src, dst := registered(t, s, 8*4096), registered(t, r, 8*4096)
	defer src.Release()
	defer dst.Release()
	for round := range 40 {
		fill(src.Bytes(), round)
		bufs, tags := make([]transport.Buf, 8), make([]int32, 8)
		for i := range bufs {
			bufs[i], tags[i] = transport.Buf{Mem: dst, Off: 4096 * i, Size: 4096}, int32(100+i)
		}
		rq, err := start(func() (transport.Request, error) { return r.Irecv(bufs, tags) })
		if err != nil {
			t.Fatal(err)
		}
		var sends []transport.Request
		for j := range 8 {
			i := (j*3 + 5) % 8
			q, err := start(func() (transport.Request, error) {
				return s.Isend(transport.Buf{Mem: src, Off: 4096 * i, Size: 500 * i}, int32(100+i))
			})
			if err != nil {
				t.Fatal(err)
			}
			sends = append(sends, q)
		}
		for _, q := range sends {
			if _, err := until(q); err != nil {
				t.Fatal(err)
			}
		}
		sizes, err := until(rq)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 8 {
			if sizes[i] != 500*i || !bytes.Equal(dst.Bytes()[4096*i:4096*i+500*i], src.Bytes()[4096*i:4096*i+500*i]) {
				t.Fatalf("round %d message %d: %d bytes, or changed", round, i, sizes[i])
			}
		}
	}
}

func TestTooLongAMessageIsRefused(t *testing.T) {
	n := wires(t, Settings{})
	s, r := pipe(t, n)
	defer s.Close()
	defer r.Close()
	src, dst := registered(t, s, 8192), registered(t, r, 8192)
	defer src.Release()
	defer dst.Release()
	if _, err := start(func() (transport.Request, error) {
		return r.Irecv([]transport.Buf{{Mem: dst, Size: 100}}, []int32{1})
	}); err != nil {
		t.Fatal(err)
	}
	_, err := start(func() (transport.Request, error) { return s.Isend(transport.Buf{Mem: src, Size: 101}, 1) })
	var tr *transport.TruncatedError
	if !errors.As(err, &tr) {
		t.Errorf("got %v, want TruncatedError", err)
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
			ts, tr := pipe(t, n)
			s, r := ts.(*sendComm), tr.(*recvComm)
			defer s.Close()
			defer r.Close()
			src, dst := registered(t, s, 4096), registered(t, r, 4096)
			defer src.Release()
			defer dst.Release()
			if _, err := start(func() (transport.Request, error) {
				return r.Irecv([]transport.Buf{{Mem: dst, Size: 4096}}, []int32{0})
			}); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(10 * time.Second); s.ready() == nil && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			damage(s, r)
			q, err := start(func() (transport.Request, error) { return s.Isend(transport.Buf{Mem: src, Size: 4096}, 0) })
			if err == nil {
				_, err = until(q)
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
