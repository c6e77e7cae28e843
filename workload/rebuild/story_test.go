package rebuild

import (
	"errors"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/kineto"
)

// story builds a recording by hand. Times are microseconds.
type story struct {
	t    *kineto.Trace
	corr uint32
}

func newStory(rank, world int) *story {
	return &story{t: &kineto.Trace{File: "rank", Rank: rank, World: world, Groups: []kineto.Group{
		{Name: "0", Desc: "default_pg", Size: world}},
		Names: []string{"gemm", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"}}}
}

func (s *story) call(kind kineto.CallKind, at int64) uint32 {
	s.corr++
	s.t.Calls = append(s.t.Calls, kineto.Call{Start: at * 1000, Dur: 1000, Corr: s.corr, Kind: kind})
	return s.corr
}

// kernel launches a kernel at a time; it runs from start to end.
func (s *story) kernel(at, start, end int64, stream int32) {
	c := s.call(kineto.Launch, at)
	s.t.Ops = append(s.t.Ops, kineto.Op{Start: start * 1000, Dur: (end - start) * 1000, Corr: c,
		Stream: stream, Blocks: 7, Threads: 128})
}

// allReduce launches an all_reduce of 1,024 floats.
func (s *story) allReduce(at, start, end int64, stream int32) {
	s.t.Comms = append(s.t.Comms, kineto.Comm{Start: at*1000 - 500, Dur: 2000, Name: "allreduce",
		Type: "Float", In: 1024, Out: 1024, Group: 0, Root: -1})
	c := s.call(kineto.Launch, at)
	s.t.Ops = append(s.t.Ops, kineto.Op{Start: start * 1000, Dur: (end - start) * 1000, Corr: c,
		Stream: stream, Name: 1, Class: kineto.NCCL})
}

func (s *story) step(from, to int64) {
	s.t.Steps = append(s.t.Steps, kineto.Step{Name: "ProfilerStep#1", Start: from * 1000,
		Dur: (to - from) * 1000})
}

// TestLateRank: rank 1 begins its call 150 µs after rank 0. The call takes 50 µs;
// what rank 0 waited is simulated, and is less when rank 1 is earlier.
func TestLateRank(t *testing.T) {
	a, b := newStory(0, 2), newStory(1, 2)
	a.step(0, 400)
	a.kernel(10, 20, 100, 7)
	a.allReduce(30, 100, 300, 7)
	b.step(0, 400)
	b.kernel(10, 20, 250, 7)
	b.allReduce(30, 250, 300, 7)
	res, err := Job([]*kineto.Trace{b.t, a.t}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := res.Program
	if err := p.Lint(); err != nil {
		t.Fatal(err)
	}
	if len(p.Calls) != 1 || p.Calls[0].Recorded != 50*1_000_000 || p.Calls[0].Func != coll.AllReduce ||
		p.Calls[0].Count != 1024 {
		t.Errorf("%+v", p.Calls)
	}
	r, err := streams.Run(t.Context(), streams.Apart(p, streams.Recorded, 0))
	if err != nil {
		t.Fatal(err)
	}
	if d := r.Elapsed() - 400*1_000_000; d < -2_000_000 || d > 2_000_000 {
		t.Errorf("ends at %v, recorded 400 µs", r.Elapsed())
	}
	for i := range p.Lists[1].Steps {
		if s := &p.Lists[1].Steps[i]; s.Kind == workload.Compute && !workload.OnHost(s.Stream) {
			s.Time -= 100 * 1_000_000
		}
	}
	if r, err = streams.Run(t.Context(), streams.Apart(p, streams.Recorded, 0)); err != nil {
		t.Fatal(err)
	}
	end := units.Time(0)
	for i := range p.Lists[0].Steps {
		if p.Lists[0].Steps[i].Kind == workload.Issue {
			end = r.Spans[0][i].End
		}
	}
	if d := end - 200*1_000_000; d < -4_000_000 || d > 4_000_000 {
		t.Errorf("with a faster rank 1 the call ends at %v, want 200 µs", end)
	}
}

// TestWaitsBetweenStreams: what a recording names is a dependency, a record before
// its wait too; a guess that times disprove is dropped.
func TestWaitsBetweenStreams(t *testing.T) {
	s := newStory(0, 1)
	s.step(0, 1000)
	s.kernel(10, 20, 100, 7)
	rec := s.call(kineto.Record, 12)
	s.kernel(13, 101, 150, 7) // behind the record
	wait := s.call(kineto.WaitEvent, 200)
	s.kernel(201, 230, 300, 9)
	s.call(kineto.Record, 310)
	again := s.call(kineto.WaitEvent, 311)
	s.kernel(312, 320, 330, 7)
	s.kernel(400, 420, 900, 9)
	s.call(kineto.Record, 410)
	s.kernel(420, 430, 440, 5)
	wrong := s.call(kineto.WaitEvent, 430)
	s.kernel(431, 445, 450, 7)
	s.t.Syncs = []kineto.Sync{
		{Corr: wait, Kind: kineto.WaitEvent, Stream: 9, WaitOn: 7, RecordCorr: int64(rec)},
		{Corr: again, Kind: kineto.WaitEvent, Stream: 7, WaitOn: -1, RecordCorr: -1},
		{Corr: wrong, Kind: kineto.WaitEvent, Stream: 7, WaitOn: -1, RecordCorr: -1},
	}
	res, err := Job([]*kineto.Trace{s.t}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if w := res.Waits; w.Recorded != 1 || w.Adjacent != 1 || w.Recorded+w.Adjacent+w.Guessed+w.Unknown+
		w.Disproved+w.Watchdog != 3 {
		t.Errorf("%+v", w)
	}
	steps := res.Program.Lists[0].Steps
	at := func(us int64) (int, *workload.Step) {
		for i := range steps {
			if !workload.OnHost(steps[i].Stream) && steps[i].Recorded == units.Time(us)*1_000_000 {
				return i, &steps[i]
			}
		}
		t.Fatalf("nothing begins at %d µs", us)
		return 0, nil
	}
	first, _ := at(20)
	second, _ := at(101)
	_, waits := at(230)
	contains := func(s *workload.Step, i int) bool {
		for _, d := range s.Deps {
			if int(d) == i {
				return true
			}
		}
		return false
	}
	if !contains(waits, first) || contains(waits, second) {
		t.Errorf("the operation behind the recorded wait depends on %v, want %d and not %d", waits.Deps,
			first, second)
	}
	other, _ := at(230)
	if _, after := at(320); !contains(after, other) {
		t.Errorf("the operation behind the adjacent wait depends on %v, want %d", after.Deps, other)
	}
	long, _ := at(420)
	if _, last := at(445); contains(last, long) {
		t.Errorf("%v depends on an operation that ended after it began", last.Deps)
	}
}

// TestTwins: a kernel beside a collective takes what it takes elsewhere.
func TestTwins(t *testing.T) {
	a, b := newStory(0, 2), newStory(1, 2)
	for _, s := range []*story{a, b} {
		s.step(0, 1000)
		s.kernel(10, 20, 120, 7)
		s.kernel(11, 121, 221, 7)
		s.allReduce(12, 300, 500, 9)
		s.kernel(250, 310, 470, 7) // 160 µs beside the collective
	}
	res, err := Job([]*kineto.Trace{a.t, b.t}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	steps := res.Program.Lists[0].Steps
	for i := range steps {
		if s := &steps[i]; s.Kind == workload.Compute && !workload.OnHost(s.Stream) &&
			s.Recorded == 310*1_000_000 && (s.Time < 100*1_000_000 || s.Time > 103*1_000_000) {
			t.Errorf("%v, want 100 µs and a gap", s.Time)
		}
	}
}

// TestTwinsOfShapes: a persistent kernel has one grid for all shapes. One that took 160 µs
// beside a collective is no twin of a shape of 50 µs, nor of one of 400.
func TestTwinsOfShapes(t *testing.T) {
	for _, c := range []struct {
		free          []int64
		dur, covered  int64
		alone, spread int64
		ok            bool
	}{
		// of three shapes the one that fits
		{[]int64{50, 50, 51, 130, 132, 134, 400}, 160, 160, 132, 0, true},
		{[]int64{50, 50, 50, 50, 50}, 160, 160, 134, 1, false}, // none fits: the mean slow-down
		// longer than beside the collective
		{[]int64{400}, 160, 160, 134, 1, false},
		// hardly covered: it takes what it took
		{[]int64{90, 90, 90}, 160, 20, 156, 1, false},
		{[]int64{150, 155, 158}, 160, 20, 155, 0, true},
		{nil, 160, 0, 160, 0, false},
	} {
		if alone, ok := twin(c.free, c.dur, c.covered); ok != c.ok || alone < c.alone-c.spread ||
			alone > c.alone+c.spread {
			t.Errorf("%v, %d of %d covered: %d, %v; want %d, %v", c.free, c.covered, c.dur, alone, ok,
				c.alone, c.ok)
		}
	}
}

// TestRefused: two recordings of a rank, a missing rank that cannot be copied.
func TestRefused(t *testing.T) {
	a := newStory(0, 2)
	a.kernel(10, 20, 120, 7)
	if _, err := Job([]*kineto.Trace{a.t, a.t}, Options{}); err == nil || !strings.Contains(err.Error(),
		"rank and rank are both of rank 0") {
		t.Error(err)
	}
	if _, err := Job([]*kineto.Trace{a.t}, Options{}); err == nil || !strings.Contains(err.Error(),
		"the job has 2 ranks, of which 1 has no recording") && !strings.Contains(err.Error(),
		"of which 1 have no recording") {
		t.Error(err)
	}
	large := newStory(0, 2_000_000_000)
	large.kernel(10, 20, 120, 7)
	var world *WorldError
	if _, err := Job([]*kineto.Trace{large.t}, Options{Symmetric: true}); !errors.As(err, &world) ||
		world.World != 2_000_000_000 {
		t.Error(err)
	}
	if _, err := Job(nil, Options{}); err == nil {
		t.Error("no recordings")
	}
}

// TestKinds: by description, or else by what is called and by what waits for it.
func TestKinds(t *testing.T) {
	set := func(list ...coll.Func) map[coll.Func]bool {
		m := map[coll.Func]bool{}
		for _, f := range list {
			m[f] = true
		}
		return m
	}
	for _, c := range []struct {
		desc               string
		funcs              map[coll.Func]bool
		gathers, scattered int
		issued, awaited    int
		want               workload.CommKind
	}{
		{"mesh_dp", set(coll.AllGather, coll.ReduceScatter), 36, 16, 54, 20, workload.FSDP},
		{"mesh_dp", set(coll.AllReduce), 0, 0, 20, 0, workload.DP},
		{"mesh_tp", set(coll.AllReduce), 0, 0, 64, 64, workload.TP},
		{"default_pg", set(coll.AllGather, coll.ReduceScatter), 64, 64, 128, 128, workload.TP},
		{"default_pg", set(coll.AllGather, coll.ReduceScatter), 36, 18, 54, 36, workload.FSDP}, // ZeRO 3
		{"default_pg", set(coll.AllGather, coll.ReduceScatter), 18, 1, 36, 18, workload.FSDP},  // ZeRO 2
		// of the forward pass only
		{"default_pg", set(coll.AllReduce), 0, 0, 64, 32, workload.TP},
		// DDP with buffers
		{"default_pg", set(coll.AllReduce, coll.Broadcast), 0, 0, 21, 2, workload.DP},
		{"default_pg", set(coll.AllReduce), 0, 0, 200, 40, workload.NoKind}, // neither
		{"default_pg", set(coll.AllReduce), 0, 0, 2, 2, workload.NoKind},    // a loss
		{"default_pg", set(coll.Send, coll.Recv), 0, 0, 32, 16, workload.PP},
		{"default_pg", set(coll.AllToAll), 0, 0, 48, 48, workload.EP},
		{"default_pg", set(), 0, 0, 0, 0, workload.NoKind},
		// the model as a whole
		{"default_pg", set(coll.AllGather, coll.ReduceScatter), 2, 2, 4, 4, workload.FSDP},
	} {
		g := group{comm: workload.Comm{Desc: c.desc}, funcs: c.funcs, gathers: c.gathers,
			scattered: c.scattered, issued: c.issued, awaited: c.awaited}
		if got := g.kind(2 * fewCalls); got != c.want {
			t.Errorf("%+v is of kind %v, want %v", c, got, c.want)
		}
	}
}
