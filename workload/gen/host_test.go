package gen

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/simccl/simccl/coll"
	clock "github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// TestHostLaunches: kernels that take nothing take what the host needs to launch them, one operator after the
// other; those that take longer than it does hide it but for the first ones; graphs launch in its place,
// those of layers all but what lies outside of them and what experts compute.
func TestHostLaunches(t *testing.T) {
	c := small()
	c.GlobalBatch = 2 // one microbatch
	c.Times = uniform(0, 0, 0)
	c.Launch = 10 * units.Microsecond
	// forward: 8 layers of 4 products with 6 kernels beside and attention, embedding, the head with 4;
	// backward: as many products twice, what lies beside once; the optimizer
	const operators = 8*(4+6+1) + 1 + 5 + 8*(2*4+6+1) + 1 + 6 + 1
	if got, want := elapsed(t, makeJob(t, c)), operators*c.Launch; got != want {
		t.Errorf("%v for %d operators, want %v", got, operators, want)
	}
	for g, want := range map[Graphs]units.Time{FullGraphs: 0, LayerGraphs: (1 + 5 + 6 + 1 + 1) * c.Launch} {
		c.Graphs = g
		if got := elapsed(t, makeJob(t, c)); got != want {
			t.Errorf("graphs of %s: %v, want %v", GraphWords()[g], got, want)
		}
	}
	c.Graphs, c.Times = NoGraphs, uniform(units.Millisecond, units.Millisecond, units.Millisecond)
	host := elapsed(t, makeJob(t, c))
	if c.Launch = 0; host-elapsed(t, makeJob(t, c)) > 200*units.Microsecond {
		t.Errorf("long kernels take %v with a host, %v without", host, elapsed(t, makeJob(t, c)))
	}
	c.Launch, c.Experts, c.Graphs = 10*units.Microsecond, 4, LayerGraphs
	c.Times = nil
	part := elapsed(t, makeJob(t, c))
	c.Graphs = FullGraphs
	if all := elapsed(t, makeJob(t, c)); part < all+8*20*c.Launch {
		t.Errorf("experts that the host launches take %v, in a graph %v", part, all)
	}
}

// TestGradientsAreAdded: products of gradients of weights add to those of the microbatches before, in the
// type of gradients; with one microbatch, or where shards are reduced each time, they are written.
func TestGradientsAreAdded(t *testing.T) {
	for _, x := range []struct {
		batch int64
		fsdp  int
		want  int64
	}{{8, 0, 4}, {2, 0, 0}, {16, 3, 0}, {16, 1, 4}} {
		c := small()
		if c.GlobalBatch, c.FSDP = x.batch, x.fsdp; x.fsdp > 0 {
			c.DP = 2
		}
		g := newGenerator(&c, nil)
		g.matrixOp("up", forward)
		g.matrixOp("up", weights)
		if a, b := g.p.Works[0].Shape.Sums, g.p.Works[1].Shape.Sums; a != 0 || g.c.Class != nil &&
			b != x.want {
			t.Errorf("%+v: %d and %d", x, a, b)
		}
	}
	c := named(t, "qwen-3-30b-a3b")
	g := newGenerator(&c, nil)
	g.matrixOp("expert_up", weights)
	w := g.p.Works[0]
	added, _ := c.Class.Time(&w)
	if w.Shape.Sums != 4 {
		t.Errorf("%+v", w.Shape)
	}
	w.Shape.Sums = 0
	if once, _ := c.Class.Time(&w); once >= added {
		t.Errorf("many experts of few tokens: %v to write, %v to add", once, added)
	}
}

// TestRecomputeWhereItFits: layers are computed again where a job fits only so.
func TestRecomputeWhereItFits(t *testing.T) {
	c := named(t, "llama-3.1-70b")
	c.Seq, c.DP, c.FSDP, c.Fit = 8192, 64, 3, true
	j := makeJob(t, c)
	if m := j.Folded.Memory.Total(); j.Recomputed <= c.GPU.Capacity || m > c.GPU.Capacity {
		t.Errorf("%v where %v would be, of %v", m, j.Recomputed, c.GPU.Capacity)
	}
	held, err := c.Memory()
	if err != nil || held != j.Folded.Memory {
		t.Errorf("%+v before it is made, %+v after: %v", held, j.Folded.Memory, err)
	}
	for name, change := range map[string]func(c *Config){
		"it fits as it is": func(c *Config) { c.Seq = 1024 },
		"it fits no way":   func(c *Config) { c.DP, c.FSDP = 1, 0 },
		"none is asked":    func(c *Config) { c.Fit = false },
	} {
		d := c
		change(&d)
		d.GlobalBatch = int64(d.DP)
		if j := makeJob(t, d); j.Recomputed != 0 || j.Folded.Memory == (workload.Memory{}) {
			t.Errorf("%s: %v", name, j.Recomputed)
		}
	}
}

// TestProductsBesideCalls: with overlap a layer takes the longer of each product and its call, not their
// sum, and moves the same bytes.
func TestProductsBesideCalls(t *testing.T) {
	c := small()
	c.TP, c.SequenceParallel, c.GlobalBatch = 4, true, 2
	c.Times = uniform(units.Millisecond, 0, 0)
	play := func() (units.Time, []Traffic) {
		j := makeJob(t, c)
		r, err := clock.Run(t.Context(), clock.Apart(j.Program(), func(call *workload.Call) units.Time {
			if call.Func == coll.AllReduce {
				return 0
			}
			return units.Millisecond / 2
		}, 32<<20))
		if err != nil {
			t.Fatal(err)
		}
		return r.Elapsed(), j.Traffic
	}
	apart, moved := play()
	c.TPOverlap = true
	beside, same := play()
	if diff := cmp.Diff(moved, same); diff != "" {
		t.Error(diff)
	}
	// forward: 4 calls a layer beside products
	if got, want := apart-beside, 8*4*units.Millisecond/2; got < want*9/10 || got > want*3/2 {
		t.Errorf("%v less than %v, want about %v", got, apart, want)
	}
}

// TestStagesAreTheJob: over links that take no time one rank a stage takes what the job does with calls that
// take none; over slower ones it takes longer.
func TestStagesAreTheJob(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"1f1b":        func(c *Config) { c.PP, c.DP = 4, 2 },
		"interleaved": func(c *Config) { c.PP, c.Virtual, c.Schedule, c.TP = 2, 2, Interleaved, 2 },
		"ring":        func(c *Config) { c.CP, c.Ring, c.PP = 2, true, 2 },
		"sharded":     func(c *Config) { c.DP, c.FSDP = 4, 3 },
	} {
		c := small()
		c.GlobalBatch, c.Times = 32, uniform(units.Millisecond, units.Millisecond, units.Millisecond)
		change(&c)
		play := func(l Links) units.Time {
			p, err := c.Stages(l, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			r, err := clock.Run(t.Context(), clock.Apart(p, clock.Recorded, 32<<20))
			if err != nil {
				t.Fatal(err)
			}
			return r.Elapsed()
		}
		free := Links{Near: math.Inf(1), Far: math.Inf(1), Domain: 8}
		if got, want := play(free), elapsed(t, makeJob(t, c)); got != want {
			t.Errorf("%s: stages take %v, the job %v", name, got, want)
		}
		if slow := (Links{Near: 1e6, Far: 1e6, Domain: 8}); play(slow) <= play(free) {
			t.Errorf("%s: slow links take no time", name)
		}
	}
}

// TestHostOfRouting: what the host takes for a router and for sorting tokens is what was measured of
// Megatron-Core on two ranks; what lies beside the products of experts is what two local experts take without
// two fourteenths of what sixteen take more.
func TestHostOfRouting(t *testing.T) {
	file, err := os.Open("../../testdata/measured/h200x2/2026-11-30/parts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	parts := map[string][]float64{}
	for lines := json.NewDecoder(file); ; {
		var line struct {
			EP, Local int
			Plain     []float64          `json:"layer"` // us forward and backward, kernels
			Parts     map[string]float64 `json:"parts_us"`
		}
		if err := lines.Decode(&line); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p := line.Plain; p != nil {
			parts["operator"] = append(parts["operator"], (p[0]+p[1])/p[2])
		}
		if line.EP != 2 {
			continue
		}
		for name, us := range line.Parts {
			if name == "routed_experts_compute" {
				name = fmt.Sprint(line.Local, " experts")
			}
			parts[name] = append(parts[name], us)
		}
	}
	median := func(name string) float64 {
		slices.Sort(parts[name])
		return parts[name][len(parts[name])/2]
	}
	few, many := median("2 experts"), median("16 experts")
	for _, x := range []struct {
		name string
		got  units.Time
		want float64
	}{{"an operator", routedLaunch, median("operator")},
		{"router", routeHost, median("route") + median("preprocess")},
		{"sorting", permuteHost, median("dispatch") + median("combine") + median("postprocess") +
			few - (many-few)/7}} {
		if math.Abs(x.got.Micros()/x.want-1) > 0.05 {
			t.Errorf("%s: %v, measured %.0f us", x.name, x.got, x.want)
		}
	}
}

// TestHostWaitsForRouters: where a router chooses among several experts of a rank the host asks for the
// numbers of tokens before it launches what sends them: long kernels do not hide that. One expert a rank, to
// which a token goes alone, needs none of it; a graph of the whole iteration neither.
func TestHostWaitsForRouters(t *testing.T) {
	with := func(experts, top int, g Graphs) units.Time {
		c := small()
		c.GlobalBatch, c.Experts, c.TopK, c.Graphs = 2, experts, top, g
		c.Times = uniform(10*units.Millisecond, 10*units.Millisecond, 10*units.Millisecond)
		c.Launch = 0
		alone := elapsed(t, makeJob(t, c))
		c.Launch = routedLaunch
		return elapsed(t, makeJob(t, c)) - alone
	}
	const layers = 8
	if got := with(4, 2, NoGraphs); got < layers*permuteHost || got > layers*permuteHost+routeHost+
		units.Millisecond {
		t.Errorf("%v more with a host that waits %d times for %v", got, layers, permuteHost)
	}
	if got := with(1, 1, NoGraphs); got > 2*units.Millisecond {
		t.Errorf("%v more with one expert a rank", got)
	}
	if got := with(4, 2, FullGraphs); got != 0 {
		t.Errorf("%v more in a graph", got)
	}
}
