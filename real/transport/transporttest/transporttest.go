// Package transporttest holds the tests that every transport.Net must pass.
package transporttest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/simccl/simccl/real/transport"
)

// Memory gives n bytes that a net can register, freed at the test's end.
type Memory func(t *testing.T, n int) []byte

// GoMemory is memory of the Go heap.
func GoMemory(_ *testing.T, n int) []byte { return make([]byte, n) }

// Subject is a net under test.
type Subject struct {
	Net    transport.Net
	Memory Memory
}

// Contract runs all tests; open gives the net, or skips.
func Contract(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	t.Run("messages", func(t *testing.T) { Messages(t, open(t)) })
	t.Run("multi-receive", func(t *testing.T) { manyAtOnce(t, open(t)) })
	t.Run("order", func(t *testing.T) { Order(t, open(t), 300, 200_000) })
	t.Run("too long", func(t *testing.T) { tooLong(t, open(t)) })
	t.Run("limits", func(t *testing.T) { limits(t, open(t)) })
}

// Pipe connects device 0 to the last device. It closes both ends at the
// test's end, the sender first.
func Pipe(t *testing.T, n transport.Net) (transport.SendComm, transport.RecvComm) {
	t.Helper()
	devs, err := n.Devices()
	if err != nil {
		t.Fatal(err)
	}
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
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), a.r.Close()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s, a.r
}

// Registered is n bytes known to one end, until the test's end.
func (s *Subject) Registered(t *testing.T, c interface {
	Register([]byte) (transport.Memory, error)
}, n int) transport.Memory {
	t.Helper()
	m, err := c.Register(s.Memory(t, n))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Release(); err != nil {
			t.Errorf("release: %v", err)
		}
	})
	return m
}

const patience = 60 * time.Second

// Until polls a request to its end.
func Until(r transport.Request) ([]int, error) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if done, sizes, err := r.Test(); done || err != nil {
			return sizes, err
		}
	}
	return nil, errors.New("timed out")
}

// Start repeats an operation until the transport takes it.
func Start(f func() (transport.Request, error)) (transport.Request, error) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if r, err := f(); r != nil || err != nil {
			return r, err
		}
	}
	return nil, errors.New("timed out: the transport never was ready")
}

func begin(t *testing.T, f func() (transport.Request, error)) transport.Request {
	t.Helper()
	r, err := Start(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func fill(b []byte, seed int) {
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed*31)
	}
}

// Messages sends many sizes with eight in flight and compares every byte.
func Messages(t *testing.T, u Subject) {
	t.Helper()
	s, r := Pipe(t, u.Net)
	const most = 1 << 18
	src, dst := u.Registered(t, s, 8*most), u.Registered(t, r, 8*most)
	for _, size := range []int{0, 1, 13, 128, 129, 4096, 4097, 65536, 100_000, most} {
		fill(src.Bytes(), size)
		clear(dst.Bytes())
		var recvs, sends []transport.Request
		for i := range 8 {
			recvs = append(recvs, begin(t, func() (transport.Request, error) {
				return r.Irecv([]transport.Buf{{Mem: dst, Off: i * most, Size: most}}, []int32{int32(i)})
			}))
			sends = append(sends, begin(t, func() (transport.Request, error) {
				return s.Isend(transport.Buf{Mem: src, Off: i * most, Size: size}, int32(i))
			}))
		}
		for i := range 8 {
			if _, err := Until(sends[i]); err != nil {
				t.Fatalf("send %d: %v", i, err)
			}
			sizes, err := Until(recvs[i])
			if err != nil || sizes[0] != size {
				t.Fatalf("receive %d: sizes %v, want %d: %v", i, sizes, size, err)
			}
			flush(t, r, transport.Buf{Mem: dst, Off: i * most, Size: size})
			if !bytes.Equal(dst.Bytes()[i*most:i*most+size], src.Bytes()[i*most:i*most+size]) {
				t.Fatalf("message %d of %d bytes arrived changed", i, size)
			}
		}
	}
}

func flush(t *testing.T, r transport.RecvComm, b transport.Buf) {
	t.Helper()
	f, err := r.Iflush([]transport.Buf{b})
	if err == nil && f != nil {
		_, err = Until(f)
	}
	if err != nil {
		t.Fatalf("flush: %v", err)
	}
}

// manyAtOnce is NCCL's multi-receive: eight tags, sent in another order, one
// completion.
func manyAtOnce(t *testing.T, u Subject) {
	devs, err := u.Net.Devices()
	if err != nil {
		t.Fatal(err)
	}
	if devs[0].MaxRecvs < 8 {
		t.Skipf("%s takes %d message a receive", u.Net.Name(), devs[0].MaxRecvs)
	}
	s, r := Pipe(t, u.Net)
	src, dst := u.Registered(t, s, 8*4096), u.Registered(t, r, 8*4096)
	for round := range 40 {
		fill(src.Bytes(), round)
		bufs, tags := make([]transport.Buf, 8), make([]int32, 8)
		for i := range bufs {
			bufs[i], tags[i] = transport.Buf{Mem: dst, Off: 4096 * i, Size: 4096}, int32(100+i)
		}
		rq := begin(t, func() (transport.Request, error) { return r.Irecv(bufs, tags) })
		var sends []transport.Request
		for j := range 8 {
			i := (j*3 + 5) % 8
			sends = append(sends, begin(t, func() (transport.Request, error) {
				return s.Isend(transport.Buf{Mem: src, Off: 4096 * i, Size: 500 * i}, int32(100+i))
			}))
		}
		for _, q := range sends {
			if _, err := Until(q); err != nil {
				t.Fatal(err)
			}
		}
		sizes, err := Until(rq)
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

// Order sends messages of changing sizes up to a most, a few in flight: none
// may overtake another.
func Order(t *testing.T, u Subject, count, slot int) {
	t.Helper()
	s, r := Pipe(t, u.Net)
	const slots = 4
	src, dst := u.Registered(t, s, slots*slot), u.Registered(t, r, slots*slot)
	var recvs, sends [slots]transport.Request
	size := func(i int) int { return 1 + i*7919%slot }
	finish := func(i int) {
		if _, err := Until(sends[i%slots]); err != nil {
			t.Fatal(err)
		}
		sizes, err := Until(recvs[i%slots])
		if err != nil || sizes[0] != size(i) {
			t.Fatalf("message %d: %v bytes, want %d: %v", i, sizes, size(i), err)
		}
		at := i % slots * slot
		if b := dst.Bytes(); b[at] != byte(i) || b[at+size(i)-1] != byte(i) {
			t.Fatalf("message %d holds another's bytes", i)
		}
	}
	for i := range count {
		if i >= slots {
			finish(i - slots)
		}
		at := i % slots * slot
		for k := range size(i) {
			src.Bytes()[at+k] = byte(i)
		}
		recvs[i%slots] = begin(t, func() (transport.Request, error) {
			return r.Irecv([]transport.Buf{{Mem: dst, Off: at, Size: slot}}, []int32{0})
		})
		sends[i%slots] = begin(t, func() (transport.Request, error) {
			return s.Isend(transport.Buf{Mem: src, Off: at, Size: size(i)}, 0)
		})
	}
	for i := count - slots; i < count; i++ {
		finish(i)
	}
}

// tooLong: a message that does not fit ends in an error on one side.
func tooLong(t *testing.T, u Subject) {
	s, r := Pipe(t, u.Net)
	src, dst := u.Registered(t, s, 8192), u.Registered(t, r, 8192)
	rq := begin(t, func() (transport.Request, error) {
		return r.Irecv([]transport.Buf{{Mem: dst, Size: 100}}, []int32{1})
	})
	sq, err := Start(func() (transport.Request, error) { return s.Isend(transport.Buf{Mem: src, Size: 101}, 1) })
	if err == nil {
		if _, err = Until(rq); err == nil {
			_, err = Until(sq)
		}
	}
	var long *transport.TruncatedError
	if !errors.As(err, &long) {
		t.Errorf("got %v, want TruncatedError", err)
	}
}

// limits: what is not a buffer of the net is an error, and so is no device.
func limits(t *testing.T, u Subject) {
	if _, err := u.Net.Listen(1 << 20); err == nil {
		t.Error("listens on a device that is not there")
	}
	if _, err := u.Net.Connect(context.Background(), 0, transport.Handle("{")); err == nil {
		t.Error("connects to what is no handle")
	}
	s, r := Pipe(t, u.Net)
	dst := u.Registered(t, r, 64)
	if _, err := r.Irecv([]transport.Buf{{Mem: dst, Off: 1, Size: 64}}, []int32{0}); err == nil {
		t.Error("receives beyond its memory")
	}
	if _, err := r.Irecv(nil, nil); err == nil {
		t.Error("receives nothing")
	}
	if _, err := s.Isend(transport.Buf{Size: 1}, 0); err == nil {
		t.Error("sends from no memory")
	}
}
