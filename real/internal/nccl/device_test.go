package nccl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"testing"
	"time"
	"unsafe"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/require"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/units"
)

// hardware opens CUDA and NCCL or skips, unless SIMCCL_REQUIRE names nccl.
func hardware(t *testing.T) (*cuda.Driver, *Lib) {
	t.Helper()
	d, err := cuda.Open()
	var l *Lib
	if err == nil {
		l, err = Open(os.Getenv("SIMCCL_TEST_LIBNCCL"))
	}
	require.Hardware(t, "nccl", err, exec.ErrUnsupported)
	return d, l
}

// value is rank r's input element i: small integers, so every sum is exact.
func value(r int, i int64) float32 { return float32((i*7 + int64(r)*3) % 13) }

// want is element i of rank r's output.
func want(o *Call, i int64) float32 {
	sum := func(i int64) float32 {
		var s float32
		for r := range o.N {
			s += value(r, i)
		}
		return s
	}
	block, in := int(i/o.Count), i%o.Count
	switch o.Func {
	case coll.AllReduce, coll.Reduce:
		return sum(i)
	case coll.AllGather, coll.Gather:
		return value(block, in)
	case coll.ReduceScatter:
		return sum(int64(o.Rank)*o.Count + i)
	case coll.Broadcast:
		return value(o.Root, i)
	case coll.SendRecv:
		return value((o.Rank+o.N-1)%o.N, i)
	case coll.AllToAll:
		return value(block, int64(o.Rank)*o.Count+in)
	case coll.Scatter:
		return value(o.Root, int64(o.Rank)*o.Count+i)
	}
	return float32(math.NaN())
}

func floats(n int64) ([]float32, []byte) {
	f := make([]float32, max(n, 1))
	return f[:n], unsafe.Slice((*byte)(unsafe.Pointer(&f[0])), 4*n)
}

var allFuncs = []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.Broadcast, coll.Reduce,
	coll.SendRecv, coll.AllToAll, coll.Gather, coll.Scatter}

// TestEveryOperationIsRight runs each operation on all GPUs of the machine and
// checks every element.
func TestEveryOperationIsRight(t *testing.T) {
	d, l := hardware(t)
	id, err := l.NewID()
	if err != nil {
		t.Fatal(err)
	}
	var gpus []int
	for i := range d.Count() {
		gpus = append(gpus, i)
	}
	team, err := NewTeam(d, l, id, gpus, 0, len(gpus))
	if err != nil {
		t.Fatal(err)
	}
	defer team.Close()
	t.Logf("NCCL %d from %s, %d GPUs", l.Version(), l.Name(), len(gpus))
	meeting := NewMeeting(len(gpus))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for _, f := range allFuncs {
		for _, count := range []int64{1, 1027, 1 << 20} {
			var eager, graph units.Time
			err := team.Each(func(m *Member) error {
				e, g, err := checkAndTime(ctx, m, Call{Func: f, Count: count}, meeting.Wait)
				if m.Rank == 0 {
					eager, graph = e, g
				}
				return err
			})
			if err != nil {
				t.Errorf("operation %d of %d elements: %v", f, count, err)
			}
			t.Logf("operation %d count %8d: eager %8.2f us graph %8.2f us", f, count, eager.Micros(),
				graph.Micros())
		}
	}
}

func checkAndTime(ctx context.Context, m *Member, o Call, meet func() error) (eager, graph units.Time,
	err error) {
	o.Type, o.Size, o.Rank, o.N = coll.Float32, 4, m.Rank, m.N
	ns, nr := bufferElems(o.Func, o.Count, o.N)
	if o.Send, err = m.dev.Alloc(units.Bytes(4 * ns)); err != nil {
		return 0, 0, err
	}
	defer m.dev.Free(o.Send)
	if o.Recv, err = m.dev.Alloc(units.Bytes(4 * nr)); err != nil {
		return 0, 0, err
	}
	defer m.dev.Free(o.Recv)
	in, raw := floats(ns)
	for i := range in {
		in[i] = value(m.Rank, int64(i))
	}
	if err := m.dev.Upload(o.Send, raw); err != nil {
		return 0, 0, err
	}
	if err := meet(); err != nil {
		return 0, 0, err
	}
	if err := m.Once(ctx, &o); err != nil {
		return 0, 0, err
	}
	rooted := o.Func == coll.Reduce || o.Func == coll.Gather
	if !rooted || o.Rank == o.Root {
		out, raw := floats(nr)
		if err := m.dev.Download(raw, o.Recv); err != nil {
			return 0, 0, err
		}
		for i, v := range out {
			if w := want(&o, int64(i)); v != w {
				return 0, 0, fmt.Errorf("rank %d element %d: got %v, want %v", o.Rank, i, v, w)
			}
		}
	}
	if eager, err = m.Time(ctx, &o, Timing{Iters: 20, Warmup: 5}, meet); err != nil {
		return 0, 0, err
	}
	graph, err = m.Time(ctx, &o, Timing{Iters: 20, Launch: GraphRun}, meet)
	return eager, graph, err
}

func TestMissingLibraryIsTyped(t *testing.T) {
	_, err := Open("/nonexistent/libnccl.so.2")
	var u *exec.UnsupportedError
	if !errors.As(err, &u) || !errors.Is(err, exec.ErrUnsupported) || u.Needs != "/nonexistent/libnccl.so.2" {
		t.Errorf("got %v, want *exec.UnsupportedError that names the file", err)
	}
}
