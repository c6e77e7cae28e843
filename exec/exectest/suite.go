package exectest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/plan/export"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Subject is an executor under test with a communicator that it can run on.
type Subject struct {
	Comm     *connect.Layout
	Executor exec.Executor
	// Skip lists the requests that the executor cannot run, with the reason;
	// nil: it runs all.
	Skip func(plan.Request) (why string)
	// Exact: two runs give the same times (simulators).
	Exact bool
	// Ideal: links carry any number of flows at once, so a link may carry more
	// than its capacity.
	Ideal bool
	// Silent: the executor writes no trace.
	Silent bool
	// Arrows: the trace shows one operation, with one arrow for every message
	// of the plan.
	Arrows bool
}

// Conform runs the suite: make gives a fresh subject for each case, on nodes
// nodes with at least two ranks in all.
func Conform(t *testing.T, nodes []int, make func(t *testing.T, nodes int) Subject) {
	t.Helper()
	for _, n := range nodes {
		t.Run(fmt.Sprintf("%d nodes", n), func(t *testing.T) {
			s := make(t, n)
			for _, r := range Requests(n) {
				for i, count := range []int64{0, 1, 1000, 20011} {
					r.Count, r.InPlace = count, i%2 == 1
					r.Root = int32(i % s.Comm.NRanks)
					name := fmt.Sprintf("%s/%v/%v/%d", r.Func.TestName(), r.Algo, r.Proto, count)
					t.Run(name, func(t *testing.T) { s.runs(t, r) })
				}
			}
			for _, typ := range []coll.DataType{coll.Int8, coll.Float64} {
				t.Run("unequal/"+typ.TestName(), func(t *testing.T) {
					x := Unequal(t, s.Comm.NRanks)
					s.runs(t, plan.Request{Func: coll.AllToAll, Type: typ, Count: x.Count(), Pairs: x})
				})
			}
			t.Run("no sink", func(t *testing.T) { make(t, n).discards(t) })
			t.Run("cancelled", func(t *testing.T) { make(t, n).cancels(t) })
			t.Run("broken plan", func(t *testing.T) { make(t, n).refuses(t) })
		})
	}
}

// Unequal are counts of an alltoall between ranks of which the first sends nothing and the
// last receives most.
func Unequal(t *testing.T, ranks int) *coll.Pairs {
	t.Helper()
	counts := make([]int64, ranks*ranks)
	for i := ranks; i < len(counts); i++ {
		if counts[i] = int64(i*i%7) * 333; i%ranks == ranks-1 {
			counts[i] += 9001
		}
	}
	x, err := coll.NewPairs(ranks, counts)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func (s *Subject) plan(t *testing.T, r plan.Request) *plan.Plan {
	t.Helper()
	p, err := build.Plan(s.Comm, r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// runs executes one plan silently and with a trace, and checks both.
func (s *Subject) runs(t *testing.T, r plan.Request) {
	if s.Skip != nil {
		if why := s.Skip(r); why != "" {
			t.Skip(why)
		}
	}
	p := s.plan(t, r)
	res, err := s.Executor.Run(context.Background(), exec.One(p), trace.Discard)
	if err != nil {
		t.Fatal(err)
	}
	s.plausible(t, p, &res)
	var seen collector
	again, err := s.Executor.Run(context.Background(), exec.One(p), &seen)
	if err != nil {
		t.Fatalf("with a trace: %v", err)
	}
	// Why all of it ran is no result: a trace has all of it.
	res.Account.Reduction, again.Account.Reduction = exec.Reduction{}, exec.Reduction{}
	if s.Exact && !reflect.DeepEqual(res, again) {
		t.Errorf("a trace changes the result:\n%+v\n%+v", res, again)
	}
	if !s.Silent {
		seen.complete(t, p, s.Arrows)
	}
}

// plausible checks a result against the plan alone.
func (s *Subject) plausible(t *testing.T, p *plan.Plan, res *exec.Result) {
	t.Helper()
	if len(res.Finish) != p.Comm.NRanks {
		t.Fatalf("%d finish times of %d ranks", len(res.Finish), p.Comm.NRanks)
	}
	for r, at := range res.Finish {
		if at < 0 || (at == 0 && len(p.Programs(int32(r))) > 0) {
			t.Errorf("rank %d finishes at %v", r, at)
		}
	}
	if res.Elapsed < 0 || (res.Elapsed == 0 && p.TotalOps() > 0) {
		t.Errorf("takes %v", res.Elapsed)
	}
	if res.Wrong > 0 {
		t.Errorf("%d wrong elements", res.Wrong)
	}
	if want := res.AlgBW * p.Req.Func.BusFactor(p.Comm.NRanks); !near(res.BusBW, want) {
		t.Errorf("busbw %v for algbw %v, want %v", res.BusBW, res.AlgBW, want)
	}
	alg, _ := coll.Bandwidth(p.Req.Func, p.Req.Count, p.Req.Type, p.Comm.NRanks, res.Elapsed)
	if res.Elapsed > 0 && !near(res.AlgBW, alg) {
		t.Errorf("algbw %v in %v, want %v", res.AlgBW, res.Elapsed, alg)
	}
	for _, l := range res.Links {
		if l.Bytes < 0 || l.Busy < 0 {
			t.Errorf("link %s: %d bytes in %v", l.Name, l.Bytes, l.Busy)
		}
		if !s.Ideal && l.Capacity > 0 && l.Bytes > 0 && float64(l.Bytes.Over(l.Capacity)) >
			float64(l.Busy)*1.001+float64(units.Nanosecond) {
			t.Errorf("link %s carries %d bytes in %v, beyond %v GB/s", l.Name, l.Bytes, l.Busy, l.Capacity)
		}
	}
}

func near(a, b float64) bool { return a-b <= 1e-6*(1+b) && b-a <= 1e-6*(1+a) }

// discards: a nil sink is trace.Discard.
func (s Subject) discards(t *testing.T) {
	p := s.plan(t, plan.Request{Func: coll.AllReduce, Type: coll.Float32, Count: 1000, Algo: coll.Ring,
		Proto: coll.Simple, Channels: 1, Warps: 16})
	want, err := s.Executor.Run(context.Background(), exec.One(p), trace.Discard)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Executor.Run(context.Background(), exec.One(p), nil)
	if err != nil {
		t.Fatalf("a nil sink: %v", err)
	}
	if s.Exact && !reflect.DeepEqual(got, want) {
		t.Errorf("a nil sink changes the result:\n%+v\n%+v", got, want)
	}
}

// cancels: a run whose context has ended says so and does not hang.
func (s Subject) cancels(t *testing.T) {
	p := s.plan(t, plan.Request{Func: coll.AllReduce, Type: coll.Float32, Count: 1 << 22, Algo: coll.Ring,
		Proto: coll.Simple, Channels: 1, Warps: 16})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Executor.Run(ctx, exec.One(p), trace.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled run: %v, want %v", err, context.Canceled)
	}
}

// refuses: a plan whose sends and receives do not match is an error, not a
// hang and not a result.
func (s Subject) refuses(t *testing.T) {
	p := s.plan(t, plan.Request{Func: coll.AllReduce, Type: coll.Float32, Count: 1000, Algo: coll.Ring,
		Proto: coll.Simple, Channels: 1, Warps: 16})
	l := export.List(p)
	l.Programs[0].Ops = l.Programs[0].Ops[1:]
	for i := range l.Programs[0].Ops {
		l.Programs[0].Ops[i].Seq--
	}
	broken, err := l.Plan(p)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := s.Executor.Run(context.Background(), exec.One(broken), trace.Discard); err == nil {
		t.Errorf("a plan that lacks a send runs in %v", res.Elapsed)
	}
}

// collector keeps the events that the suite checks.
type collector struct {
	tracks []trace.Track
	slices int
	from   map[int64]units.Time
	to     map[int64]units.Time
	faults []string
}

func (c *collector) Track(t trace.Track) trace.TrackID {
	for i, q := range c.tracks {
		if q.Process == t.Process && q.Thread == t.Thread {
			return trace.TrackID(i)
		}
	}
	c.tracks = append(c.tracks, t)
	return trace.TrackID(len(c.tracks) - 1)
}

func (c *collector) Emit(e *trace.Event) {
	if int(e.Track) >= len(c.tracks) || e.Start < 0 || e.Dur < 0 {
		c.faults = append(c.faults, fmt.Sprintf("%s at %v for %v on track %d of %d", e.Name, e.Start, e.Dur,
			e.Track, len(c.tracks)))
	}
	note := func(m *map[int64]units.Time) {
		if *m == nil {
			*m = map[int64]units.Time{}
		}
		if _, twice := (*m)[e.ID]; twice {
			c.faults = append(c.faults, fmt.Sprintf("arrow %d twice", e.ID))
		}
		(*m)[e.ID] = e.Start
	}
	switch e.Phase {
	case trace.Slice:
		c.slices++
	case trace.FlowStart:
		note(&c.from)
	case trace.FlowEnd:
		note(&c.to)
	}
}

func (c *collector) Close() error { return nil }

// complete: every arrow has both ends, and there is one for every message.
func (c *collector) complete(t *testing.T, p *plan.Plan, arrows bool) {
	t.Helper()
	for i, f := range c.faults {
		if i < 5 {
			t.Error(f)
		}
	}
	if p.TotalOps() > 0 && c.slices == 0 {
		t.Error("the trace has no slice")
	}
	//lint:sorted the test fails whichever arrow is named
	for id, at := range c.from {
		if end, ok := c.to[id]; !ok || end < at {
			t.Errorf("arrow %d from %v to %v (%t)", id, at, end, ok)
			break
		}
	}
	if !arrows {
		return
	}
	want := 0
	if err := export.EachFlow(p, func(*export.Flow) error { want++; return nil }); err != nil {
		t.Fatal(err)
	}
	if len(c.from) != want || len(c.to) != want {
		t.Errorf("%d arrows begin and %d end; the plan has %d messages", len(c.from), len(c.to), want)
	}
}
