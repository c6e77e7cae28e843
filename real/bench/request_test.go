package bench

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/nccltests/options"
)

// usual is a request as the command has it without options.
func usual(backend string) *Request {
	return &Request{Options: options.Options{Threads: 1, Iters: 20, Warmup: 5, Agg: 1, Cycles: 1, Average: 1,
		CTAPolicy: options.NoPolicy}, Backend: backend, Launch: "eager", Algo: "auto", Multicast: "auto",
		Limit: time.Minute}
}

// change is one of a request, with what is said of it; nothing where it is taken.
type change struct {
	of   string
	set  func(*Request)
	want string
}

func (c *change) check(t *testing.T, backend string, err error) {
	t.Helper()
	if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
		t.Errorf("%s, %s: %v, want %q", backend, c.of, err, c.want)
	}
}

// TestRequestsOfGPUsHaveLimits: each value to its limit is taken, and refused beyond it by its name.
func TestRequestsOfGPUsHaveLimits(t *testing.T) {
	const begins = "Iters, Agg and Cycles begin at 1"
	for _, c := range []change{
		{"nothing", func(*Request) {}, ""},
		{"launch graph", func(r *Request) { r.Launch = "graph" }, ""},
		{"launch none", func(r *Request) { r.Launch = "" }, "write eager or graph"},
		{"1 iteration", func(r *Request) { r.Iters = 1 }, ""},
		{"0 iterations", func(r *Request) { r.Iters = 0 }, begins},
		{"agg 0", func(r *Request) { r.Agg = 0 }, begins},
		{"cycles 0", func(r *Request) { r.Cycles = 0 }, begins},
		{"no warmup", func(r *Request) { r.Warmup = 0 }, ""},
		{"warmup -1", func(r *Request) { r.Warmup = -1 }, begins},
		{"graph -1", func(r *Request) { r.Graph = -1 }, begins},
		{"check -1", func(r *Request) { r.Check = -1 }, begins},
		{"per iteration", func(r *Request) { r.PerIter = 1 }, ""},
		{"per iteration 2", func(r *Request) { r.PerIter = 2 }, "PerIter 2: 0 or 1"},
		{"per iteration -1", func(r *Request) { r.PerIter = -1 }, "PerIter -1: 0 or 1"},
		{"per iteration of replays", func(r *Request) { r.PerIter, r.Graph = 1, 1 }, "single iterations"},
		{"per iteration of a graph", func(r *Request) { r.PerIter, r.Launch = 1, "graph" },
			"single iterations"},
		{"all but one skipped", func(r *Request) { r.Skip = 19 }, ""},
		{"all skipped", func(r *Request) { r.Skip = 20 }, "less than the 20 iterations"},
		{"skip -1", func(r *Request) { r.Skip = -1 }, "Skip -1"},
		{"trace", func(r *Request) { r.Trace = filepath.Join(t.TempDir(), "t.json") }, ""},
		{"packed trace", func(r *Request) { r.Trace = filepath.Join(t.TempDir(), "t.json.gz") }, ""},
		{"text as trace", func(r *Request) { r.Trace = "t.txt" }, "must end in .json or .json.gz"},
		{"trace nowhere", func(r *Request) { r.Trace = "none/t.json" }, "no such directory"},
		{"output nowhere", func(r *Request) { r.Output = "none/o.json" }, "Output none/o.json"},
		{"average 0", func(r *Request) { r.Average = 0 }, ""},
		{"average 3", func(r *Request) { r.Average = 3 }, ""},
		{"average 4", func(r *Request) { r.Average = 4 }, "Average 4"},
		{"average -1", func(r *Request) { r.Average = -1 }, "Average -1"},
		{"no timeout", func(r *Request) { r.Timeout = 0 }, ""},
		{"timeout -1", func(r *Request) { r.Timeout = -1 }, "Timeout -1"},
		{"limit 1 ns", func(r *Request) { r.Limit = 1 }, ""},
		{"limit 0", func(r *Request) { r.Limit = 0 }, "Limit 0s"},
		{"ranks -1", func(r *Request) { r.Ranks = -1 }, "Ranks -1"},
		{"device API", func(r *Request) { r.Device = 1 }, "device API"},
		{"first GPU", func(r *Request) { r.TestsDevice = "2" }, "NCCL_TESTS_DEVICE=2"},
	} {
		r := usual("nccl")
		c.set(r)
		c.check(t, "nccl", r.Validate())
	}
}

// TestModesOfLaunchesHaveLimits, and those of NCCL are of NCCL alone.
func TestModesOfLaunchesHaveLimits(t *testing.T) {
	const blocking = "Blocking is 0 to 3"
	for _, c := range []change{
		{"blocking 3", func(r *Request) { r.Blocking = 3 }, ""},
		{"blocking 4", func(r *Request) { r.Blocking = 4 }, blocking},
		{"blocking -1", func(r *Request) { r.Blocking = -1 }, blocking},
		{"CPU time", func(r *Request) { r.CPUTime = 1 }, ""},
		{"CPU time 2", func(r *Request) { r.CPUTime = 2 }, blocking},
		{"CPU time -1", func(r *Request) { r.CPUTime = -1 }, blocking},
		{"registered 2", func(r *Request) { r.LocalRegister = 2 }, ""},
		{"registered 3", func(r *Request) { r.LocalRegister = 3 }, blocking},
		{"registered -1", func(r *Request) { r.LocalRegister = -1 }, blocking},
		{"policy 0", func(r *Request) { r.CTAPolicy = 0 }, ""},
		{"policy 2", func(r *Request) { r.CTAPolicy = 2 }, ""},
		{"policy 3", func(r *Request) { r.CTAPolicy = 3 }, blocking},
		{"policy -2", func(r *Request) { r.CTAPolicy = options.NoPolicy - 1 }, blocking},
		{"unaligned by 1", func(r *Request) { r.Unalign = 1 }, ""},
		{"unaligned by -1", func(r *Request) { r.Unalign = -1 }, blocking},
		{"replays block", func(r *Request) { r.Blocking, r.Graph = 1, 1 }, "neither blocks"},
		{"replays have CPU time", func(r *Request) { r.CPUTime, r.Launch = 1, "graph" }, "neither blocks"},
		{"stream 0", func(r *Request) { r.StreamNull = 1 }, "the default stream"},
	} {
		r := usual("nccl")
		c.set(r)
		c.check(t, "nccl", r.Validate())
	}
	for _, c := range []change{
		{"nothing", func(*Request) {}, ""},
		{"registered", func(r *Request) { r.LocalRegister = 1 }, "for Backend nccl alone"},
		{"policy", func(r *Request) { r.CTAPolicy = 0 }, "for Backend nccl alone"},
		{"unaligned", func(r *Request) { r.Unalign = 4 }, "for Backend nccl alone"},
	} {
		r := usual("cuda")
		c.set(r)
		c.check(t, "cuda", r.Validate())
	}
}

// TestRequestsOfCPUsNameWhatTheyLack: an option of GPUs is refused, never passed over.
func TestRequestsOfCPUsNameWhatTheyLack(t *testing.T) {
	for _, c := range []change{
		{"nothing", func(*Request) {}, ""},
		{"multicast on", func(r *Request) { r.Multicast = "on" }, "no NVLink multicast"},
		{"multicast off", func(r *Request) { r.Multicast = "off" }, ""},
		{"threads", func(r *Request) { r.Threads = 2 }, "Threads 2"},
		{"launch", func(r *Request) { r.Launch = "graph" }, "Launch graph"},
		{"graph", func(r *Request) { r.Graph = 1 }, "Graph 1"},
		{"compare", func(r *Request) { r.Compare = true }, "Compare"},
		{"algorithm", func(r *Request) { r.Algo = "ring" }, "Algo ring"},
		{"library", func(r *Request) { r.Library = "x" }, "Library"},
		{"per iteration", func(r *Request) { r.PerIter = 1 }, "PerIter, Skip"},
		{"skip", func(r *Request) { r.Skip = 1 }, "PerIter, Skip"},
		{"blocking", func(r *Request) { r.Blocking = 1 }, "it has no streams"},
		{"CPU time", func(r *Request) { r.CPUTime = 1 }, "it has no streams"},
		{"stream 0", func(r *Request) { r.StreamNull = 1 }, "it has no streams"},
		{"agg", func(r *Request) { r.Agg = 2 }, "Agg 2"},
		{"registered", func(r *Request) { r.LocalRegister = 1 }, "it does not load NCCL"},
		{"policy", func(r *Request) { r.CTAPolicy = 1 }, "it does not load NCCL"},
		{"unaligned", func(r *Request) { r.Unalign = 1 }, "its buffers are its own"},
		{"memory", func(r *Request) { r.Memory = 1 }, "its buffers are its own"},
		{"average 4", func(r *Request) { r.Average = 4 }, "Average 4"},
		{"no iterations", func(r *Request) { r.Iters = 0 }, "at least one operation is timed"},
	} {
		for _, backend := range []string{"host", "sockets", "verbs"} {
			r := usual(backend)
			c.set(r)
			c.check(t, backend, r.Validate())
		}
	}
	r := usual("tpu")
	(&change{"another backend", nil, "write nccl, cuda, host, sockets or verbs"}).check(t, "tpu",
		r.Validate())
}

// TestSharesAreOfAlltoall: numbers from 0, not all 0, for at most as many ranks as kernels know, and one way
// alone to say what ranks exchange.
func TestSharesAreOfAlltoall(t *testing.T) {
	many := slices.Repeat([]float64{1}, MaxShares+1)
	for _, c := range []struct {
		of   coll.Func
		set  Request
		want string
	}{
		{coll.AllReduce, Request{}, ""},
		{coll.AllToAll, Request{Shares: []float64{0, 1}}, ""},
		{coll.AllToAll, Request{Shares: many[1:]}, ""},
		{coll.AllToAll, Request{Shares: many}, "at most"},
		{coll.AllToAll, Request{Shares: []float64{0, 0}}, "not all 0"},
		{coll.AllToAll, Request{Shares: []float64{1, -1}}, "numbers from 0"},
		{coll.AllToAll, Request{Shares: []float64{1, math.NaN()}}, "numbers from 0"},
		{coll.AllToAll, Request{Shares: []float64{1, math.Inf(1)}}, "numbers from 0"},
		{coll.AllReduce, Request{Shares: []float64{1, 1}}, "for alltoall alone"},
		{coll.AllToAll, Request{Shares: []float64{1, 1}, Options: options.Options{CountsFile: "f"}},
			"leave all but one out"},
		{coll.AllToAll, Request{Shares: []float64{1, 1}, Options: options.Options{Imbalance: 2}},
			"leave all but one out"},
	} {
		err := c.set.CheckShares(c.of)
		(&change{"shares", nil, c.want}).check(t, c.of.TestName(), err)
	}
}

// TestReplaysAndLimits: a graph is launched once at least where launches are graphs; the shorter of two
// limits holds; NCCL's policy of CTAs is a variable of its own.
func TestReplaysAndLimits(t *testing.T) {
	r := usual("nccl")
	for _, c := range []struct {
		launch      string
		graph, want int
	}{{"eager", 0, 0}, {"eager", 3, 3}, {"graph", 0, 1}, {"graph", 3, 3}} {
		r.Launch, r.Graph = c.launch, c.graph
		if got := r.Replays(); got != c.want {
			t.Errorf("%s, %d: %d replays, want %d", c.launch, c.graph, got, c.want)
		}
	}
	for timeout, want := range map[int]time.Duration{0: time.Minute, 59: 59 * time.Second, 61: time.Minute} {
		r.Timeout = timeout
		if got := r.Spec(coll.Reduce).Limit; got != want {
			t.Errorf("a timeout of %d s, a limit of 1 min: %v, want %v", timeout, got, want)
		}
	}
	r.Memory, r.Timestamps, r.ParallelInit, r.PerIter, r.CPUTime = 1, 1, 1, 1, 1
	r.Seed, r.Skip, r.Unalign, r.Blocking, r.LocalRegister = 1<<32+5, 2, 3, 2, 1
	s := r.Spec(coll.Reduce)
	if !s.Memory || !s.Timestamps || !s.Parallel || !s.Options.PerIter || !s.Options.CPUTime ||
		s.Seed != 1<<32+5 || s.Options.Seed != 5 || s.Skip != 2 || s.Unalign != 3 || s.Options.Wait != 2 ||
		s.Register != 1 || s.Options.Iters != 20 || s.Options.Warmup != 5 || s.Options.Average != 1 {
		t.Errorf("%+v", s)
	}
	given := []string{"A=1"}
	if got := r.NCCLEnv(given); !slices.Equal(got, given) {
		t.Errorf("%q", got)
	}
	if r.CTAPolicy = 2; !slices.Equal(r.NCCLEnv(given), []string{"A=1", "NCCL_CTA_POLICY=2"}) {
		t.Errorf("%q", r.NCCLEnv(given))
	}
}
