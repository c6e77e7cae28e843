package collector

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/simccl/simccl/workload/calls"
)

// nowhere is a process's memory, of which little is there.
type nowhere struct{}

func (nowhere) ReadAt(b []byte, at int64) (int, error) {
	if at < 0 || at > 1<<20 {
		return 0, errors.New("bad address")
	}
	return len(b), nil
}

func (n nowhere) WriteAt(b []byte, at int64) (int, error) { return n.ReadAt(b, at) }

func (nowhere) Close() error { return nil }

// play sends requests, as bytes have them, on the connections of two processes. Requests that wait are
// left so.
func play(clock Clock, devices Devices, b []byte) *calls.Record {
	c := New(context.Background(), Settings{Clock: clock, Devices: devices, Data: true, GPUs: 4, SM: 90,
		Memory: 1 << 30})
	var conns []*thread
	for p := range 2 {
		for kind := range 2 {
			t := &thread{}
			c.handle(t, &request{kind: reqHello, a: [6]int64{int64(p) + 100, int64(kind), int64(p),
				int64(kind)}}, &Peer{PID: p + 100, Memory: nowhere{}})
			conns = append(conns, t)
		}
	}
	for len(b) >= requestSize {
		q, t := parseRequest(b), conns[b[3]%4]
		size := int(b[2])
		b = b[requestSize:]
		size = min(size, len(b))
		q.payload, b = b[:size], b[size:]
		c.handle(t, q, nil)
	}
	for _, t := range conns {
		c.closed(t)
	}
	c.Unpaired()
	return c.Result("2.28.9")
}

// someRequests are bytes of requests whose numbers are small, or at the ends of what fits.
func someRequests(r *rand.Rand) []byte {
	number := func() int64 {
		switch r.IntN(8) {
		case 0:
			return -1 - r.Int64N(3)
		case 1:
			return r.Int64()
		case 2:
			return -1 << 63
		}
		return r.Int64N(5)
	}
	var out []byte
	le := binary.LittleEndian
	for range 200 {
		b := make([]byte, requestSize)
		kinds := [...]uint32{reqInit, reqWaitInit, reqState, reqSplit, reqShrink, reqGroup, reqLeave,
			reqSyncComm, uint32(reqStreamEnd + r.IntN(18)), uint32(reqSegment + r.IntN(8)),
			uint32(r.IntN(70))}
		le.PutUint32(b[4:], kinds[r.IntN(len(kinds))])
		for i := 8; i < requestSize; i += 8 {
			le.PutUint64(b[i:], uint64(number()))
		}
		ops := r.IntN(3)
		if r.IntN(3) == 0 {
			ops = 0
		} else {
			le.PutUint64(b[16:], uint64(ops))
		}
		b[3], b[2] = byte(r.IntN(4)), byte(ops*opSize)
		out = append(out, b...)
		for range ops {
			o := make([]byte, opSize)
			for i := 0; i < 56; i += 8 {
				le.PutUint64(o[i:], uint64(number()))
			}
			le.PutUint16(o[64:], uint16(r.IntN(12)))
			le.PutUint16(o[66:], uint16(r.IntN(13)))
			for i := 68; i < 84; i += 4 {
				le.PutUint32(o[i:], uint32(number()))
			}
			out = append(out, o...)
		}
	}
	return out
}

// TestHostileRequests: whatever a program sends, the collector answers or waits, and makes a record that can
// be read again.
func TestHostileRequests(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 41))
		readable(t, play(Clock(1+r.IntN(2)), Devices(r.IntN(3)), someRequests(r)))
	}
}

func readable(t *testing.T, r *calls.Record) {
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	if _, err := calls.Read(&b, "record"); err != nil {
		t.Fatal(err)
	}
}

// FuzzRequests: the same of any bytes.
func FuzzRequests(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(byte(seed), someRequests(rand.New(rand.NewPCG(seed, 7))))
	}
	f.Fuzz(func(t *testing.T, how byte, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		readable(t, play(Clock(1+how%2), Devices(how/2%3), b))
	})
}

// TestCountsOfOperationsDoNotWrap: a count whose product with the size of an operation wraps
// around is refused; it once recursed until the stack was full.
func TestCountsOfOperationsDoNotWrap(t *testing.T) {
	for _, n := range []int64{1 << 60, 1 << 62, 1<<63 - 1, -1 << 63} {
		for _, size := range []int{0, opSize, opSize + 3*sharedSize} {
			if ops, err := readOps(make([]byte, size), n); err == nil {
				t.Errorf("%d operations in %d bytes: %d are read", n, size, len(ops))
			}
		}
	}
}
