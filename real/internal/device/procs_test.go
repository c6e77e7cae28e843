package device

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/exec/exectest"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/real/internal/bootstrap"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/real/realtest"
	"github.com/simccl/simccl/units"
)

// member has this test binary play one rank of a communicator of processes:
// JOB,RANK,RANKS,ID.
var member = flag.String("member", "", "for the tests' own use: play one rank")

// limits of waits between the tests' processes, which share few CPUs.
var limits = bootstrap.Options{Join: 10 * time.Minute, Op: 10 * time.Minute, Ping: 200 * time.Millisecond,
	Silence: 2 * time.Minute}

// play is a rank of a job: what it finds goes to its log, or is its error.
type play struct {
	t     *testing.T
	s     *Session
	fake  *realtest.Control
	ranks int
	rank  int
}

// jobs are what processes do together, by name.
var jobs = map[string]func(*play) error{
	"peers": (*play).peers, "mixed": (*play).mixed, "island": (*play).island, "apart": (*play).apart,
	"killed": (*play).killed, "memory": (*play).memory, "late": (*play).late,
}

// TestMember plays a rank: the tests below start it.
func TestMember(t *testing.T) {
	if *member == "" {
		t.Skip("the tests of several processes run it")
	}
	f := strings.SplitN(*member, ",", 4)
	p := &play{t: t}
	if _, err := fmt.Sscan(f[1]+" "+f[2], &p.rank, &p.ranks); err != nil {
		t.Fatal(err)
	}
	id, err := bootstrap.ParseID(f[3])
	if err != nil {
		t.Fatal(err)
	}
	boot, err := bootstrap.Join(context.Background(), id, p.rank, p.ranks, limits)
	if err != nil {
		t.Fatal(err)
	}
	defer boot.Close()
	d, control := driver(t)
	p.fake = control
	control.Peers(t, f[0] != "apart")
	if f[0] == "island" {
		control.Apart(t, 2)
	}
	if f[0] == "memory" && p.rank == 1 {
		control.Fail(t, "cuMemAlloc", 2, 2) // after the check's words and one buffer
	}
	p.s, err = Open(context.Background(), Config{Driver: d, Free: f[0] != "memory", Plans: true,
		GPUs: []int{p.rank}, First: p.rank, Ranks: p.ranks, Boot: boot, Buffer: 1 << 20, Warps: 2})
	if err == nil {
		err = jobs[f[0]](p)
		failed := p.s.ctx.Err() != nil
		if cerr := p.s.Close(); err == nil {
			err = cerr
		}
		if failed {
			p.idle()
		}
	}
	if err != nil {
		fmt.Printf("ended: %s\n", kind(err))
		return
	}
	for dev := range p.ranks {
		if n := control.Used(t, dev); n != 0 {
			t.Errorf("device %d: %d bytes are still taken", dev, n)
		}
	}
	fmt.Println("ended: well")
}

// idle fails where a session that failed has left a GPU busy; its streams go
// with the process.
func (p *play) idle() {
	for _, r := range p.s.ranks {
		if done, err := r.dev.Done(r.stream); !done || err != nil {
			p.t.Errorf("GPU %d is left busy (%v)", r.dev.Index, err)
		}
	}
}

// kind is an error's type as callers see it, and its text.
func kind(err error) string {
	var dead *bootstrap.DeadError
	var gone *bootstrap.AbortError
	var c *cuda.Error
	switch {
	case errors.As(err, &dead):
		return fmt.Sprintf("dead %d: %v", dead.Rank, err)
	case errors.As(err, &gone):
		return fmt.Sprintf("abort %d: %v", gone.Rank, err)
	case errors.As(err, &c):
		return fmt.Sprintf("cuda %d: %v", c.Code, err)
	case errors.Is(err, exec.ErrUnsupported):
		return "unsupported: " + err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "late: " + err.Error()
	}
	return "untyped: " + err.Error()
}

// together starts a process for each rank of a job and returns what each said
// at its end: "" if it did not come to say anything.
func together(t *testing.T, job string, ranks int) []string {
	t.Helper()
	realtest.Library(t) // built once
	secret, err := bootstrap.NewSecret()
	if err != nil {
		t.Fatal(err)
	}
	root, err := bootstrap.NewRoot("127.0.0.1:0", ranks, secret, limits)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	said := make([]string, ranks)
	var wg sync.WaitGroup
	for r := range ranks {
		wg.Go(func() {
			cmd := osexec.CommandContext(ctx, self, "-test.run=^TestMember$", "-member",
				fmt.Sprintf("%s,%d,%d,%v", job, r, ranks, root.ID()))
			cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // to see where it hangs
			cmd.WaitDelay = 5 * time.Second
			out, err := cmd.CombinedOutput()
			for line := range strings.Lines(string(out)) {
				if text, ok := strings.CutPrefix(line, "ended: "); ok {
					said[r] = strings.TrimSpace(text)
				}
			}
			if said[r] != "" && err != nil || said[r] == "" && ctx.Err() != nil {
				t.Errorf("rank %d: %v\n%s", r, err, out)
			}
		})
	}
	wg.Wait()
	return said
}

// plans builds an all_reduce.
func (p *play) plan(c *connect.Layout, proto coll.Protocol, count int64) *plan.Plan {
	pl, err := build.Plan(c, plan.Request{Func: coll.AllReduce, Type: coll.Float32, Count: count,
		Algo: coll.Ring, Proto: proto, Channels: 2, Warps: 16})
	if err != nil {
		p.t.Fatal(err)
	}
	return pl
}

// right measures a plan and checks each element.
func (p *play) right(pl *plan.Plan, by Method) error {
	m, err := p.s.Measure(context.Background(), OpOf(pl), by, Options{Iters: 2, Warmup: 1, Check: 2})
	if err == nil && (m.Wrong != 0 || !m.Checked) {
		err = fmt.Errorf("%d wrong: %s", m.Wrong, m.First)
	}
	return err
}

// small is a communicator with FIFOs that wrap.
func small(perNode, nodes int) *connect.Layout {
	c := exectest.Comm(perNode, nodes, 2)
	c.BuffSizes = [3]units.Bytes{32 << 10, 8 * 5760 * 8, 64 << 10}
	return c
}

// onHost lets all connections go through host memory.
func onHost(c *connect.Layout) *connect.Layout {
	c.RouteOf = func(src, dst int32, _ int, _ connect.RouteKind) connect.Route {
		return connect.Route{Transport: connect.SHM, SrcNet: -1, DstNet: -1, SrcProxy: src, DstProxy: dst}
	}
	return c
}

func (p *play) peers() error {
	c := small(p.ranks, 1)
	for _, proto := range []coll.Protocol{coll.LL, coll.LL128, coll.Simple} {
		if err := p.right(p.plan(c, proto, 40_003), Planned); err != nil {
			return fmt.Errorf("%v: %w", proto, err)
		}
	}
	return p.right(p.plan(c, coll.LL, 5000), Free(cuda.TwoShot))
}

func (p *play) mixed() error {
	c := small(p.ranks/2, 2)
	for _, proto := range []coll.Protocol{coll.LL, coll.Simple} {
		pl := p.plan(c, proto, 40_003)
		if err := p.right(pl, Planned); err != nil {
			return fmt.Errorf("%v: %w", proto, err)
		}
		w, err := p.s.Watch(OpOf(pl), 3)
		if err != nil {
			return err
		}
		if res := w.result(); res.Wrong != 0 || res.Elapsed == 0 {
			return fmt.Errorf("%v, watched: %d wrong after %v", proto, res.Wrong, res.Elapsed)
		}
	}
	return nil
}

// islands is a communicator whose last rank the others reach through the host.
func islands(ranks int) *connect.Layout {
	c := small(ranks, 1)
	far := onHost(small(ranks, 1)).RouteOf
	near, last := c.RouteOf, int32(ranks-1)
	c.RouteOf = func(src, dst int32, channel int, kind connect.RouteKind) connect.Route {
		if src == last || dst == last {
			return far(src, dst, channel, kind)
		}
		return near(src, dst, channel, kind)
	}
	return c
}

func (p *play) island() error {
	for _, proto := range []coll.Protocol{coll.LL, coll.Simple} {
		if err := p.right(p.plan(islands(p.ranks), proto, 40_003), Planned); err != nil {
			return fmt.Errorf("%v: %w", proto, err)
		}
	}
	return nil
}

// apart is refused over peers by all, and then goes through the host.
func (p *play) apart() error {
	var u *exec.UnsupportedError
	if err := p.s.load(p.plan(small(p.ranks, 1), coll.Simple, 1000), false); !errors.As(err, &u) ||
		!strings.Contains(err.Error(), "P2P from GPU") {
		return fmt.Errorf("peer memory without P2P: %v, want *exec.UnsupportedError", err)
	}
	for _, proto := range []coll.Protocol{coll.LL, coll.Simple} {
		if err := p.right(p.plan(onHost(small(p.ranks, 1)), proto, 40_003), Planned); err != nil {
			return fmt.Errorf("%v: %w", proto, err)
		}
	}
	_, err := p.s.Measure(context.Background(), OpOf(p.plan(small(p.ranks, 1), coll.LL, 1000)),
		Free(cuda.OneShot), Options{Iters: 1})
	return err
}

// killed loses rank 1 while the others' kernels wait for it.
func (p *play) killed() error {
	op := OpOf(p.plan(onHost(small(p.ranks, 1)), coll.Simple, 100_000))
	if err := p.s.load(op.Plan, false); err != nil {
		return err
	}
	return p.s.each(func(r *rank) error {
		queue, err := r.queuer(op, Planned)
		if err != nil {
			return err
		}
		if err := r.together(); err != nil {
			return err
		}
		if p.rank == 1 {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if err := queue(); err != nil {
			return err
		}
		return r.wait()
	})
}

func (p *play) memory() error { return nil } // Open fails

// late has rank 2 miss the limit of rank 0, which alone has one.
func (p *play) late() error {
	pl := p.plan(small(p.ranks, 1), coll.Simple, 100_000)
	if err := p.right(pl, Planned); err != nil {
		return err
	}
	ctx := context.Background()
	if p.rank == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
	}
	if p.rank == 2 {
		select {
		case <-p.s.ctx.Done():
			return context.Cause(p.s.ctx)
		case <-time.After(10 * time.Minute):
			return errors.New("nobody told rank 2 that the others gave up")
		}
	}
	_, err := p.s.Measure(ctx, OpOf(pl), Planned, Options{Iters: 2})
	return err
}

// TestProcessesSharePeerMemory: plans and free algorithms over CUDA IPC.
func TestProcessesSharePeerMemory(t *testing.T) {
	for r, said := range together(t, "peers", 3) {
		if said != "well" {
			t.Errorf("rank %d: %s", r, said)
		}
	}
}

// TestProcessesShareHostMemory: of four ranks on two synthetic nodes, half of the
// connections are in peer memory, half on the host.
func TestProcessesShareHostMemory(t *testing.T) {
	for r, said := range together(t, "mixed", 4) {
		if said != "well" {
			t.Errorf("rank %d: %s", r, said)
		}
	}
}

// TestOneGPUApart: of three GPUs two reach each other. The third's connections
// are on the host, in one process and in three.
func TestOneGPUApart(t *testing.T) {
	for r, said := range together(t, "island", 3) {
		if said != "well" {
			t.Errorf("rank %d: %s", r, said)
		}
	}
	d, control := driver(t)
	control.Apart(t, 2)
	s, err := team(t, d)
	if err != nil {
		t.Fatal(err)
	}
	p := &play{t: t, s: s, ranks: 3}
	if err := p.island(); err != nil {
		t.Error(err)
	}
	for _, by := range []Method{Free(cuda.Direct), Planned} {
		if _, err := s.Measure(context.Background(), allReduce(t, 4096), by, Options{Iters: 1}); !errors.Is(
			err, exec.ErrUnsupported) {
			t.Errorf("%v: %v, want unsupported", by, err)
		}
	}
	if err := p.island(); err != nil {
		t.Errorf("after what was refused: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	empty(t, control)
}

// TestFaultsOfProcesses: whatever happens to one, every rank ends with an error
// that says what, by type.
func TestFaultsOfProcesses(t *testing.T) {
	for _, c := range []struct {
		job  string
		want []string // beginning of what each rank says
	}{
		{"apart", []string{"unsupported: ", "unsupported: ", "unsupported: "}},
		{"killed", []string{"dead 1: ", "", "dead 1: "}},
		{"memory", []string{"abort 1: ", "cuda 2: ", "abort 1: "}},
		{"late", []string{"late: ", "abort 0: ", "abort 0: "}},
	} {
		t.Run(c.job, func(t *testing.T) {
			for r, said := range together(t, c.job, 3) {
				if !strings.HasPrefix(said, c.want[r]) || c.want[r] == "" && said != "" {
					t.Errorf("rank %d ended %q, want %q", r, said, c.want[r])
				}
			}
		})
	}
}
