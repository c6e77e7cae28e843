package job_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// machine loads so many nodes of a topology of testdata.
func machine(t testing.TB, topo string, nodes int) (*job.Machine, *scenario.Site) {
	t.Helper()
	spec := scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: topo, Count: nodes}},
		Multicast: "off"}}
	opt := site.Options()
	opt.Files = site.Files(t)
	s, err := scenario.Load(&spec, opt)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Session(&spec)
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}

func run(t testing.TB, m *job.Machine, text string, opt job.Options) *job.Result {
	t.Helper()
	p, err := workload.Parse(text, "p")
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Run(context.Background(), p, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestOneCallIsTheOperation: a job of one call takes what the operation takes by
// itself: step by step to the picosecond, and shared too.
func TestOneCallIsTheOperation(t *testing.T) {
	m, s := machine(t, "dgx-h100.xml", 2)
	for _, call := range []string{"all_reduce float sum 1048576", "all_gather half sum 4096",
		"broadcast float sum 100000 root=3", "alltoall float sum 65536"} {
		text := fmt.Sprintf("workload 1\nranks 16\ncomm world *\nlist a 0-15\n  call 0 world %s\n", call)
		p, err := workload.Parse(text, "p")
		if err != nil {
			t.Fatal(err)
		}
		cfg := m.Sim
		cfg.Comm, cfg.Systems, cfg.Launch, cfg.Kernels, cfg.NoSkip = s.Comm.Layout, s.Comm.Systems(),
			sim.Graph, 1, true
		x, err := sim.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		c := &p.Calls[0]
		o := scenario.Operation{Type: c.Type, RedOp: c.RedOp, Root: int(c.Root), Count: c.Count}
		pl, _, err := s.Comm.Plan(o.Op(c.Func))
		if err != nil {
			t.Fatal(err)
		}
		want, err := x.Run(context.Background(), exec.One(pl), trace.Discard)
		if err != nil {
			t.Fatal(err)
		}
		step := run(t, m, text, job.Options{Fidelity: job.Step})
		for r := range want.Finish {
			if step.Finish[r] != want.Finish[r] {
				t.Errorf("%s: rank %d ends at %v, by itself at %v", call, r, step.Finish[r], want.Finish[r])
				break
			}
		}
		share := run(t, m, text, job.Options{})
		var last units.Time
		for _, f := range want.Finish {
			last = max(last, f)
		}
		if e := share.Elapsed(); math.Abs(float64(e-last)) > 0.001*float64(last) {
			t.Errorf("%s: shared %v, by itself %v", call, e, last)
		}
	}
}

// story is a job of which share and step are compared.
type story struct {
	name  string
	topo  string
	nodes int
	text  string
}

// worst is by how much a rank may end apart. Of an all_reduce whose links are shared on one
// node alone, step by step the ranks of the other node are through some time before.
func (s *story) worst() float64 {
	if s.name == "groups across nodes" {
		return 0.1
	}
	return 0.03
}

// lines repeats a text.
func lines(n int, text string) string { return strings.Repeat(text, n) }

// stories are jobs of several communicators.
func stories() []story { return append(crossings(), meetings()...) }

// head begins a job of n ranks.
func head(n int) string { return fmt.Sprintf("workload 1\nranks %d\n", n) }

// crossings are of communicators that cross each other.
func crossings() []story {
	const tpdp = "comm tp0 0-7 kind=TP\ncomm tp1 8-15 kind=TP\n"
	dp, lists := "", ""
	for r := range 8 {
		dp += fmt.Sprintf("comm dp%d %d,%d kind=DP\n", r, r, r+8)
		for k := range 2 {
			lists += fmt.Sprintf("list r%d %d\n", r+8*k, r+8*k) +
				lines(4, fmt.Sprintf("  call 0 tp%d all_reduce half sum 4194304\n", k)) +
				lines(2, fmt.Sprintf("  call 1 dp%d all_reduce half sum 8388608\n", r))
		}
	}
	return []story{
		{"crossing TP x DP", "dgx-h100.xml", 2, head(16) + tpdp + dp + lists},
		{"two of the same ranks", "h200x4-4.xml", 1, head(4) + "comm a *\ncomm b *\nlist x 0-3\n" +
			lines(3, "  call 0 a all_reduce half sum 33554432\n") +
			lines(3, "  call 1 b all_reduce half sum 33554432\n")},
		{"crossing pairs", "h200x4-4.xml", 1, head(4) + "comm a 0-1\ncomm b 2-3\ncomm c 0,2\ncomm d 1,3\n" +
			"list x 0\n" + lines(4, "  call 0 a all_gather half sum 8388608\n") +
			lines(4, "  call 1 c reduce_scatter half sum 8388608\n") +
			"list y 1\n" + lines(4, "  call 0 a all_gather half sum 8388608\n") +
			lines(4, "  call 1 d reduce_scatter half sum 8388608\n") +
			"list z 2\n" + lines(4, "  call 0 b all_gather half sum 8388608\n") +
			lines(4, "  call 1 c reduce_scatter half sum 8388608\n") +
			"list w 3\n" + lines(4, "  call 0 b all_gather half sum 8388608\n") +
			lines(4, "  call 1 d reduce_scatter half sum 8388608\n")},
		{"one after the other", "h200x4-4.xml", 1, head(4) + "comm a *\nlist x 0-3\n" +
			lines(6, "  call 0 a all_reduce half sum 524288\n  call 0 a all_gather half sum 131072\n")},
		{"a late rank", "h200x4-4.xml", 1, head(4) + "comm a *\nlist x 1-3\n" +
			"  call 0 a all_reduce float sum 16777216\nlist y 0\n  compute 0 1000000000\n" +
			"  call 0 a all_reduce float sum 16777216\n"},
		{"nested groups", "h200x4-4.xml", 1, head(4) + "comm a *\ncomm b 0-1\nlist x 0-1\n" +
			lines(4, "  call 0 a all_reduce half sum 8388608\n") +
			lines(4, "  call 1 b all_reduce half sum 8388608\n") +
			"list y 2-3\n" + lines(4, "  call 0 a all_reduce half sum 8388608\n")},
		{"a split that shares", "h200x4-4.xml", 1, head(4) +
			"comm a *\ncomm b 0-1 parent=a share\ncomm c 2-3 parent=a share\nlist x 0-1\n" +
			lines(3, "  call 0 a all_reduce half sum 8388608\n  call 1 b all_gather half sum 4194304\n") +
			"list y 2-3\n" +
			lines(3, "  call 0 a all_reduce half sum 8388608\n  call 1 c all_gather half sum 4194304\n")},
		{"a graph replayed", "h200x4-4.xml", 1, head(4) + "comm a *\ncomm b *\nlist x 0-3\n" +
			lines(3, "  compute 0 30000000\n  group 0\n  call 0 a all_reduce half sum 2097152\n"+
				"  call 1 b all_gather half sum 1048576\n  end 0\n")},
		{"messages", "h200x4-4.xml", 1, head(4) + "comm a *\nlist x 0\n" +
			lines(3, "  call 0 a send half sum 4194304 peer=1\n") + "list y 1\n" +
			lines(3, "  call 0 a recv half sum 4194304 peer=0\n  call 0 a send half sum 4194304 peer=2\n") +
			"list z 2\n" + lines(3, "  call 0 a recv half sum 4194304 peer=1\n") + "list w 3\n"},
	}
}

// meetings are of kernels of several communicators, or of a group, at once.
func meetings() []story {
	return []story{
		{"an alltoall beside an all_reduce", "dgx-h100.xml", 1, head(8) +
			"comm ep *\ncomm dp0 0-3\ncomm dp1 4-7\n" +
			"list x 0-3\n" + lines(5, "  call 0 ep alltoall half sum 1048576\n") +
			lines(3, "  call 1 dp0 all_reduce half sum 8388608\n") +
			"list y 4-7\n" + lines(5, "  call 0 ep alltoall half sum 1048576\n") +
			lines(3, "  call 1 dp1 all_reduce half sum 8388608\n")},
		{"gathers beside scatters of other sizes", "dgx-h100.xml", 1, head(8) +
			"comm a *\ncomm b *\nlist x 0-7\n" + lines(6, "  call 0 a all_gather half sum 1048576\n") +
			lines(2, "  call 1 b reduce_scatter half sum 4194304\n")},
		{"three at once", "h200x4-4.xml", 1, head(4) + "comm a *\ncomm b *\ncomm c 1-2\n" +
			"list x 0,3\n" + lines(3, "  call 0 a all_reduce half sum 8388608\n") +
			lines(3, "  call 1 b broadcast half sum 16777216\n") +
			"list y 1-2\n" + lines(3, "  call 0 a all_reduce half sum 8388608\n") +
			lines(3, "  call 1 b broadcast half sum 16777216\n") +
			lines(3, "  call 2 c all_gather half sum 8388608\n")},
		{"a group of several calls", "h200x4-4.xml", 1, head(4) +
			"comm a *\ncomm b 0-1\ncomm c 2-3\nlist x 0-1\n" +
			lines(2, "  group 0\n  call 0 a all_reduce half sum 32768\n"+
				"  call 2 a all_gather half sum 524288\n  call 0 a all_reduce half sum 100000\n"+
				"  call 0 b reduce_scatter half sum 1048576\n  end 0\n") +
			"list y 2-3\n" + lines(2, "  group 0\n  call 0 a all_reduce half sum 32768\n"+
			"  call 2 a all_gather half sum 524288\n  call 0 a all_reduce half sum 100000\n"+
			"  call 0 c reduce_scatter half sum 1048576\n  end 0\n")},
		{"collectives beside sends in a group", "h200x4-4.xml", 1, head(4) + "comm a *\n" + ringGroups(4, 3)},
		{"compute beside collectives", "h200x4-4.xml", 1, head(4) + "comm a *\n" +
			"work 1 add bytes=268435456 blocks=32768 persm=16\n" +
			"work 2 mul bytes=402653184 blocks=132 persm=1\nlist x 0-3\n" +
			lines(12, "  compute 1 66000000 work=1\n") + "  compute 1 500000000 work=2\n" +
			lines(5, "  call 0 a all_reduce half sum 8388608\n  call 0 a all_gather half sum 8388608\n"+
				"  call 0 a all_reduce half sum 524288\n")},
		{"groups across nodes", "dgx-h100.xml", 2, head(16) + "comm a *\ncomm b 0-7\nlist x 0-7\n" +
			lines(2, "  call 0 a all_reduce half sum 16777216\n") +
			lines(6, "  call 1 b all_reduce half sum 8388608\n") +
			"list y 8-15\n" + lines(2, "  call 0 a all_reduce half sum 16777216\n")},
	}
}

// ringGroups are lists of n ranks with groups of a message to the next rank, an alltoall and
// two all_reduces.
func ringGroups(n, times int) string {
	var b strings.Builder
	for r := range n {
		fmt.Fprintf(&b, "list r%d %d\n", r, r)
		b.WriteString(lines(times, fmt.Sprintf("  group 0\n  call 0 a send half sum 100000 peer=%d\n"+
			"  call 0 a all_reduce half sum 32768\n  call 2 a recv half sum 100000 peer=%d\n"+
			"  call 0 a alltoall half sum 5000\n  call 0 a all_reduce half sum 1000000\n  end 0\n", (r+1)%n,
			(r+n-1)%n)))
	}
	return b.String()
}

// TestMixedGroupsAreKernels: sends, receives and an alltoall beside collectives of a group
// are part of the kernel that NCCL's planner makes; beside a send whose receive is in
// another group they stay kernels of their own.
func TestMixedGroupsAreKernels(t *testing.T) {
	m, _ := machine(t, "h200x4-4.xml", 1)
	text := "workload 1\nranks 4\ncomm a *\n" + ringGroups(4, 1)
	whole := run(t, m, text, job.Options{})
	for r := range whole.Spans {
		for k := 2; k < 6; k++ {
			if whole.Spans[r][k] != whole.Spans[r][1] {
				t.Errorf("rank %d: step %d spans %v, the first %v", r, k, whole.Spans[r][k],
					whole.Spans[r][1])
			}
		}
	}
	apart := run(t, m, strings.NewReplacer("  group 0\n", "", "  end 0\n", "", "recv half sum 100000",
		"recv half sum 100000").Replace(text), job.Options{})
	if whole.Operations != 1 || whole.Elapsed() >= apart.Elapsed() {
		t.Errorf("%d operations, %v; apart %v", whole.Operations, whole.Elapsed(), apart.Elapsed())
	}
	odd := "workload 1\nranks 2\ncomm a *\nlist x 0\n  group 0\n  call 0 a all_reduce half sum 1000\n" +
		"  call 0 a send half sum 1000 peer=1\n  end 0\n" +
		"list y 1\n  group 0\n  call 0 a all_reduce half sum 1000\n  end 0\n" +
		"  call 1 a recv half sum 1000 peer=0\n"
	if r := run(t, m, odd, job.Options{}); r.Operations != 2 {
		t.Errorf("%d operations where the receive is in no group", r.Operations)
	}
}

// TestSharedSplitsTakeTurns: kernels of a communicator and of its splits that share
// its resources run one after the other on a GPU; those of splits that do not, at
// once.
func TestSharedSplitsTakeTurns(t *testing.T) {
	m, _ := machine(t, "h200x4-4.xml", 1)
	var text string
	for _, s := range stories() {
		if s.name == "a split that shares" {
			text = s.text
		}
	}
	for _, fidelity := range []job.Fidelity{job.Step, job.Share} {
		turns := func(text string) (overlaps int) {
			r := run(t, m, text, job.Options{Fidelity: fidelity})
			for i := 1; i < len(r.Spans[0]); i++ {
				if r.Spans[0][i].Begin < r.Spans[0][i-1].End {
					overlaps++
				}
			}
			return overlaps
		}
		if n := turns(text); n != 0 {
			t.Errorf("%v: %d kernels of shared resources overlap", fidelity, n)
		}
		if turns(strings.ReplaceAll(text, " parent=a share", " parent=a")) == 0 {
			t.Errorf("%v: no kernels of resources of their own overlap", fidelity)
		}
	}
}

// TestLateRankHoldsSMs: the kernels of the ranks that wait hold their SMs, so that
// compute of several waves takes longer, and the late rank's does not.
func TestLateRankHoldsSMs(t *testing.T) {
	m, _ := machine(t, "h200x4-4.xml", 1)
	const text = `workload 1
ranks 4
comm a *
work 1 many blocks=132000 persm=1
list x 1-3
  call 0 a all_reduce float sum 16777216
  compute 1 500000000 work=1
list y 0
  compute 0 1000000000
  call 0 a all_reduce float sum 16777216
`
	r := run(t, m, text, job.Options{})
	c := r.Calls[0].Channels
	want := 500 * math.Ceil(132000/float64(132-c)) / 1000
	if got := r.Spans[1][1].End.Micros(); math.Abs(got-want) > 1 {
		t.Errorf("compute beside %d SMs held takes %g us, want %g", c, got, want)
	}
}

// TestShareAgreesWithStep: on jobs of up to 16 ranks calls that share links by what
// they need end when they do step by step, within 3 %. Nested groups miss that aim:
// of a call over four ranks half of the links are shared with a call over two, and
// how much its bursts there hold up the rest is estimated (partly).
func TestShareAgreesWithStep(t *testing.T) {
	for _, s := range stories() {
		m, _ := machine(t, s.topo, s.nodes)
		a, b := run(t, m, s.text, job.Options{Fidelity: job.Step}), run(t, m, s.text, job.Options{})
		worst := 0.0
		for r := range a.Finish {
			if a.Finish[r] > 0 {
				worst = math.Max(worst, math.Abs(float64(b.Finish[r])/float64(a.Finish[r])-1))
			}
		}
		off := float64(b.Elapsed())/float64(a.Elapsed()) - 1
		t.Logf("%-40s step %10.2f us  share %10.2f us  %+5.1f %%  worst rank %.1f %%", s.name,
			a.Elapsed().Micros(), b.Elapsed().Micros(), 100*off, 100*worst)
		if math.Abs(off) > 0.03 || worst > s.worst() {
			t.Errorf("%s: share is %.1f %% off, of a rank %.1f %%", s.name, 100*off, 100*worst)
		}
	}
}

// TestGroupsAreKernels: the collectives of a group on a communicator are the kernels of
// NCCL's planner, in every fidelity that simulates; sends and receives stay their own.
func TestGroupsAreKernels(t *testing.T) {
	m, s := machine(t, "h200x4-4.xml", 1)
	const calls = "  call 0 a all_reduce half sum 32768\n  call 3 a all_gather half sum 262144\n" +
		"  call 0 a all_reduce half sum 100000\n  call 0 a broadcast half sum 4096 root=2\n"
	const head = "workload 1\nranks 4\ncomm a *\nlist x 0-3\n"
	group := []launch.Call{{Func: coll.AllReduce, Type: coll.Float16, Count: 32768},
		{Func: coll.AllGather, Type: coll.Float16, Count: 262144},
		{Func: coll.AllReduce, Type: coll.Float16, Count: 100000}, {Func: coll.Broadcast, Type: coll.Float16,
			Count: 4096, Root: 2}}
	l := s.Comm.Launcher(group, launch.Captured)
	kernels, err := launch.Plan(l, group, launch.Captured)
	if err != nil || len(kernels) != 1 {
		t.Fatalf("%d kernels, %v", len(kernels), err)
	}
	p, err := kernels[0].Plan(l)
	if err != nil {
		t.Fatal(err)
	}
	cfg := m.Sim
	cfg.Comm, cfg.Systems, cfg.Launch, cfg.Kernels, cfg.NoSkip = s.Comm.Layout, s.Comm.Systems(), sim.Graph,
		1, true
	x, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	want, err := x.Run(context.Background(), exec.One(p), trace.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []job.Fidelity{job.Step, job.Share} {
		got := run(t, m, head+"  group 0\n"+calls+"  end 0\n", job.Options{Fidelity: f})
		apart := run(t, m, head+calls, job.Options{Fidelity: f})
		for r := range want.Finish {
			if off := float64(got.Finish[r])/float64(want.Finish[r]) - 1; math.Abs(off) > 0.001 {
				t.Errorf("%v: rank %d ends at %v, the kernel alone at %v", f, r, got.Finish[r],
					want.Finish[r])
			}
			for k := 2; k < 5; k++ { // all calls are the one kernel
				if got.Spans[r][k].End != got.Spans[r][1].End ||
					got.Spans[r][k].Begin != got.Spans[r][1].Begin {
					t.Errorf("%v: rank %d: call %d spans %v, the first %v", f, r, k, got.Spans[r][k],
						got.Spans[r][1])
				}
			}
		}
		if got.Operations != 1 || got.Elapsed() >= apart.Elapsed() || len(got.Calls) != 4 {
			t.Errorf("%v: %d operations, %v; apart %v; %d calls", f, got.Operations, got.Elapsed(),
				apart.Elapsed(), len(got.Calls))
		}
	}
	// Ranks that have other groups launch call by call.
	const odd = "workload 1\nranks 4\ncomm a *\nlist x 0-2\n  group 0\n" + calls + "  end 0\nlist y 3\n" +
		calls
	if r := run(t, m, odd, job.Options{}); r.Operations != 4 {
		t.Errorf("%d operations of ranks that group apart", r.Operations)
	}
}

// TestSharedSplitHasNoMoreChannels: a split that shares its parent's resources has no more
// channels than that has (NCCL 2.28.9, connect.cc:487).
func TestSharedSplitHasNoMoreChannels(t *testing.T) {
	m, _ := machine(t, "dgx-h100.xml", 2)
	const text = "workload 1\nranks 16\ncomm a *\ncomm b 0-1 parent=a%s\nlist x 0-1\n" +
		"  call 0 a all_reduce float sum 67108864\n  call 0 b all_reduce float sum 67108864\n" +
		"list y 2-15\n  call 0 a all_reduce float sum 67108864\n"
	shared, apart := run(t, m, fmt.Sprintf(text, " share"), job.Options{}), run(t, m, fmt.Sprintf(text, ""),
		job.Options{})
	if top := apart.Calls[0].Channels; shared.Calls[1].Channels > top || apart.Calls[1].Channels <= top {
		t.Errorf("the world has %d channels, a split %d, one that shares %d", top, apart.Calls[1].Channels,
			shared.Calls[1].Channels)
	}
}
