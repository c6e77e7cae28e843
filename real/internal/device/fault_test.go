package device

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/exec/exectest"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/real/realtest"
	"github.com/simccl/simccl/trace"
)

// team opens a session of three fake GPUs with everything set up.
func team(t *testing.T, d *cuda.Driver) (*Session, error) {
	t.Helper()
	return Open(context.Background(), Config{Driver: d, Free: true, Plans: true, GPUs: []int{0, 1, 2},
		Ranks: 3, Buffer: 1 << 20, Warps: 2, Grace: time.Minute})
}

// allReduce is an operation that every shape can run.
func allReduce(t *testing.T, bytes int64) *Case {
	t.Helper()
	p, err := build.Plan(exectest.Comm(3, 1, 2), plan.Request{Func: coll.AllReduce, Type: coll.Float32,
		Count: bytes / 4, Algo: coll.Ring, Proto: coll.Simple, Channels: 2, Warps: 16})
	if err != nil {
		t.Fatal(err)
	}
	return OpOf(p)
}

// empty fails where a device's memory is still taken.
func empty(t *testing.T, c *realtest.Control) {
	t.Helper()
	for dev := range 4 {
		if n := c.Used(t, dev); n != 0 {
			t.Errorf("device %d: %d bytes are still taken", dev, n)
		}
	}
}

// TestShapesAreRightOnMadeUpGPUs checks every shape and the plan, element by
// element, in and out of place, launched and as a graph: one size for words and
// lines, one that copy engines move in two pieces.
func TestShapesAreRightOnMadeUpGPUs(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: every shape on every made-up GPU")
	}
	d, control := driver(t)
	s, err := team(t, d)
	if err != nil {
		t.Fatal(err)
	}
	options := []Options{{Iters: 3, Warmup: 1, Check: 2}, {Iters: 3, Warmup: 1, Replays: 2, Check: 2}}
	if realtest.Sanitized() {
		options = []Options{{Iters: 1, Replays: 1, Check: 1}}
	}
	for _, bytes := range []int64{19_776, 300_012} {
		op := allReduce(t, bytes)
		for _, by := range append(s.FreeMethods(op), Planned) {
			if s, free := by.shape(); bytes > 1<<16 && free && s < cuda.Push {
				continue
			}
			for _, o := range options {
				one := *op
				one.InPlace = o.Replays > 0
				m, err := s.Measure(context.Background(), &one, by, o)
				if err != nil || m.Wrong != 0 || !m.Checked {
					t.Errorf("%d bytes, %v, %d replays: %d wrong (%s), %v", bytes, by, o.Replays, m.Wrong,
						m.First, err)
				}
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	empty(t, control)
}

// TestADeadRankEndsKernels: one rank never launches. The others' kernels wait
// for it, are stopped, and leave nothing behind.
func TestADeadRankEndsKernels(t *testing.T) {
	d, control := driver(t)
	for _, by := range []Method{Planned, Free(cuda.OneShot), Free(cuda.TwoWords), Free(cuda.TwoShot),
		Free(cuda.Push), Free(cuda.Direct), Free(cuda.Copies)} {
		s, err := team(t, d)
		if err != nil {
			t.Fatal(err)
		}
		op := allReduce(t, 64<<10)
		if by == Free(cuda.Copies) {
			op = allReduce(t, 512<<10)
		}
		if err := s.load(op.Plan, false); err != nil {
			t.Fatal(err)
		}
		err = s.each(func(r *rank) error {
			queue, err := r.queuer(op, by)
			if err != nil {
				return err
			}
			if err := r.together(); err != nil {
				return err
			}
			if r.id == 2 {
				return errors.New("killed")
			}
			if err := queue(); err != nil {
				return err
			}
			return r.wait()
		})
		if err == nil || !strings.Contains(err.Error(), "rank 2: killed") {
			t.Errorf("%v: %v, want what became of rank 2", by, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%v: close: %v", by, err)
		}
		empty(t, control)
	}
}

// TestMemoryRunsOut at every allocation in turn: the error says on which
// device, and what was taken before is given back.
func TestMemoryRunsOut(t *testing.T) {
	d, control := driver(t)
	for after := 0; ; after++ {
		control.Fail(t, "cuMemAlloc", 2, after)
		s, err := team(t, d)
		if err == nil {
			err = s.load(allReduce(t, 4096).Plan, true)
			if cerr := s.Close(); err == nil && cerr != nil {
				t.Fatal(cerr)
			}
		}
		empty(t, control)
		if err == nil {
			if after < 12 {
				t.Errorf("only %d allocations", after)
			}
			return
		}
		var c *cuda.Error
		if !errors.As(err, &c) || !c.OutOfMemory() || c.Dev < 0 {
			t.Fatalf("allocation %d: %v, want out of memory on a device", after, err)
		}
	}
}

// TestALaunchFails: the driver refuses a kernel on one rank.
func TestALaunchFails(t *testing.T) {
	d, control := driver(t)
	s, err := team(t, d)
	if err != nil {
		t.Fatal(err)
	}
	op := allReduce(t, 4096)
	if err := s.load(op.Plan, false); err != nil {
		t.Fatal(err)
	}
	control.Fail(t, "cuLaunchKernel", 701, 7)
	var c *cuda.Error
	if _, err := s.Measure(context.Background(), op, Planned, Options{Iters: 4}); !errors.As(err, &c) ||
		c.Code != 701 {
		t.Errorf("got %v, want error 701", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	empty(t, control)
}

// TestWithoutPeerAccess: free algorithms and plans over peer memory say what
// is missing; a plan through the host runs, but not in lines of 128 bytes.
func TestWithoutPeerAccess(t *testing.T) {
	d, control := driver(t)
	control.Peers(t, false)
	s, err := team(t, d)
	if err != nil {
		t.Fatal(err)
	}
	op := allReduce(t, 4096)
	for _, by := range []Method{Free(cuda.OneShot), Planned} {
		if _, err := s.Measure(context.Background(), op, by, Options{Iters: 1}); !errors.Is(err,
			exec.ErrUnsupported) {
			t.Errorf("%v: %v, want unsupported", by, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	c := exectest.Comm(3, 1, 2)
	c.RouteOf = func(src, dst int32, _ int, _ connect.RouteKind) connect.Route {
		return connect.Route{Transport: connect.SHM, SrcNet: -1, DstNet: -1, SrcProxy: src, DstProxy: dst}
	}
	for _, proto := range []coll.Protocol{coll.LL, coll.LL128, coll.Simple} {
		p, err := build.Plan(c, plan.Request{Func: coll.AllReduce, Type: coll.Float32, Count: 5000,
			Algo: coll.Ring, Proto: proto, Channels: 2, Warps: 16})
		if err != nil {
			t.Fatal(err)
		}
		e := &Executor{Driver: d, GPUs: []int{0, 1, 2}, Warps: 2}
		res, err := e.Run(context.Background(), exec.One(p), trace.Discard)
		if proto == coll.LL128 {
			if !errors.Is(err, exec.ErrUnsupported) {
				t.Errorf("LL128 through the host: %v, want unsupported", err)
			}
			continue
		}
		if err != nil || res.Wrong != 0 {
			t.Errorf("%v through the host: %d wrong, %v", proto, res.Wrong, err)
		}
	}
	empty(t, control)
}

// TestARunIsGivenUp when its time is over: the peers of a rank that is held up
// do not hang.
func TestARunIsGivenUp(t *testing.T) {
	d, control := driver(t)
	e := &Executor{Driver: d, GPUs: []int{0, 1, 2}, Warps: 2, Timeout: time.Millisecond}
	if _, err := e.Run(context.Background(), exec.One(allReduce(t, 1<<20).Plan), trace.Discard); !errors.Is(
		err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	empty(t, control)
}
