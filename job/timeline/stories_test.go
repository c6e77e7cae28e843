package timeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	session "github.com/simccl/simccl/job"
	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

const ms = units.Millisecond

// carryOut runs a text in which every call takes as long as cost says, and nothing is
// shared.
func carryOut(t testing.TB, text string, cost func(c *workload.Call) units.Time) (*session.Result, error) {
	t.Helper()
	p, err := workload.Parse(text, "p")
	if err != nil {
		return nil, err
	}
	return onCosts(p, cost)
}

func onCosts(p *workload.Program, cost func(c *workload.Call) units.Time) (*session.Result, error) {
	lasts := func(c *workload.Call) units.Time { return max(cost(c), 1) }
	r, err := streams.Run(context.Background(), streams.Apart(p, lasts, math.MaxInt64))
	out := &session.Result{Result: r, Program: p, Calls: make([]session.Call, len(p.Calls))}
	for i := range out.Calls {
		out.Calls[i].Alone = lasts(&p.Calls[i])
	}
	return out, err
}

func play(t testing.TB, text string, cost func(c *workload.Call) units.Time) *Timeline {
	t.Helper()
	r, err := carryOut(t, text, cost)
	if err != nil {
		t.Fatal(err)
	}
	return Of(r)
}

// about compares to a nanosecond: a call of no time takes a picosecond.
func about(a, b units.Time) bool { return a-b < units.Nanosecond && b-a < units.Nanosecond }

// TestTwoBuckets: DDP by hand. Backward is 10 ms a bucket; the first all_reduce of
// 6 ms hides behind the second half, 2 ms of the second one of 6 ms do behind the
// optimizer's preparation, and 4 ms are exposed. The end waited for both computations
// and the second call.
func TestTwoBuckets(t *testing.T) {
	x := play(t, `workload 1
ranks 2
comm dp *
list r 0-1
  compute 0 10000000000
  call 1 dp all_reduce float sum 1 after=0
  compute 0 10000000000
  call 1 dp all_reduce float sum 2 after=2
  compute 0 2000000000
  compute 0 1000000000 after=3
`, func(*workload.Call) units.Time { return 6 * ms })
	for rank := range 2 {
		a := x.Account(rank)
		if !about(a.Compute, 23*ms) || !about(a.Moving, 4*ms) || a.Bubble+a.Host+a.Idle > units.Nanosecond ||
			!about(a.Total, 27*ms) {
			t.Errorf("rank %d: %+v", rank, a)
		}
	}
	path := x.Path()
	checkPath(t, x, path)
	if s := x.Shares(path); len(s) != 2 || s[0].Kind != Computing || !about(s[0].Time, 21*ms) ||
		s[1].Kind != Moving || !about(s[1].Time, 6*ms) {
		t.Errorf("%+v", s)
	}
}

// checkPath: the path is without a gap from the start to the end.
func checkPath(t testing.TB, x *Timeline, path []Piece) {
	t.Helper()
	at := units.Time(0)
	for i, p := range path {
		if p.From != at || p.To <= p.From {
			t.Fatalf("piece %d of %d is from %v to %v, the one before it ends at %v", i, len(path), p.From,
				p.To, at)
		}
		at = p.To
	}
	if at != x.r.Elapsed() {
		t.Fatalf("the path ends at %v, the job at %v", at, x.r.Elapsed())
	}
}

// pipeline is 1F1B (Narayanan et al. 2021, PipeDream-Flush): p stages, m micro-batches,
// forward and backward of a millisecond each.
func pipeline(p, m int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "workload 1\nranks %d\ncomm pp * kind=PP\n", p)
	for s := range p {
		fmt.Fprintf(&b, "list stage%d %d\n", s, s)
		n, last := 0, -1
		add := func(format string, args ...any) int {
			fmt.Fprintf(&b, "  "+format+"\n", args...)
			n++
			return n - 1
		}
		work := func(from, to int) {
			after := ""
			if from >= 0 {
				after = fmt.Sprintf(" after=%d", add("call 1 pp recv half sum 64 peer=%d", from))
			}
			last = add("compute 0 1000000000%s", after)
			if to >= 0 && to < p {
				add("call 2 pp send half sum 64 peer=%d after=%d", to, last)
			}
		}
		forward := func() { work(s-1, s+1) }
		backward := func() {
			from := s + 1
			if from == p {
				from = -1
			}
			work(from, s-1)
		}
		warm := min(p-1-s, m)
		for range warm {
			forward()
		}
		for range m - warm {
			forward()
			backward()
		}
		for range warm {
			backward()
		}
	}
	return b.String()
}

// TestPipeline: the bubble of 1F1B on links that take no time is (p-1)/(m+p-1) of the
// iteration on every stage, exactly.
func TestPipeline(t *testing.T) {
	for _, c := range [][2]int{{1, 3}, {2, 2}, {2, 8}, {4, 4}, {4, 8}, {8, 24}} {
		p, m := c[0], c[1]
		x := play(t, pipeline(p, m), func(*workload.Call) units.Time { return 0 })
		want := float64(p-1) / float64(m+p-1)
		if total := x.r.Elapsed(); !about(total, units.Time(2*(m+p-1))*ms) {
			t.Errorf("p=%d m=%d takes %v", p, m, total)
		}
		for rank := range p {
			a := x.Account(rank)
			if got := float64(a.Bubble+a.Idle) / float64(a.Total); math.Abs(got-want) > 1e-6 {
				t.Errorf("p=%d m=%d: the bubble of stage %d is %.6f, want %.6f", p, m, rank, got, want)
			}
		}
		checkPath(t, x, x.Path())
	}
}

// TestPrefetch: FSDP gathers the next layer's parameters while it computes this one.
// All but the first all_gather of 3 ms hides behind 5 ms of a layer; without prefetch
// none does.
func TestPrefetch(t *testing.T) {
	const layers = 4
	job := func(prefetch bool) string {
		var b strings.Builder
		b.WriteString("workload 1\nranks 2\ncomm f * kind=FSDP\nlist r 0-1\n")
		for l := range layers {
			after := ""
			if l > 0 && !prefetch {
				after = fmt.Sprintf(" after=%d", 2*l-1)
			} else if l > 1 { // the buffers of two layers are there
				after = fmt.Sprintf(" after=%d", 2*l-3)
			}
			fmt.Fprintf(&b, "  call 1 f all_gather half sum %d%s\n  compute 0 5000000000 after=%d\n", 64+l,
				after, 2*l)
		}
		return b.String()
	}
	cost := func(*workload.Call) units.Time { return 3 * ms }
	for prefetch, exposed := range map[bool]units.Time{true: 3 * ms, false: layers * 3 * ms} {
		x := play(t, job(prefetch), cost)
		if a := x.Account(0); !about(a.Moving, exposed) || !about(a.Total, exposed+layers*5*ms) {
			t.Errorf("prefetch %v: %+v", prefetch, a)
		}
	}
}

// TestSkew: experts with more tokens compute longer; the others wait in the second
// alltoall, and none in the first.
func TestSkew(t *testing.T) {
	text := "workload 1\nranks 4\ncomm ep * kind=EP\n"
	shares := []int{40, 30, 20, 10}
	for r, s := range shares {
		text += fmt.Sprintf("list r%d %d\n  call 0 ep alltoall half sum 64\n  compute 0 %d000000000\n"+
			"  call 0 ep alltoall half sum 65\n", r, r, s)
	}
	x := play(t, text, func(*workload.Call) units.Time { return 2 * ms })
	for r, s := range shares {
		a := x.Account(r)
		if !about(a.Compute, units.Time(s)*ms) || !about(a.Moving, 4*ms) ||
			!about(a.Bubble, units.Time(40-s)*ms) {
			t.Errorf("rank %d: %+v", r, a)
		}
	}
	checkPath(t, x, x.Path())
	if p := x.Path(); p[1].Rank != 0 {
		t.Errorf("the end waited for rank %d", p[1].Rank)
	}
}

// TestLateRank: one rank is late by 7 ms; the other waits for so long, the call takes
// what it takes, and the path runs over the late rank. The arrow of the trace is from
// its kernel to the other's.
func TestLateRank(t *testing.T) {
	x := play(t, `workload 1
ranks 2
comm dp *
list a 0
  compute h0 1000000000
  compute 0 3000000000 after=0
  call 0 dp all_reduce float sum 64 after=0
list b 1
  compute h0 9000000000
  compute 0 2000000000 after=0
  call 0 dp all_reduce float sum 64 after=0
`, func(*workload.Call) units.Time { return 5 * ms })
	a, b := x.Account(0), x.Account(1)
	if !about(a.Bubble, 7*ms) || !about(a.Host, ms) || b.Bubble != 0 || !about(b.Host, 9*ms) ||
		!about(a.Moving, 5*ms) || !about(b.Moving, 5*ms) {
		t.Errorf("%+v %+v", a, b)
	}
	path := x.Path()
	checkPath(t, x, path)
	for _, p := range path[:len(path)-1] {
		if p.Rank != 1 {
			t.Errorf("%+v", path)
		}
	}
	m := &trace.Memory{}
	x.Write(m, nil)
	launches, peers := 0, 0
	for i := range m.Events {
		e := &m.Events[i]
		switch {
		case e.Phase != trace.FlowStart:
		case e.Name == "launch":
			launches++
		default:
			peers++
			if m.Tracks[e.Track].Process != nccl.RankPID+1 || e.Start != 11*ms {
				t.Errorf("an arrow starts on process %d at %v", m.Tracks[e.Track].Process, e.Start)
			}
		}
	}
	if launches != 4 || peers != 1 {
		t.Errorf("%d arrows of launches, %d between kernels", launches, peers)
	}
}

// TestGroupOfMessages: a kernel that sends and receives waits for the later of its
// partners.
func TestGroupOfMessages(t *testing.T) {
	x := play(t, `workload 1
ranks 3
comm w *
list a 0
  group 0
  call 0 w recv float sum 64 peer=1
  call 0 w recv float sum 64 peer=2
  end 0
list b 1
  compute 0 2000000000
  call 0 w send float sum 64 peer=0
list c 2
  compute 0 6000000000
  call 0 w send float sum 64 peer=0
`, func(*workload.Call) units.Time { return ms })
	if a := x.Account(0); !about(a.Total, 7*ms) || a.Bubble < 2*ms {
		t.Errorf("%+v", a)
	}
	path := x.Path()
	checkPath(t, x, path)
	if path[0].Rank != 2 {
		t.Errorf("the end waited for rank %d: %+v", path[0].Rank, path)
	}
}

// TestWrongJobs: members whose sizes differ, and a member that never calls, are named
// with their lists.
func TestWrongJobs(t *testing.T) {
	size := `workload 1
ranks 2
comm dp *
list a 0
  call 0 dp all_reduce float sum 64
list b 1
  call 0 dp all_reduce float sum 65
`
	for text, want := range map[string][]string{
		size: {"list b", "65", "64"},
		strings.Replace(size, "  call 0 dp all_reduce float sum 65\n", "", 1): {"list b", "list a", "dp"},
	} {
		_, err := carryOut(t, text, func(*workload.Call) units.Time { return ms })
		var d *streams.DeadlockError
		if err == nil || errors.As(err, &d) {
			t.Errorf("%v", err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%v does not name %s", err, w)
			}
		}
	}
}
