package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/nccltests/options"
	"github.com/simccl/simccl/real/internal/cuda"
)

// Request is a benchmark as a user requests it: nccl-tests' options, and where and how to measure. Validate
// refuses values that the backend does not support, with the members' names in braces (package fail).
type Request struct {
	options.Options
	Backend     string // nccl, cuda, host, sockets or verbs
	Launch      string // on GPUs: eager or graph
	Algo        string // of backend cuda
	Library     string // path of NCCL's library
	Multicast   string // auto, on or off
	Compare     bool
	Trace       string // file; empty: none
	Limit       time.Duration
	Ranks       int // from options; 0: not given
	Seed        uint64
	TestsDevice string // NCCL_TESTS_DEVICE
	// Shares are the relative amounts that each rank sends to each rank in an alltoall; none: equal parts.
	Shares []float64
}

// OnGPUs reports whether the backend drives GPUs.
func (r *Request) OnGPUs() bool { return r.Backend == "nccl" || r.Backend == "cuda" }

// Replays returns how many times a CUDA graph is launched; 0 if operations are launched one by one.
func (r *Request) Replays() int {
	if r.Launch == "graph" {
		return max(r.Graph, 1)
	}
	return r.Graph
}

// Spec returns the Spec of a request for an operation, without sizes, types, reductions, columns and the
// required bandwidth.
func (r *Request) Spec(f coll.Func) *Spec {
	s := &Spec{Func: f, Shares: r.Shares, Root: r.Root, Cycles: r.Cycles, Seed: r.Seed, Skip: r.Skip,
		Unalign:  r.Unalign,
		Register: Registration(r.LocalRegister), Memory: r.Memory != 0, Timestamps: r.Timestamps != 0,
		Parallel: r.ParallelInit != 0,
		Limit:    r.Limit, Compare: r.Compare,
		Options: Options{Iters: r.Iters, Warmup: r.Warmup, Agg: r.Agg, Replays: r.Replays(), Check: r.Check,
			Average: Average(r.Average), PerIter: r.PerIter != 0, Seed: uint32(r.Seed),
			Wait: Wait(r.Blocking), CPUTime: r.CPUTime != 0}}
	if t := time.Duration(r.Timeout) * time.Second; t > 0 {
		s.Limit = min(s.Limit, t)
	}
	return s
}

// Validate refuses unsupported values, before any device is opened. Errors are of package fail.
func (r *Request) Validate() error {
	if !r.OnGPUs() {
		return r.checkHost()
	}
	if err := r.checkGPUs(); err != nil {
		return err
	}
	if r.TestsDevice != "" {
		return fail.NotYet("a first GPU other than the first; CUDA_VISIBLE_DEVICES chooses GPUs",
			"NCCL_TESTS_DEVICE=%s", r.TestsDevice)
	}
	return r.checkModes()
}

// checkHost refuses values that are meaningless for CPU backends.
func (r *Request) checkHost() error {
	switch r.Backend {
	case "host", "sockets", "verbs":
	default:
		return fail.Usage("{Backend} %s: write nccl, cuda, host, sockets or verbs", r.Backend)
	}
	if r.Multicast == "on" {
		return fail.Usage("{Multicast} on: a CPU has no NVLink multicast")
	}
	if err := r.onlyGPUs(); err != nil {
		return err
	}
	if err := r.checkBoth(); err != nil {
		return err
	}
	if err := r.Counts(); err != nil {
		return err
	}
	return r.Simulated(false)
}

// onlyGPUs refuses options that a CPU backend would silently ignore.
func (r *Request) onlyGPUs() error {
	for _, o := range []struct {
		given bool
		what  string
		value string
		have  string
	}{
		{r.Threads != 1, "{Threads}", fmt.Sprint(" ", r.Threads),
			"its ranks are --nranks, or --nodes times -g"},
		{r.Launch != "eager", "{Launch}", " " + r.Launch, "it has no graphs"},
		{r.Graph != 0, "{Graph}", fmt.Sprint(" ", r.Graph), "it has no graphs"},
		{r.Compare, "{Compare}", "", "nothing is known of CPUs to compare with"},
		{r.Algo != "auto", "{Algo}", " " + r.Algo, "it runs the plan; NCCL_ALGO and NCCL_PROTO choose which"},
		{r.Library != "", "{Library}", "", "it does not load NCCL"},
		{r.PerIter != 0 || r.Skip != 0, "{PerIter}, {Skip}", "", "it times all iterations together"},
		{r.Blocking != 0 || r.CPUTime != 0 || r.StreamNull != 0, "{Blocking}, {CPUTime}, {StreamNull}", "",
			"it has no streams"},
		{r.Agg != 1, "{Agg}", fmt.Sprint(" ", r.Agg), "it does not group operations"},
		{r.LocalRegister != 0 || r.CTAPolicy != options.NoPolicy, "{LocalRegister}, {CTAPolicy}", "",
			"it does not load NCCL"},
		{r.Unalign != 0 || r.Memory != 0, "{Unalign}, {Memory}", "", "its buffers are its own"},
	} {
		if o.given {
			return fail.Usage(o.what+"%s: for GPUs ({Backend} nccl or cuda) alone; of {Backend} %s: %s",
				o.value, r.Backend, o.have)
		}
	}
	return nil
}

// checkBoth refuses values that are meaningless for any backend.
func (r *Request) checkBoth() error {
	switch {
	case r.Average < 0 || r.Average > 3:
		return fail.Usage("{Average} %d: 0 rank 0, 1 average, 2 minimum, 3 maximum", r.Average)
	case r.Timeout < 0:
		return fail.Usage("{Timeout} %d: seconds from 0, which is no limit", r.Timeout)
	case r.Limit <= 0:
		return fail.Usage("{Limit} %v: more than nothing, like 30s or 5m", r.Limit)
	case r.Ranks < 0:
		return fail.Usage("{Ranks} %d: must be at least 1", r.Ranks)
	case r.Device != 0:
		return fail.NotYet("kernels of NCCL's device API; {Device} 0 runs its collectives", "{Device} %d",
			r.Device)
	case !newfile.Possible(r.Output):
		return fail.File("{Output} %s: no such directory", r.Output)
	}
	return nil
}

// checkGPUs refuses values that are meaningless for GPUs, before any device is opened.
func (r *Request) checkGPUs() error {
	switch {
	case r.Launch != "eager" && r.Launch != "graph":
		return fail.Usage("{Launch} %s: write eager or graph", r.Launch)
	case r.Iters < 1 || r.Agg < 1 || r.Cycles < 1 || r.Warmup < 0 || r.Graph < 0 || r.Check < 0:
		return fail.Usage("{Iters}, {Agg} and {Cycles} begin at 1; {Warmup}, {Graph} and {Check} at 0")
	case r.PerIter < 0 || r.PerIter > 1:
		return fail.Usage("{PerIter} %d: 0 or 1", r.PerIter)
	case r.PerIter != 0 && (r.Graph > 0 || r.Launch == "graph"):
		return fail.Usage("{PerIter} %d: a graph replay has no times of single iterations; use eager "+
			"launches", r.PerIter)
	case r.Skip < 0 || r.Skip >= r.Iters:
		return fail.Usage("{Skip} %d: less than the %d iterations of {Iters}", r.Skip, r.Iters)
	case r.Trace != "" && !strings.HasSuffix(r.Trace, ".json") && !strings.HasSuffix(r.Trace, ".json.gz"):
		return fail.Usage("{Trace} %s: the name must end in .json or .json.gz", r.Trace)
	case !newfile.Possible(r.Trace):
		return fail.File("{Trace} %s: no such directory", r.Trace)
	}
	return r.checkBoth()
}

// checkModes refuses launch modes that exclude each other.
func (r *Request) checkModes() error {
	switch {
	case r.Blocking < 0 || r.Blocking > 3 || r.CPUTime < 0 || r.CPUTime > 1 || r.LocalRegister < 0 ||
		r.LocalRegister > 2 ||
		r.CTAPolicy < options.NoPolicy || r.CTAPolicy > 2 || r.Unalign < 0:
		return fail.Usage("{Blocking} is 0 to 3, {CPUTime} 0 or 1, {LocalRegister} 0 to 2, {CTAPolicy} 0 " +
			"to 2, {Unalign} at least 0")
	case (r.Blocking != 0 || r.CPUTime != 0) && r.Replays() > 0:
		return fail.Usage("{Blocking} %d {CPUTime} %d: a graph replay neither blocks nor is launched one "+
			"by one; use eager launches", r.Blocking, r.CPUTime)
	case r.StreamNull != 0:
		return fail.NotYet("the default stream: every rank has one of its own", "{StreamNull} 1")
	case r.Backend != "nccl" && (r.LocalRegister != 0 || r.CTAPolicy != options.NoPolicy || r.Unalign != 0):
		return fail.Usage("{LocalRegister}, {CTAPolicy}, {Unalign}: for {Backend} nccl alone")
	}
	return nil
}

// CheckShares refuses Shares that the operation does not support.
func (r *Request) CheckShares(f coll.Func) error {
	if len(r.Shares) == 0 {
		return nil
	}
	sum := 0.0
	for _, w := range r.Shares {
		if !(w >= 0) || math.IsInf(w, 0) {
			return fail.Usage("{Shares} %v: write numbers from 0, one for each rank", r.Shares)
		}
		sum += w
	}
	switch {
	case r.CountsFile != "" || r.Imbalance != 0:
		return fail.Usage("{Shares}, {CountsFile}, {Imbalance}: each says what ranks exchange; leave all " +
			"but one out")
	case f != coll.AllToAll:
		return fail.Usage("{Shares}: for alltoall alone")
	case sum == 0 || len(r.Shares) > MaxShares:
		return fail.Usage("{Shares} %v: write one number for each of at most %d ranks, not all 0", r.Shares,
			MaxShares)
	}
	return nil
}

// MaxShares is the largest number of ranks of an alltoall with unequal parts.
const MaxShares = cuda.MaxRanks

// NCCLEnv returns the variables for NCCL in addition to the environment's, NAME=VALUE: the given ones, and
// the one that the CTA policy sets.
func (r *Request) NCCLEnv(given []string) []string {
	words := slices.Clone(given)
	if p := r.CTAPolicy; p != options.NoPolicy {
		words = append(words, fmt.Sprintf("NCCL_CTA_POLICY=%d", p))
	}
	return words
}

// NCCLVariables lists NCCL's variables of an environment and of additional words, sorted.
func NCCLVariables(environ, words []string) []string {
	var out []string
	for _, kv := range append(slices.Clone(environ), words...) {
		if strings.HasPrefix(kv, "NCCL_") {
			out = append(out, kv)
		}
	}
	slices.Sort(out)
	return out
}
