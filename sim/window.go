package sim

import (
	"context"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// With jitter no state recurs, and no period can be counted in place of being
// simulated. But the operations of a large size are one iteration again and again,
// and what jitter does to many of them is the same on average. So of an operation
// with many iterations only a window is simulated, and the iterations beyond it
// last as long on average as those of the window's second half:
//
//	T(n) = T(W and rest) + (n - W) · (T(W) - T(W/2)) / (W - W/2)
//
// T(W and rest) is the operation with W of its n iterations and all of its
// incomplete last one, T(W) and T(W/2) have whole iterations only. Bytes of links
// are exact, since iterations are equal. Up to W iterations all of them are
// simulated.

// Windows keeps the simulated windows of a Config: sizes of a sweep share them. The
// zero value is empty. It may be used by several goroutines at once.
type Windows struct {
	sync.Mutex
	ran map[windowKey]*windowRun
}

// windowKey is all by which the windows of one Config differ.
type windowKey struct {
	fn      coll.Func
	typ     coll.DataType
	op      coll.RedOp
	root    int32
	inPlace bool
	algo    coll.Algorithm
	proto   coll.Protocol
	warps   int
	count   int64
	split   plan.Split
	kernels int32
	miss    float64 // share of the buffers of the whole that the L2 cache does not hold
}

type windowRun struct {
	sync.Mutex
	tally *tally // nil until it has run
}

// at returns the run of a key, which may not have run yet.
func (w *Windows) at(key windowKey) *windowRun {
	w.Lock()
	defer w.Unlock()
	if w.ran == nil {
		w.ran = map[windowKey]*windowRun{}
	}
	if w.ran[key] == nil {
		w.ran[key] = new(windowRun)
	}
	return w.ran[key]
}

// window is a part of an operation that is simulated for all of it.
type window struct {
	whole     *plan.Plan
	all, some int64 // iterations of the operation and of the window
	// The window with the incomplete last iterations, without them, and its first
	// half.
	rest, full, half *plan.Plan
}

// A window has so many pieces of each thread group, and at least so many iterations.
var (
	windowPieces int64 = 256
	leastWindow  int64 = 4
)

// window returns the window of a plan, nil where all of it is simulated.
func (x *Executor) window(p *plan.Plan, sink trace.Sink) (*window, error) {
	if sink != trace.Discard || x.cfg.NoSkip || !x.jitters(p) || p.OneRank() != plan.NotOneRank || !x.steadyNetwork() {
		return nil, nil
	}
	w := &window{whole: p, all: p.Iterations()}
	if w.all <= leastWindow {
		return nil, nil
	}
	if w.some = windowOf(p, w.all); w.all <= w.some {
		return nil, nil
	}
	for _, part := range []struct {
		plan       **plan.Plan
		iterations int64
		rest       bool
	}{{&w.rest, w.some, true}, {&w.full, w.some, false}, {&w.half, w.some / 2, false}} {
		var err error
		if *part.plan, err = p.Shorten(part.iterations, part.rest); *part.plan == nil || err != nil {
			return nil, err
		}
	}
	return w, nil
}

// steadyNetwork reports whether the network does the same with each of many
// messages: it loses none, and no rank or port is down.
func (x *Executor) steadyNetwork() bool {
	for _, f := range x.cfg.Faults {
		if f.Loss > 0 || f.Down {
			return false
		}
	}
	return true
}

// windowOf is how many of n iterations are simulated.
func windowOf(p *plan.Plan, n int64) int64 {
	most := int64(1)
	for _, pr := range p.Programs(0) {
		most = max(most, p.NumOps(&pr)/n*int64(max(1, pr.Slices)))
	}
	return max(leastWindow, (windowPieces+most-1)/most) / 2 * 2
}

// extrapolate simulates a window and adds the iterations beyond it.
func (x *Executor) extrapolate(ctx context.Context, w *window) (exec.Result, error) {
	var of [3]*tally
	for i, p := range []*plan.Plan{w.rest, w.full, w.half} {
		var err error
		if of[i], err = x.part(ctx, p, w.whole); err != nil {
			return exec.Result{Wrong: -1}, err
		}
	}
	r := x.result(w.whole, beyond(of[0], of[1], of[2], w.all-w.some, w.some-w.some/2))
	r.Account = exec.Account{Method: exec.Window}
	return r, nil
}

// beyond adds iterations to those of a window: each is one of so many by which full
// has more than half.
func beyond(rest, full, half *tally, iterations, more int64) *tally {
	add := func(to, a, b int64) int64 { return to + (a-b)*iterations/more }
	later := func(to, a, b units.Time) units.Time { return units.Time(add(int64(to), int64(a), int64(b))) }
	t := &tally{kernels: rest.kernels, jitters: rest.jitters, first: later(rest.first, full.first, half.first), last: later(rest.last, full.last, half.last),
		events: add(rest.events, full.events, half.events), finish: make([]units.Time, len(rest.finish)), links: slices.Clone(rest.links)}
	for i := range t.finish {
		t.finish[i] = later(rest.finish[i], full.finish[i], half.finish[i])
	}
	for i := range t.links {
		l, a, b := &t.links[i], &full.links[i], &half.links[i]
		l.Bytes = units.Bytes(add(int64(l.Bytes), int64(a.Bytes), int64(b.Bytes)))
		l.Busy = later(l.Busy, a.Busy, b.Busy)
		waited := func(l *exec.LinkLoad, t *tally) float64 { return float64(l.Queue) * float64(t.last) }
		queue := waited(&rest.links[i], rest) + (waited(a, full)-waited(b, half))*float64(iterations)/float64(more)
		l.Queue = units.Bytes(max(0, queue) / float64(max(1, t.last)))
	}
	return t
}

// part simulates a part of a plan, or takes what an earlier run came to.
func (x *Executor) part(ctx context.Context, p, whole *plan.Plan) (*tally, error) {
	r, l := &p.Req, whole.Layout(int32(whole.Comm.NRanks-1))
	run := x.windows.at(windowKey{fn: r.Func, typ: r.Type, op: r.Op, root: r.Root, inPlace: r.InPlace, algo: r.Algo, proto: r.Proto, warps: r.Warps, count: r.Count,
		split: p.Split, kernels: engine.KernelsFor(whole, x.cfg.Kernels), miss: x.class.Miss(int64(l.Input + l.Output))})
	run.Lock()
	defer run.Unlock()
	if run.tally != nil {
		return run.tally, nil
	}
	e, fold, err := x.build(ctx, p, whole, trace.Discard)
	if err != nil {
		return nil, err
	}
	if err := x.run(ctx, e); err != nil {
		return nil, err
	}
	run.tally = tallyOf(e, fold)
	return run.tally, nil
}

func init() {
	if v := os.Getenv("EXP_P"); v != "" {
		n, _ := strconv.ParseInt(v, 10, 64)
		windowPieces = n
	}
	if v := os.Getenv("EXP_W"); v != "" {
		n, _ := strconv.ParseInt(v, 10, 64)
		leastWindow = n
	}
}
