package sym

import (
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/units"
	"pgregory.net/rapid"
)

// machine makes a communicator of one node, with NVLink between all GPUs.
func machine(t testing.TB, release string, ranks, sm int, nvls bool) *Comm {
	t.Helper()
	r, err := rules.For(release)
	if err != nil {
		t.Fatal(err)
	}
	return &Comm{Rules: &r.Sym, Ranks: ranks, Nodes: 1, SM: sm, NVLS: nvls, P2P: true, DirectP2P: true,
		DirectNVLink: true}
}

// The choices of every size on machines of one node. They agree with NCCL's own
// sym_kernels.cc, compiled: of 2.28.9 and 2.30.7, also with NCCL_SYM_TMA_ENABLE=1, on
// 2 to 72 ranks, with and without multicast, 440,448 choices with their blocks, and
// times to the bit.
func TestChoices(t *testing.T) {
	var b strings.Builder
	for _, m := range []struct {
		release   string
		ranks, sm int
		nvls, tma bool
	}{
		{"2.28.9", 2, 90, false, false}, {"2.28.9", 4, 90, false, false}, {"2.28.9", 8, 90, false, false},
		{"2.28.9", 8, 90, true, false},
		{"2.28.9", 8, 100, true, false}, {"2.28.9", 72, 100, true, false}, {"2.27.7", 8, 90, true, false},
		{"2.29.7", 2, 90, true, false}, {"2.29.7", 8, 100, true, false}, {"2.30.7", 8, 100, true, false},
		{"2.30.7", 8, 100, false, true},
	} {
		c := machine(t, m.release, m.ranks, m.sm, m.nvls)
		c.Params.TMA = m.tma
		fmt.Fprintf(&b, "%s, %d ranks of sm_%d, multicast %v, TMA %v\n", m.release, m.ranks, m.sm, m.nvls,
			m.tma)
		for _, f := range []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter} {
			for _, op := range []coll.RedOp{coll.Sum, coll.Avg} {
				if f == coll.AllGather && op != coll.Sum {
					continue
				}
				choices(&b, c, Task{Func: f, Op: op, Type: coll.Float32, Windows: Both})
			}
		}
	}
	golden.Text(t, "testdata/choices.txt", b.String())
}

// choices writes the choice of each size up to 256 GiB where it differs from that of
// the size before.
func choices(b *strings.Builder, c *Comm, t Task) {
	last := ""
	for bytes := int64(1 << 10); bytes <= 1<<38; bytes += bytes / 4 {
		t.Count = bytes / 4
		text := "-"
		if c.Available(t) {
			ch, _ := pickOne(c, t)
			text = fmt.Sprintf("%v on %d", ch.Kernel, ch.Blocks)
		}
		if text != last {
			fmt.Fprintf(b, "  %v %v from %d bytes: %s\n", t.Func, t.Op, bytes, text)
		}
		last = text
	}
}

// Who has no symmetric kernels, and why.
func TestSupported(t *testing.T) {
	for _, tt := range []struct {
		release string
		change  func(*Comm)
		want    string
	}{
		{"2.28.9", func(*Comm) {}, ""},
		{"2.26.2", func(*Comm) {}, "this release has no symmetric kernels"},
		{"2.28.9", func(c *Comm) { c.Ranks = 1 }, "one rank"},
		{"2.28.9", func(c *Comm) { c.Nodes = 2 }, "symmetric kernels need one node"},
		{"2.28.9", func(c *Comm) { c.WindowsOff = true }, "windows are off"},
		{"2.28.9", func(c *Comm) { c.P2P = false }, "not all GPUs can access"},
		{"2.28.9", func(c *Comm) { c.DirectP2P, c.DirectNVLink = false, false }, ""},
		{"2.28.3", func(c *Comm) { c.DirectP2P = false }, "not all GPUs can access"},
		{"2.29.7", func(c *Comm) { c.DirectNVLink = false }, "not all GPUs are joined by NVLink"},
	} {
		c := machine(t, tt.release, 4, 90, false)
		tt.change(c)
		ok, why := c.Supported()
		if ok != (tt.want == "") || !strings.HasPrefix(why, tt.want) {
			t.Errorf("%s: %v %q, want %q", tt.release, ok, why, tt.want)
		}
		if task := (Task{Func: coll.AllReduce, Type: coll.Float32, Count: 1 << 20,
			Windows: Both}); c.Available(task) != ok {
			t.Errorf("%s: available %v", tt.release, !ok)
		}
	}
}

// What is reduced, how, and in which types bears on it (sym_kernels.cc:248, 280).
func TestImplemented(t *testing.T) {
	c := machine(t, "2.28.9", 4, 90, true)
	for _, tt := range []struct {
		task Task
		want bool
	}{
		{Task{Func: coll.AllReduce, Type: coll.Float32}, true},
		{Task{Func: coll.AllReduce, Type: coll.Float64}, false},
		{Task{Func: coll.AllReduce, Type: coll.Int32}, false},
		{Task{Func: coll.AllReduce, Type: coll.BFloat16, Op: coll.Max}, false},
		{Task{Func: coll.ReduceScatter, Type: coll.Float16, Op: coll.Avg}, false},
		{Task{Func: coll.AllGather, Type: coll.Int64}, true},
		{Task{Func: coll.Broadcast, Type: coll.Float32}, false},
	} {
		tt.task.Count, tt.task.Windows = 1<<20, Both
		if got := c.Available(tt.task); got != tt.want {
			t.Errorf("%+v: %v", tt.task, got)
		}
		tt.task.Windows = RecvWindow
		if c.Available(tt.task) {
			t.Errorf("%+v: available", tt.task)
		}
	}
}

// NCCL_SYM_KERNEL names one kernel and switches off all others.
func TestNamedKernel(t *testing.T) {
	c := machine(t, "2.28.9", 4, 90, false)
	task := Task{Func: coll.AllReduce, Type: coll.Float32, Count: 16, Windows: Both}
	c.Params.Kernel = units.Some("AllReduce_RSxLD_AGxST")
	if ch, _ := pickOne(c, task); ch.Kernel != AllReduceLDST || ch.TimeUs != 0 {
		t.Errorf("%+v", ch)
	}
	for _, name := range []string{"allreduce_agxll_r", "AllGather_ST", "AllReduce_AGxLLMC_R"} {
		if c.Params.Kernel = units.Some(name); c.Available(task) {
			t.Errorf("%s: available", name)
		}
	}
	c.Params.Kernel = units.Some("AllReduce_AGxLL_R")
	if _, _, err := c.Launches([]Task{task, task}, nil); err == nil || !strings.Contains(err.Error(),
		"one task") {
		t.Errorf("two tasks of LL: %v", err)
	}
	c = machine(t, "2.29.7", 4, 90, false) // falls back
	c.Params.Kernel = units.Some("AllReduce_AGxLL_R")
	if l, rest, err := c.Launches([]Task{task, task}, nil); err != nil || len(l) != 0 || len(rest) != 2 {
		t.Errorf("2.29.7: %v %v %v", l, rest, err)
	}
}

// Tasks of one kind share a kernel, smallest first; those of others have their own,
// and what has none stays in its order.
func TestLaunches(t *testing.T) {
	c := machine(t, "2.28.9", 4, 90, false)
	sum := func(n int64) Task {
		return Task{Func: coll.AllReduce, Type: coll.Float32, Count: n, Windows: Both}
	}
	tasks := []Task{sum(1 << 20), {Func: coll.Broadcast, Type: coll.Float32, Count: 1 << 18, Windows: Both},
		sum(1 << 16),
		{Func: coll.AllGather, Type: coll.Float32, Count: 1 << 10, Windows: Both},
		{Func: coll.AllReduce, Op: coll.Max, Count: 5, Windows: Both}, sum(7)}
	got, rest, err := c.Launches(tasks, nil)
	if err != nil || fmt.Sprint(rest) != "[1 4]" || len(got) != 2 {
		t.Fatalf("%v, rest %v, %v", got, rest, err)
	}
	var lines []string
	for i := range got {
		lines = append(lines, got[i].Line())
	}
	want := "AllReduce [Symmetric]: 4456476 Bytes -> Kernel AllReduce_RSxLD_AGxST nchannels 7 nthreads 512 " +
		"nWorks 3\n" +
		"AllGather [Symmetric]: 4096 Bytes -> Kernel AllGather_LL nchannels 4 nthreads 512 nWorks 1"
	if s := strings.Join(lines, "\n"); s != want {
		t.Errorf("%s\nwant\n%s", s, want)
	}
	old := machine(t, "2.27.7", 4, 90, false)
	if l, rest, _ := old.Launches(tasks, nil); len(l) != 0 || len(rest) != len(tasks) {
		t.Errorf("2.27.7: a group has %d symmetric kernels", len(l))
	}
	many := make([]Task, 60)
	for i := range many {
		many[i] = sum(int64(1000 - i))
	}
	if l, _, _ := c.Launches(many, nil); len(l) != 2 || len(l[0].Works) != 56 ||
		l[0].Works[0].Task.Count != 941 {
		t.Errorf("60 tasks: %d kernels", len(l))
	}
}

// With one buffer in a window, 2.29 takes LL kernels only in place of LL.
func TestOneWindow(t *testing.T) {
	c := machine(t, "2.29.7", 4, 90, false)
	small := Task{Func: coll.AllReduce, Type: coll.Float32, Count: 16, Windows: SendWindow}
	for _, ll := range []bool{true, false} {
		l, rest, err := c.Launches([]Task{small}, func(Task) bool { return ll })
		if err != nil || (len(l) == 1) != ll || (len(rest) == 0) != ll {
			t.Errorf("LL %v: %v %v %v", ll, l, rest, err)
		}
	}
	big := Task{Func: coll.AllGather, Type: coll.Float32, Count: 1 << 24, Windows: RecvWindow}
	if ch, ok := pickOne(c, big); !ok || ch.Kernel != AllGatherST || ch.IfLL {
		t.Errorf("%+v", ch)
	}
}

// What a block finds in the arguments, as the kernels compute it (device/symmetric/
// primitives.cuh:51-125), covers each task once: by blocks that share a work, or in
// one that has it alone.
func TestSpreadCoversEachTaskOnce(t *testing.T) {
	c := machine(t, "2.28.9", 4, 90, false)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "tasks")
		tasks := make([]Task, n)
		for i := range tasks {
			tasks[i] = Task{Func: coll.AllReduce, Type: coll.Float32,
				Count:   rapid.Int64Range(1, 1<<rapid.IntRange(1, 22).Draw(t, "log")).Draw(t, "count"),
				Windows: Both}
		}
		l, ok := c.launch(tasks)
		if !ok {
			t.Fatal("no kernel")
		}
		if l.Channels < 1 || l.Channels > l.Blocks {
			t.Fatalf("%d of %d blocks", l.Channels, l.Blocks)
		}
		if err := l.Check(); err != nil {
			t.Fatalf("%v: %+v", err, l)
		}
	})
}

// Every kernel's name reads back.
func TestNames(t *testing.T) {
	for k := None + 1; k < numKernels; k++ {
		if got, ok := Named(k.String()); !ok || got != k {
			t.Errorf("%v reads back as %v", k, got)
		}
	}
	if _, ok := Named("AllGather"); ok || None.String() != "" {
		t.Error("AllGather is no kernel")
	}
}

// pickOne chooses the kernel for a task alone.
func pickOne(c *Comm, t Task) (Choice, bool) {
	n := t.normal()
	cells := alignUp(n.Count, CellSize/int64(n.Type.Size()))
	return c.pick(t, cells, cells, 1)
}

// TestLLByCost: in 2.29.2 an LL kernel is taken only where the cost model takes LL, of both
// buffers in windows too (scheduler/symmetric_sched.cc:116 of v2.29.3, 103 of v2.29.7), and two
// ranks use multicast (sym_kernels.cc:279 of v2.29.3, 414 of v2.29.7).
func TestLLByCost(t *testing.T) {
	small := Task{Func: coll.AllReduce, Op: coll.Sum, Type: coll.Float32, Count: 64, Windows: Both}
	for release, want := range map[string]string{"2.28.9": "false 56 true", "2.29.2": "true 56 true",
		"2.29.7": "false 55 false"} {
		c := machine(t, release, 2, 90, true)
		ch, ok := pickOne(c, small)
		stores := false
		for k := None + 1; k < numKernels; k++ {
			stores = stores || table[k].stores && c.mask(small)>>k&1 == 1
		}
		got := fmt.Sprint(ch.IfLL, " ", c.Rules.Tasks, " ", stores)
		if !ok || !ch.Kernel.LL() || got != want {
			t.Errorf("NCCL %s: %v, %s, want %s", release, ch.Kernel, got, want)
		}
	}
}
