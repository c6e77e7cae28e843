package session_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/session"
	"github.com/simccl/simccl/internal/site"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// machine loads so many nodes of a topology of testdata.
func machine(t testing.TB, topo string, nodes int) (*session.Machine, *scenario.Site) {
	t.Helper()
	spec := scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: topo, Count: nodes}}, Multicast: "off"}}
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

func run(t testing.TB, m *session.Machine, text string, opt session.Options) *session.Result {
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
	for _, call := range []string{"all_reduce float sum 1048576", "all_gather half sum 4096", "broadcast float sum 100000 root=3", "alltoall float sum 65536"} {
		text := fmt.Sprintf("workload 1\nranks 16\ncomm world *\nlist a 0-15\n  call 0 world %s\n", call)
		p, err := workload.Parse(text, "p")
		if err != nil {
			t.Fatal(err)
		}
		cfg := m.Sim
		cfg.Comm, cfg.Systems, cfg.Launch, cfg.Kernels, cfg.NoSkip = s.Comm.Layout, s.Comm.Systems(), sim.Graph, 1, true
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
		step := run(t, m, text, session.Options{Fidelity: session.Step})
		for r := range want.Finish {
			if step.Finish[r] != want.Finish[r] {
				t.Errorf("%s: rank %d ends at %v, by itself at %v", call, r, step.Finish[r], want.Finish[r])
				break
			}
		}
		share := run(t, m, text, session.Options{})
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

// lines repeats a text.
func lines(n int, text string) string { return strings.Repeat(text, n) }

func stories() []story {
	head := func(n int) string { return fmt.Sprintf("workload 1\nranks %d\n", n) }
	const tpdp = "comm tp0 0-7 kind=TP\ncomm tp1 8-15 kind=TP\n"
	dp, lists := "", ""
	for r := range 8 {
		dp += fmt.Sprintf("comm dp%d %d,%d kind=DP\n", r, r, r+8)
		for k := range 2 {
			lists += fmt.Sprintf("list r%d %d\n", r+8*k, r+8*k) + lines(4, fmt.Sprintf("  call 0 tp%d all_reduce half sum 4194304\n", k)) + lines(2, fmt.Sprintf("  call 1 dp%d all_reduce half sum 8388608\n", r))
		}
	}
	return []story{
		{"crossing TP x DP", "dgx-h100.xml", 2, head(16) + tpdp + dp + lists},
		{"two of the same ranks", "h200x4-4.xml", 1, head(4) + "comm a *\ncomm b *\nlist x 0-3\n" + lines(3, "  call 0 a all_reduce half sum 33554432\n") + lines(3, "  call 1 b all_reduce half sum 33554432\n")},
		{"crossing pairs", "h200x4-4.xml", 1, head(4) + "comm a 0-1\ncomm b 2-3\ncomm c 0,2\ncomm d 1,3\n" +
			"list x 0\n" + lines(4, "  call 0 a all_gather half sum 8388608\n") + lines(4, "  call 1 c reduce_scatter half sum 8388608\n") +
			"list y 1\n" + lines(4, "  call 0 a all_gather half sum 8388608\n") + lines(4, "  call 1 d reduce_scatter half sum 8388608\n") +
			"list z 2\n" + lines(4, "  call 0 b all_gather half sum 8388608\n") + lines(4, "  call 1 c reduce_scatter half sum 8388608\n") +
			"list w 3\n" + lines(4, "  call 0 b all_gather half sum 8388608\n") + lines(4, "  call 1 d reduce_scatter half sum 8388608\n")},
		{"one after the other", "h200x4-4.xml", 1, head(4) + "comm a *\nlist x 0-3\n" + lines(6, "  call 0 a all_reduce half sum 524288\n  call 0 a all_gather half sum 131072\n")},
		{"a late rank", "h200x4-4.xml", 1, head(4) + "comm a *\nlist x 1-3\n  call 0 a all_reduce float sum 16777216\nlist y 0\n  compute 0 1000000000\n  call 0 a all_reduce float sum 16777216\n"},
		{"messages", "h200x4-4.xml", 1, head(4) + "comm a *\nlist x 0\n" + lines(3, "  call 0 a send half sum 4194304 peer=1\n") + "list y 1\n" +
			lines(3, "  call 0 a recv half sum 4194304 peer=0\n  call 0 a send half sum 4194304 peer=2\n") + "list z 2\n" + lines(3, "  call 0 a recv half sum 4194304 peer=1\n") + "list w 3\n"},
	}
}

// TestShareAgreesWithStep: on jobs of up to 16 ranks calls that share links by their
// means end when they do step by step, within 3 %.
func TestShareAgreesWithStep(t *testing.T) {
	for _, s := range stories() {
		m, _ := machine(t, s.topo, s.nodes)
		a, b := run(t, m, s.text, session.Options{Fidelity: session.Step}), run(t, m, s.text, session.Options{})
		worst := 0.0
		for r := range a.Finish {
			if a.Finish[r] > 0 {
				worst = math.Max(worst, math.Abs(float64(b.Finish[r])/float64(a.Finish[r])-1))
			}
		}
		t.Logf("%-24s step %10.2f us  share %10.2f us  worst rank %.1f %%", s.name, a.Elapsed().Micros(), b.Elapsed().Micros(), 100*worst)
		if worst > 0.03 {
			t.Errorf("%s: share is %.1f %% off", s.name, 100*worst)
		}
	}
}
