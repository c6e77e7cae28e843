package collector

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// byCount are prices of as many picoseconds as a call has elements.
type byCount struct{}

func (byCount) Launch(int) units.Time { return 100 }

func (byCount) Collectives(_ context.Context, _ []int32, calls []workload.Call) (t units.Time, err error) {
	for i := range calls {
		t += units.Time(calls[i].Count)
	}
	return t, nil
}

func (byCount) Messages(_ context.Context, ranks []int32, list []job.Message) ([]units.Time, error) {
	out := make([]units.Time, len(ranks))
	for _, m := range list {
		out[m.From], out[m.To] = units.Time(m.Bytes), units.Time(m.Bytes)
	}
	return out, nil
}

func (byCount) Beside() (compute, calls float64) { return 1, 1 }

// program is a process of one rank that makes requests.
type program struct {
	t     *thread
	todo  []request
	now   int64
	waits chan reply
	marks []*event
}

// step makes the next request; ok is false where none is left, or the program waits.
func (p *program) step(c *Core) (r reply, ok bool) {
	switch {
	case p.waits != nil:
		select {
		case r = <-p.waits:
			p.waits = nil
		default:
			return r, false
		}
	case len(p.todo) == 0:
		return r, false
	default:
		q := p.todo[0]
		p.todo = p.todo[1:]
		q.now = p.now + q.now
		if r, p.waits = c.handle(p.t, &q, nil); p.waits != nil {
			return r, true
		}
		r.now = p.t.now
		if q.kind == reqEventRecord {
			p.marks = append(p.marks, p.t.p.events[uint64(q.a[2])])
		}
	}
	p.now = r.now
	return r, true
}

// sent is an operation as the shim sends it.
func sent(comm, stream uint64, f coll.Func, count uint64, root int32) []byte {
	b := make([]byte, opSize)
	le := binary.LittleEndian
	le.PutUint64(b, comm)
	le.PutUint64(b[8:], stream)
	le.PutUint64(b[16:], count)
	le.PutUint16(b[64:], uint16(f))
	le.PutUint32(b[72:], uint32(root))
	return b
}

// TestClockIsThatOfReplay: when events happen and ranks end is the same while a program is intercepted
// and when the record of it is replayed with the same times of calls, in whatever order the requests of
// ranks come.
func TestClockIsThatOfReplay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(context.Background(), Settings{Clock: Virtual, Devices: Pretend, GPUs: 4, Prices: byCount{}})
		programs := begin(t, c)
		for r, p := range programs { // a record begins with the first call
			p.todo = append(p.todo, request{kind: reqGroup, a: [6]int64{1},
				payload: sent(uint64(handle(0, int64(r))), uint64(some[0]), coll.AllReduce, 1, 0)})
		}
		for range rapid.IntRange(1, 14).Draw(t, "steps") {
			draw(t, programs)
		}
		for _, p := range programs {
			for i, s := range some {
				p.todo = append(p.todo, request{kind: reqEventRecord, a: [6]int64{0, s, int64(5000 + i)}})
			}
			p.todo = append(p.todo, request{kind: reqSync, a: [6]int64{0, -1}})
		}
		for left := true; left; {
			left = false
			first := rapid.IntRange(0, len(programs)-1).Draw(t, "first")
			for i := range programs {
				p := programs[(first+i)%len(programs)]
				for range rapid.IntRange(1, 3).Draw(t, "requests") {
					if r, ok := p.step(c); ok {
						left = true
						if r.status != 0 {
							t.Fatalf("%d: %s", r.status, r.text)
						}
					}
				}
			}
		}
		compare(t, c, programs)
	})
}

// begin makes a communicator of four ranks, and one of the first two.
func begin(t rapid.TB, c *Core) (out []*program) {
	for r := range int64(4) {
		p := &program{t: &thread{}}
		c.handle(p.t, &request{kind: reqHello, a: [6]int64{r + 100, 1, r, 0}}, &Peer{PID: int(r) + 100})
		out = append(out, p)
	}
	for k, size := range []int64{4, 2} {
		for r := range size {
			reply, _ := c.handle(out[r].t, &request{kind: reqInit, a: [6]int64{size, r, 0},
				payload: bytes.Repeat([]byte{byte(k)}, 128)}, nil)
			if reply.status != 0 || reply.a[0] != handle(int64(k), r) {
				t.Fatalf("communicator %d of rank %d: %+v", k, r, reply)
			}
		}
	}
	return out
}

// some are streams that do not wait for the default one.
var some = []int64{apart | 1, apart | 2, apart | 3}

const apart = streamMark<<40 | nonBlocking

// handle is that of a communicator of begin.
func handle(comm, rank int64) int64 { return 4*comm + rank + 1 }

// draw adds a step of the job.
func draw(t *rapid.T, programs []*program) {
	stream := func() int64 { return rapid.SampledFrom(some).Draw(t, "stream") }
	think := func() int64 { return rapid.Int64Range(0, 300).Draw(t, "host") }
	count := func() uint64 { return rapid.Uint64Range(1, 1000).Draw(t, "count") }
	group := func(rank int, ops ...[]byte) {
		programs[rank].todo = append(programs[rank].todo, request{kind: reqGroup, now: think(),
			a: [6]int64{int64(len(ops))}, payload: bytes.Join(ops, nil)})
	}
	add := func(rank int, kind uint32, a ...int64) {
		q := request{kind: kind, now: think()}
		copy(q.a[:], a)
		programs[rank].todo = append(programs[rank].todo, q)
	}
	rank := rapid.IntRange(0, 3).Draw(t, "rank")
	switch rapid.SampledFrom([]string{"call", "call", "message", "events", "sync"}).Draw(t, "kind") {
	case "call":
		comm := rapid.Int64Range(0, 1).Draw(t, "comm")
		counts := rapid.SliceOfN(rapid.Uint64Range(1, 1000), 1, 3).Draw(t, "group")
		for r := range 4 - 2*comm {
			var ops [][]byte
			for _, n := range counts {
				ops = append(ops, sent(uint64(handle(comm, r)), uint64(stream()), coll.AllReduce, n, 0))
			}
			group(int(r), ops...)
		}
	case "message":
		to, n := (rank+1)%4, count()
		group(rank, sent(uint64(handle(0, int64(rank))), uint64(stream()), coll.Send, n, int32(to)))
		group(to, sent(uint64(handle(0, int64(to))), uint64(stream()), coll.Recv, n, int32(rank)))
	case "events":
		event := int64(len(programs[rank].todo))
		add(rank, reqEventRecord, 0, stream(), event)
		add(rank, reqEventWait, 0, stream(), event)
		add(rank, reqEventRecord, 0, stream(), event+1000)
	case "sync":
		add(rank, reqSync, 0, rapid.SampledFrom(append(some, -1)).Draw(t, "stream"))
	}
}

// compare replays the record with the same times.
func compare(t *rapid.T, c *Core, programs []*program) {
	for i, p := range programs {
		if p.waits != nil || len(p.todo) > 0 {
			t.Fatalf("rank %d waits for ever", i)
		}
	}
	p := c.Result("2.28.9").Program()
	if err := p.Lint(); err != nil {
		t.Fatalf("%v\n%s", err, p.Format())
	}
	res, err := streams.Run(context.Background(), streams.Apart(p, func(c *workload.Call) units.Time {
		return units.Time(c.Count)
	}, 0))
	if err != nil {
		t.Fatalf("%v\n%s", err, p.Format())
	}
	for rank, x := range programs {
		var got, want []units.Time
		for i, s := range p.Lists[p.Of[rank]].Steps {
			if s.Kind == workload.Record {
				got = append(got, res.Spans[rank][i].End)
			}
		}
		for _, e := range x.marks {
			want = append(want, e.op.End)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("rank %d: events happen at %v, replayed at %v\n%s", rank, want, got, p.Format())
		}
	}
}
