package gen

import (
	"fmt"
	"math"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

type generator struct {
	c          *Config
	p          *workload.Folded
	world, m   int   // m: microbatches of the iteration that is written
	whole      int   // microbatches of an iteration of the job
	rounds     []int // those of two iterations in its place, where it has too many steps; else nil
	base       [numGroups]int32
	calls      map[callKey]int32
	ops        map[string]int32
	times      []units.Time // by operation
	hosts      []units.Time // by operation: of the host that launches it
	mats       map[string]matrix
	operations []Operation
	layersOf   []int64                // by stage of the model
	units      map[int][]unit         // by stage of the model
	classes    int                    // lists of different ranks
	tally      map[trafficKey][]int64 // by iteration of rounds and list
	order      []trafficKey
	plan       [][]action // by rank of a pipeline
}

// mostSteps is how many steps of all ranks are written down before an iteration is cut.
const mostSteps = 1 << 21

// fitting is the generator of a job with its lists. A pipeline with many microbatches does the same over and
// over: where the steps of all ranks are too many, two iterations of few microbatches represent it.
func fitting(c *Config) (*generator, error) {
	g := newGenerator(c, nil)
	unit := max(c.PP, 2)
	for _, cut := range [][]int{{2 * unit, 3 * unit}, {unit, 2 * unit}} {
		if c.Iterations != 1 || g.whole <= 4*unit || g.rounds != nil || c.size(cut[0]+cut[1]) != nil {
			continue
		}
		short := newGenerator(c, cut)
		short.lists()
		each := float64(short.steps()) / float64(cut[0]+cut[1])
		if n := short.steps(); each*float64(g.whole) > mostSteps && n <= workload.MaxSteps {
			g = short
		}
	}
	if g.rounds == nil {
		if err := c.size(g.whole); err != nil {
			return nil, err
		}
		g.lists()
	}
	if n := g.steps(); n > workload.MaxSteps {
		return nil, tooMany(float64(n), workload.MaxSteps)
	}
	return g, nil
}

func newGenerator(c *Config, rounds []int) *generator {
	m := c.Microbatches()
	g := &generator{c: c, p: &workload.Folded{}, world: c.TP*c.CP*c.DP*c.PP + c.KVFrom, m: m, whole: m,
		rounds: rounds,
		units:  map[int][]unit{}, layersOf: c.layersOf(),
		calls: map[callKey]int32{}, ops: map[string]int32{}, tally: map[trafficKey][]int64{}}
	if g.mats = g.matrices(); c.Phase != Train {
		g.mats = g.served()
	}
	g.comms()
	return g
}

// passes are those of each rank of a pipeline, of m microbatches.
func (g *generator) passes() {
	g.plan = nil
	for r := range g.c.PP {
		g.plan = append(g.plan, actions(g.c.Schedule, g.c.PP, r, g.m, g.c.Virtual))
	}
}

// writer writes the list of a rank.
type writer struct {
	g     *generator
	list  int32
	round int // of generator.rounds
	at    place
	steps []workload.Step
	last  int32   // last computation, -1 none
	wait  []int32 // what the next computation waits for
	soon  []int32 // what the one after it waits for
	comm  [numGroups]int32
	size  [numGroups]int
	me    [numGroups]int
	grads reduction
	fully sharding
	// kernel is that of the calls which are issued, in place of NCCL
	kernel workload.Kernel
	// pending is what the host has to launch; captured: a graph has what is written, but for experts.
	pending  units.Time
	captured bool
}

// class numbers what ranks do that differs in more than communicators: the stage of a pipeline, and the
// part of a ring, whose neighbours are others.
func (g *generator) class(p place) int {
	if g.c.Ring && g.c.CP > 1 {
		return p.pp*g.c.CP + p.cp
	}
	return p.pp
}

// lists writes a list for the ranks of each class.
func (g *generator) lists() {
	g.passes()
	of := map[int]int32{} // by class: its list
	sizes := []int{}      // of lists: ranks
	for rank := range g.world {
		class := g.class(g.place(rank))
		at, known := of[class]
		if !known {
			at = int32(len(sizes))
			of[class], sizes = at, append(sizes, 0)
		}
		sizes[at]++
		g.p.Of = append(g.p.Of, at)
	}
	g.classes = len(sizes)
	first := slices.Repeat([]bool{true}, len(sizes))
	for rank, at := range g.p.Of {
		if first[at] {
			first[at] = false
			g.rank(rank, sizes[at] > 1)
		}
	}
	g.p.Each = slices.Repeat([]bool{true}, len(g.p.Calls))
}

// rank writes the list of a rank, or of all of its class.
func (g *generator) rank(rank int, all bool) {
	list := int32(len(g.p.Lists))
	w := &writer{g: g, list: list, at: g.place(rank), last: -1}
	for f := range numGroups {
		n, me, size := g.index(f, w.at)
		if f == expertData && !g.c.apart() {
			n, me, size = g.index(data, w.at)
			w.comm[f] = g.base[data] + int32(n)
		} else {
			w.comm[f] = g.base[f] + int32(n)
		}
		w.size[f], w.me[f] = size, me
	}
	mark := func(name string) {
		g.p.Marks = append(g.p.Marks, workload.Mark{List: list, Step: int32(len(w.steps)), Name: name})
	}
	for i := range max(g.c.Iterations, len(g.rounds)) {
		if g.rounds != nil {
			g.m, w.round = g.rounds[i], i
			g.passes()
		}
		mark(fmt.Sprintf("iteration%d", i))
		w.iteration()
	}
	mark("end")
	name := "rank"
	if !all {
		name = fmt.Sprintf("rank%d", rank)
	}
	g.p.Lists, g.p.Ranked = append(g.p.Lists, workload.List{Name: name, Steps: w.steps}),
		append(g.p.Ranked, all)
}

// compute adds a computation, which waits for what is pending.
func (w *writer) compute(op int32) {
	w.steps = append(w.steps, workload.Step{Kind: workload.Compute, Time: w.g.times[op-1], Work: op,
		Deps: sorted(w.wait)})
	w.last, w.wait, w.soon = int32(len(w.steps)-1), w.soon, nil
	w.launches(w.g.hosts[op-1])
}

// sorted are dependencies in order, each once; w.wait is short.
func sorted(list []int32) (out []int32) {
	for len(list) > len(out) {
		next := int32(math.MaxInt32)
		for _, x := range list {
			if (len(out) == 0 || x > out[len(out)-1]) && x < next {
				next = x
			}
		}
		if next == math.MaxInt32 {
			break
		}
		out = append(out, next)
	}
	return out
}

// issue adds a call of a family, which waits for the last computation and for what is
// named. The number of the step is -1 where the rank is alone.
func (w *writer) issue(f group, what string, fn coll.Func, typ coll.DataType, count int64, peer int32,
	deps ...int32) int32 {
	if w.size[f] < 2 || count == 0 {
		return -1
	}
	family := f
	if f == expertData && !w.g.c.apart() {
		family = data
	}
	stream := streams[family]
	if fn == coll.Recv && (f == ahead || f == back) {
		stream++
	}
	if w.last >= 0 {
		deps = append(deps, w.last)
	}
	comm, to := w.edge(f, fn, peer)
	call := w.g.call(callKey{comm, fn, typ, count, to, w.kernel})
	w.launches(w.g.c.Launch)
	w.steps = append(w.steps, workload.Step{Kind: workload.Issue, Stream: stream, Call: call,
		Deps: sorted(deps)})
	if fn != coll.Recv {
		w.g.count(int32(w.round*w.g.classes)+w.list, trafficKey{family, what, fn, typ, count})
	}
	return int32(len(w.steps) - 1)
}

// then lets the next computation wait for a step.
func (w *writer) then(step int32) {
	if step >= 0 {
		w.wait = append(w.wait, step)
	}
}

// blocking issues a call that the next computation waits for, after what is pending.
func (w *writer) blocking(f group, what string, fn coll.Func, count int64) {
	w.then(w.issue(f, what, fn, w.g.c.Type, count, 0, w.wait...))
}

// iteration writes one: passes in the order of the schedule, gradients, the optimizer.
func (w *writer) iteration() {
	g := w.g
	if g.c.Phase != Train {
		w.serve()
		return
	}
	w.grads = reduction{w: w}
	w.fully = sharding{w: w}
	split := g.c.Schedule == ZeroBubble
	plan, next := g.plan[w.at.pp], int32(-1)
	early := g.c.Schedule == Interleaved && !g.c.NoP2POverlap
	for i, a := range plan {
		first, last := w.stageEnds(a.chunk)
		if a.kind != weights {
			w.fully.begin(w.units(a.chunk), a.kind == forward, a.micro)
		}
		if !early || i == 0 {
			next = w.receive(a)
		}
		w.then(next)
		if early && i+1 < len(plan) { // what the next pass needs comes beside this one
			next = w.receive(plan[i+1])
		}
		switch a.kind {
		case forward:
			w.forward(a.chunk)
			w.send(ahead, !last)
		case backward:
			w.backward(a, !split)
			w.send(back, !first)
		case weights:
			w.weights(a)
		}
	}
	w.grads.flush()
	w.grads.tied()
	w.optimizer()
}

// stageEnds reports whether a stage is the first or the last of the model.
func (w *writer) stageEnds(chunk int) (first, last bool) {
	c := w.g.c
	return chunk == 0 && w.at.pp == 0, chunk == c.Virtual-1 && w.at.pp == c.PP-1
}

// message is what goes from stage to stage: the activations of a microbatch.
func (w *writer) message() int64 { return int64(w.g.shape().part) * w.g.c.Hidden }

// receive issues the receive of what a pass begins with; -1: it needs nothing.
func (w *writer) receive(a action) int32 {
	first, last := w.stageEnds(a.chunk)
	f, from := ahead, w.at.pp-1
	if a.kind == backward {
		f, from = back, w.at.pp+1
	}
	if a.kind == weights || a.kind == forward && first || a.kind == backward && last {
		return -1
	}
	return w.issue(f, "activations", coll.Recv, w.g.c.Type, w.message(), int32((from+w.g.c.PP)%w.g.c.PP))
}

func (w *writer) send(f group, some bool) {
	if !some {
		return
	}
	to, what := w.at.pp+1, "activations"
	if f == back {
		to, what = w.at.pp-1, "gradients"
	}
	w.issue(f, what, coll.Send, w.g.c.Type, w.message(), int32((to+w.g.c.PP)%w.g.c.PP), w.wait...)
}

// optimizer updates parameters when all gradients are reduced.
func (w *writer) optimizer() {
	var dense, experts int64
	for chunk := range w.g.c.Virtual {
		for _, u := range w.units(chunk) {
			dense, experts = dense+u.dense, experts+u.experts
		}
	}
	n := share(dense, w.shards(data)) + share(experts, w.shards(expertData))
	w.wait = append(w.wait, w.grads.done...)
	name := fmt.Sprintf("optimizer_%d", n)
	if _, given := w.g.c.Times["optimizer"]; given {
		name = "optimizer"
	}
	w.compute(w.g.update(name, n))
	if w.g.c.FSDP == 1 {
		w.grads.gather()
	}
	w.launched(true) // an iteration ends where its loss is asked for
}

// shards is among how many ranks the optimizer's state is divided.
func (w *writer) shards(f group) int64 {
	if w.g.c.FSDP == 0 {
		return 1
	}
	return int64(max(w.size[f], 1))
}

// share is n divided among some, rounded up.
func share(n, among int64) int64 { return (n + among - 1) / among }
