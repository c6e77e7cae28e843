// Package transporttest holds the tests that every transport.Net must pass.
package transporttest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/simccl/simccl/real/internal/transport"
)

// Memory returns n bytes that a net can register, freed when the test ends.
type Memory func(t *testing.T, n int) []byte

// GoMemory returns memory of the Go heap.
func GoMemory(_ *testing.T, n int) []byte { return make([]byte, n) }

// Subject is a net under test; messages go from device From to device To.
type Subject struct {
	Net      transport.Net
	Memory   Memory
	From, To int
}

// Contract runs all tests; open returns the net, or skips the test.
func Contract(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	t.Run("messages", func(t *testing.T) { Messages(t, open(t)) })
	t.Run("sizes", func(t *testing.T) { sizes(t, open(t)) })
	t.Run("multi-receive", func(t *testing.T) { manyAtOnce(t, open(t)) })
	t.Run("as many as may be outstanding", func(t *testing.T) { full(t, open(t)) })
	t.Run("order", func(t *testing.T) {
		count, most := 300, 200_000
		if testing.Short() {
			count, most = 100, 90_000
		}
		Order(t, open(t), count, most)
	})
	t.Run("too long", func(t *testing.T) { tooLong(t, open(t)) })
	t.Run("limits", func(t *testing.T) { limits(t, open(t)) })
}

// Pipe connects the subject's devices. Both ends are closed when the test ends, the sender first.
func Pipe(t *testing.T, u Subject) (transport.SendComm, transport.RecvComm) {
	t.Helper()
	l, err := u.Net.Listen(u.To)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
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
	s, err := u.Net.Connect(ctx, u.From, l.Handle())
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

// Registered returns n bytes registered with one end, until the test ends.
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

const timeout = 20 * time.Minute

// Until polls a request until it ends.
func Until(r transport.Request) ([]int, error) {
	for end := time.Now().Add(timeout); time.Now().Before(end); {
		if done, sizes, err := r.Test(); done || err != nil {
			return sizes, err
		}
	}
	return nil, errors.New("timed out")
}

// Start repeats an operation until the transport accepts it.
func Start(f func() (transport.Request, error)) (transport.Request, error) {
	for end := time.Now().Add(timeout); time.Now().Before(end); {
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

// Messages sends several sizes with eight in flight and compares every byte.
func Messages(t *testing.T, u Subject) {
	t.Helper()
	const most = 1 << 18
	eight(t, u, most, 0, 0, 1, 13, 4097, 100_000, most)
}

// sizes tests sizes around the limits of transports: 128 bytes, a page, 64 KiB, and four times those, with
// unaligned source and destination.
func sizes(t *testing.T, u Subject) {
	var list []int
	for _, edge := range []int{128, 512, 4096, 16384, 65536, 262144} {
		list = append(list, edge-1, edge, edge+1)
	}
	eight(t, u, 262144+64, 3, list...)
}

// eight sends each size eight times at once, in slots of most bytes at an offset of off bytes, and compares
// every byte.
func eight(t *testing.T, u Subject, most, off int, sizes ...int) {
	t.Helper()
	s, r := Pipe(t, u)
	src, dst := u.Registered(t, s, 8*most+off), u.Registered(t, r, 8*most+off)
	for _, size := range sizes {
		fill(src.Bytes(), size)
		clear(dst.Bytes())
		room := min(size+17, most-off)
		var recvs, sends []transport.Request
		for i := range 8 {
			recvs = append(recvs, begin(t, func() (transport.Request, error) {
				return r.Irecv([]transport.Buf{{Mem: dst, Off: i*most + off, Size: room}}, []int32{int32(i)})
			}))
			sends = append(sends, begin(t, func() (transport.Request, error) {
				return s.Isend(transport.Buf{Mem: src, Off: i*most + off, Size: size}, int32(i))
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
			flush(t, r, transport.Buf{Mem: dst, Off: i*most + off, Size: size})
			at := i*most + off
			if !bytes.Equal(dst.Bytes()[at:at+size], src.Bytes()[at:at+size]) {
				t.Fatalf("message %d of %d bytes arrived changed", i, size)
			}
			if i < 7 && !allZero(dst.Bytes()[at+size:at+most]) {
				t.Fatalf("message %d of %d bytes wrote past its end", i, size)
			}
		}
	}
}

func allZero(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
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

// manyAtOnce tests NCCL's multi-receive: 1 to 8 tags, sent in another order, from odd addresses, some of them
// empty; one completion.
func manyAtOnce(t *testing.T, u Subject) {
	devs, err := u.Net.Devices()
	if err != nil {
		t.Fatal(err)
	}
	if devs[0].MaxRecvs < 8 {
		t.Skipf("%s takes %d message a receive", u.Net.Name(), devs[0].MaxRecvs)
	}
	s, r := Pipe(t, u)
	const slot = 4096
	src, dst := u.Registered(t, s, 8*slot), u.Registered(t, r, 8*slot)
	for round := range 40 {
		n := 1 + round%8
		size := func(i int) int { return (500*i + 37*(round/8)) % (slot - 8) }
		fill(src.Bytes(), round)
		clear(dst.Bytes())
		bufs, tags := make([]transport.Buf, n), make([]int32, n)
		for i := range bufs {
			bufs[i], tags[i] = transport.Buf{Mem: dst, Off: slot*i + i%5, Size: slot - 8}, int32(100+i)
		}
		rq := begin(t, func() (transport.Request, error) { return r.Irecv(bufs, tags) })
		var sends []transport.Request
		for j := range n {
			i := (j + 5 + round) % n
			sends = append(sends, begin(t, func() (transport.Request, error) {
				return s.Isend(transport.Buf{Mem: src, Off: slot*i + i%5, Size: size(i)}, int32(100+i))
			}))
		}
		for _, q := range sends {
			if _, err := Until(q); err != nil {
				t.Fatal(err)
			}
		}
		sizes, err := Until(rq)
		if err != nil || len(sizes) != n {
			t.Fatalf("round %d: %d sizes of %d messages: %v", round, len(sizes), n, err)
		}
		for i := range n {
			at := slot*i + i%5
			if sizes[i] != size(i) || !bytes.Equal(dst.Bytes()[at:at+size(i)], src.Bytes()[at:at+size(i)]) {
				t.Fatalf("round %d message %d: %d bytes, or changed", round, i, sizes[i])
			}
		}
	}
}

// full offers receives until the net accepts no more: none is lost.
func full(t *testing.T, u Subject) {
	s, r := Pipe(t, u)
	src, dst := u.Registered(t, s, 1024), u.Registered(t, r, 1024)
	var recvs, sends []transport.Request
	for len(recvs) < 1024 {
		q, err := r.Irecv([]transport.Buf{{Mem: dst, Off: len(recvs), Size: 1}}, []int32{0})
		if err != nil {
			t.Fatal(err)
		}
		if q == nil {
			break
		}
		recvs = append(recvs, q)
	}
	if len(recvs) < 8 {
		t.Errorf("%d outstanding receives, NCCL has 8 of a connection", len(recvs))
	}
	fill(src.Bytes(), 3)
	for i := range recvs {
		sends = append(sends, begin(t, func() (transport.Request, error) {
			return s.Isend(transport.Buf{Mem: src, Off: i, Size: 1}, 0)
		}))
	}
	for i := range recvs {
		_, err := Until(sends[i])
		if _, e := Until(recvs[i]); err != nil || e != nil {
			t.Fatalf("message %d: %v, %v", i, err, e)
		}
	}
	if !bytes.Equal(src.Bytes()[:len(recvs)], dst.Bytes()[:len(recvs)]) {
		t.Error("messages arrived changed")
	}
}

// Order sends messages of varying sizes up to slot bytes, a few in flight: none may overtake another.
func Order(t *testing.T, u Subject, count, slot int) {
	t.Helper()
	s, r := Pipe(t, u)
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

// tooLong tests that a message that does not fit causes an error on one side.
func tooLong(t *testing.T, u Subject) {
	s, r := Pipe(t, u)
	src, dst := u.Registered(t, s, 8192), u.Registered(t, r, 8192)
	rq := begin(t, func() (transport.Request, error) {
		return r.Irecv([]transport.Buf{{Mem: dst, Size: 100}}, []int32{1})
	})
	sq, err := Start(func() (transport.Request, error) {
		return s.Isend(transport.Buf{Mem: src, Size: 101}, 1)
	})
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

// limits tests that a buffer of another net, and a missing device, cause errors.
func limits(t *testing.T, u Subject) {
	if _, err := u.Net.Listen(1 << 20); err == nil {
		t.Error("listens on a device that is not there")
	}
	if _, err := u.Net.Connect(context.Background(), 0, transport.Handle("{")); err == nil {
		t.Error("connects to what is no handle")
	}
	s, r := Pipe(t, u)
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
