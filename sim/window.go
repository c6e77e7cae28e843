package sim

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/parallel"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/fold"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// With jitter no state recurs, and no period can be counted in place of being
// simulated. But an operation of a large size is one iteration again and again, and
// what jitter does to many of them is the same on average. So of an operation of n
// iterations only a window of W is simulated, and those beyond it last as long on
// average as those of the window's second half:
//
//	T(n) = T(W and rest) + (n - W) · (T(W) - T(W/2)) / (W/2)
//
// T(W and rest) is the operation with W of its n iterations and all of its
// incomplete last one, T(W) and T(W/2) have whole iterations only. Bytes of links
// are exact, since iterations are equal. Up to W iterations all of them are
// simulated. docs/results/REDUCTIONS.md has how far off that is, and how W was chosen.

// A window has windowPieces pieces (slices of Simple, ops of LL and LL128) of the
// thread group that has the most, but no more than windowWork of all groups, and
// at least leastLoops iterations. Sends and receives share SMs, so each piece
// costs more. NVLS within a node takes some 60 iterations until its buffers are as
// full as they stay.
const (
	windowPieces  = 256
	windowWork    = 1 << 15
	windowWorkP2P = windowWork / 2
	windowNVLS    = 64
)

// Margins, as parts of a time, are more than was seen beside all iterations (docs/adr/0018): windowMargin for
// 2 %; wideMargin for 5 % of what settles slowly over plain hosts, of at most fewGroups thread groups, whose
// phases wander for longer than a window, and of groups of sends and receives; widestMargin for 8 % of
// NVLSTree of which few iterations are simulated, and for 12 % of sends and receives between unequal hosts,
// over a network or with faults, whose transfers meet others in a part and whose buffers may be too small to
// saturate a link.
const (
	windowMargin = fold.Within3
	wideMargin   = fold.Within8
	widestMargin = fold.Within15
	fewGroups    = 64
)

// Beyond alwaysDrawn ranks, what has more than mostDrawn pieces is simulated with
// jitter that equivalent ranks share, so that they fold; alltoall, whose transfers
// share SMs, from mostDrawnP2P. Operations with a root, whose ranks wait for each other
// one by one, keep draws of their own up to mostDrawnChain. Up to alwaysDrawn ranks that
// is done only where the least window of an alltoall of one node is a large one.
const (
	alwaysDrawn    = 16
	mostDrawn      = 1 << 13
	mostDrawnP2P   = 1 << 10
	mostDrawnChain = 1 << 16
	// mailDrawn is the most ranks whose groups of sends and receives are always simulated
	// whole: windows of up to 24 ranks were up to 13.8 % too fast, of 32 and more 2.2 %.
	mailDrawn = 31
)

// jitter says who draws it.
type jitter uint8

const (
	noJitter  jitter = iota
	eachDraws        // every rank and channel, a static share and one for each piece
	// equalShare: equivalent ranks and channels draw the same for each piece, and have
	// no static share, which is 0 on average over all that one represents.
	equalShare
)

func (j jitter) draws() exec.Draws { return exec.Draws(j) }

// Windows keeps the simulated windows of a Config: sizes of a sweep share them. The
// zero value is empty. It may be used by several goroutines at once.
type Windows struct {
	ran   parallel.Cache[windowKey, *tally]
	links parallel.Cache[windowKey, []string] // of the same where they are folded
}

// windowKey is all by which the windows of one Config differ.
type windowKey struct {
	fn      coll.Func
	typ     coll.DataType
	op      coll.RedOp
	root    int32
	inPlace bool
	direct  bool
	peer    int32
	aside   int64 // Misalign
	apart   int64 // of the ranks' blocks, from one line of 128 bytes on
	algo    coll.Algorithm
	proto   coll.Protocol
	warps   int
	count   int64
	turns   int64 // of an iteration
	split   plan.Split
	sent    plan.Transfer // of sends and receives the last of rank 0, which says how they are cut
	groups  int           // of rank 0
	kernels int32         // that run back to back
	miss    float64       // share of the buffers of the whole that the L2 cache does not hold
	jitter  jitter
	members string // the same of each operation in a kernel of several
}

// window proposes the window of a plan, which Fold, NoSkip and a trace have no part in; nil
// where there is none: without jitter, or where messages may be lost. Of a plan that has no more
// iterations than a window it leaves nothing out, and says who draws.
func (x *Executor) window(p *plan.Plan) (*method, error) {
	if !x.mayWindow(p) {
		return nil, nil
	}
	m := &method{whole: p, rest: p, jitter: eachDraws}
	most, work := pieces(p)
	all := p.Iterations()
	some := all
	if all > 0 {
		some = min(all, windowOf(p, all, most, x.workOf(p, work)))
	}
	if p.Members() != nil && 2*some >= all {
		some = all
	}
	if some < all {
		work = work / all * some
	}
	mail := p.Members() != nil && p.Req.Func.IsP2P() // messages of a group do not fold
	if x.cfg.Packets == nil && !mail && work > x.mostToDraw(p) {
		m.jitter = equalShare
	}
	if all == some {
		if m.jitter == equalShare && !x.plain() { // few are equivalent
			m.jitter = noJitter
		}
		return m, nil
	}
	return m, m.shorten(some, all, x.windowMargin(p))
}

// mayWindow reports whether a plan's jitter may be drawn for a window of its iterations: no other
// operation is on the machine, but equal ones of several iterations in the same kernel.
func (x *Executor) mayWindow(p *plan.Plan) bool {
	if p.Members() == nil && p.Req.Cut != nil || x.cfg.Late != nil {
		return false
	}
	if p.Members() != nil && (p.Iterations() == 0 || p.Req.Func.IsP2P() && !x.mailWindow(p)) {
		return false
	}
	return x.jitters(p) != noJitter && p.OneRank() == plan.NotOneRank && x.steadyNetwork()
}

// shorten leaves out all but some of a method's iterations; all stay where a plan is not cut
// that way.
func (m *method) shorten(some, all int64, margin float64) error {
	var parts [3]*plan.Plan
	for i := range parts {
		iterations := some
		if i == 2 {
			iterations /= 2
		}
		var err error
		parts[i], err = m.whole.Shorten(iterations, i == 0 || m.jitter == noJitter)
		if parts[i] == nil || err != nil {
			return err
		}
	}
	m.rest, m.full, m.half = parts[0], parts[1], parts[2]
	if m.jitter == noJitter {
		m.full = m.rest
	}
	m.Iterations, m.Margin = exec.Part{Ran: some, Of: all}, margin
	return nil
}

// mailWindow reports whether a window may be simulated of a group's sends and receives: where
// all of them cost more than wholeTime and nothing but the group sets ranks apart.
func (x *Executor) mailWindow(p *plan.Plan) bool {
	if p.Comm.NRanks <= mailDrawn || !x.plain() {
		return false
	}
	kernels := int64(engine.KernelsFor(p, x.cfg.Kernels))
	c := x.costOfAll(p, kernels)
	if c.pieces = 0; x.jitters(p) == noJitter {
		return false
	}
	for r := range int32(p.Comm.NRanks) { // which may send to and receive from different ones
		for _, pr := range p.Programs(r) {
			c.pieces += float64(p.NumOps(&pr) * int64(max(1, pr.Slices)) * kernels)
		}
	}
	return c.time() > x.whole
}

// mostToDraw is how many pieces of a plan are simulated with jitter of their own at
// most.
func (x *Executor) mostToDraw(p *plan.Plan) int64 {
	switch f := p.Req.Func; {
	case x.share >= 0:
		return x.share
	case p.Comm.NRanks <= alwaysDrawn:
		if f == coll.AllToAll && p.Comm.NNodes == 1 {
			return windowWorkP2P
		}
		return math.MaxInt64
	case f == coll.AllToAll:
		return mostDrawnP2P
	case f.Rooted():
		return mostDrawnChain
	}
	return mostDrawn
}

// steadyNetwork reports whether the network does the same with each of many
// messages: it loses none, no rank or port is down, and no frame meets others.
func (x *Executor) steadyNetwork() bool {
	if x.cfg.Packets != nil && !x.flowsOnly {
		return false
	}
	if f := x.cfg.Fabric; f != nil && slices.ContainsFunc(f.Wires, func(w fabric.Wire) bool {
		return w.Loss > 0
	}) {
		return false
	}
	return !slices.ContainsFunc(x.cfg.Faults, func(f Fault) bool { return f.Loss > 0 || f.Down })
}

// pieces returns how many pieces the thread group of rank 0, or of the root, with the most has, and
// about how many all groups have.
func pieces(p *plan.Plan) (most, all int64) {
	rank, ranks := int32(0), int64(p.Comm.NRanks)
	if p.Req.Func.IsP2P() && p.Req.Func.Rooted() { // the others have as much as the root, all together
		rank, ranks = int32(p.Req.Root), 2
	}
	for _, pr := range p.Programs(rank) {
		n := p.NumOps(&pr) * int64(max(1, pr.Slices))
		most = max(most, n)
		all += n * ranks
	}
	return max(1, most), max(1, all)
}

// workOf is how many of a plan's pieces bound its window. Equivalent ranks of an alltoall that share draws
// fold, so that those of one are simulated. With those of all in their place, 8 of 682 iterations were
// simulated of 4 GiB over six DGX B200 whose blocks begin at odd addresses: some transfers are slower there,
// and fall behind for longer than that. It came out 7.3 % too fast, of 58 iterations it is 0.2 % too slow.
func (x *Executor) workOf(p *plan.Plan, all int64) int64 {
	ranks := int64(p.Comm.NRanks)
	if p.Req.Func == coll.AllToAll && p.Members() == nil && ranks > alwaysDrawn && x.plain() {
		return max(1, all/ranks)
	}
	return all
}

// windowOf is how many of n iterations are simulated, an even number.
func windowOf(p *plan.Plan, n, most, all int64) int64 {
	work, of := int64(windowWork), int64(max(1, len(p.Members()))) // of a group each has fewer channels
	switch {
	case p.Req.Func.IsP2P():
		work = windowWorkP2P
	case p.Req.Algo == coll.NVLS:
		return windowNVLS * of
	}
	return max(leastLoops, 2*depth(p), min((windowPieces*n+most-1)/most, work*n/all)/2*2*of)
}

// depth is about how many iterations are in progress at a time once all ranks are
// busy, beyond those that FIFOs hold: one for each hop that data takes, of NVLSTree
// one for each group of threads and each proxy step. An iteration of rings but for
// broadcast and reduce takes all hops.
func depth(p *plan.Plan) int64 {
	c := p.Comm
	levels := int64(bits.Len(uint(c.NNodes - 1)))
	switch {
	case p.Req.Func.IsP2P():
		return 1
	case p.Req.Func.Rooted():
		return int64(c.NRanks)
	case p.Req.Algo == coll.Tree:
		return 2 * (int64(c.MaxLocalRanks) + levels)
	case p.Req.Algo == coll.NVLSTree:
		return 4 * (1 + levels)
	}
	return 1
}

// cheap reports whether all iterations are simulated of an operation whose window may be off by more than
// windowMargin, or is short: where they take little by the forecast, so that a sweep over sizes stays
// within a second. Of LL on 8 B200, 8 of 32 iterations came out 3.4 % too fast.
func (x *Executor) cheap(m, window *method) bool {
	if x.windowMargin(m.whole) <= windowMargin && window.Iterations.Ran >= 2*leastLoops {
		return false
	}
	m.cost = x.costOfAll(m.whole, int64(engine.KernelsFor(m.whole, x.cfg.Kernels)))
	return m.cost.time() <= 2*x.whole/quickly
}

// otherwise returns the method for a window whose two parts fold in different ways: a part may have equal
// channels where the whole has unequal ones. It divides the channels of the parts as those of the whole are,
// or, where they are already, has each rank draw its jitter.
func (m *method) otherwise() *method {
	own := *m
	if m.divided {
		own.jitter = eachDraws
		return &own
	}
	own.divided, own.full, own.half = true, m.full.DividedAs(m.whole), m.half.DividedAs(m.whole)
	if own.full.Members() == nil && own.full.Split == m.full.Split {
		own.jitter = eachDraws
	}
	return &own
}

// windowMargin is by how much a time found from a window may be off.
func (x *Executor) windowMargin(p *plan.Plan) float64 {
	switch {
	case p.Req.Func.IsP2P() && !x.plain():
		return widestMargin
	case len(p.Programs(0))*p.Comm.NRanks <= fewGroups, p.Members() != nil && p.Req.Func.IsP2P():
		return wideMargin
	}
	return windowMargin
}

// clone returns a copy with links of its own.
func (t *tally) clone() *tally {
	c := *t
	c.links = slices.Clone(t.links)
	return &c
}

// beyond adds iterations to those of a window: each is one of so many by which full
// has more than half, and lasts as long times pace.
func beyond(rest, full, half *tally, iterations, more int64, pace float64) *tally {
	add := func(to, a, b int64) int64 { return to + (a-b)*iterations/more }
	later := func(to, a, b units.Time) units.Time {
		if pace == 1 {
			return units.Time(add(int64(to), int64(a), int64(b)))
		}
		return to + units.Time(float64(a-b)*pace*float64(iterations)/float64(more))
	}
	t := rest.clone()
	t.first, t.last = later(rest.first, full.first, half.first), later(rest.last, full.last, half.last)
	t.events = add(rest.events, full.events, half.events)
	t.finish = make([]units.Time, len(rest.finish))
	for i := range t.finish {
		t.finish[i] = later(rest.finish[i], full.finish[i], half.finish[i])
	}
	for i := range t.links {
		l, a, b := &t.links[i], &full.links[i], &half.links[i]
		l.Bytes = units.Bytes(add(int64(l.Bytes), int64(a.Bytes), int64(b.Bytes)))
		l.Busy = units.Time(add(int64(l.Busy), int64(a.Busy), int64(b.Busy)))
		waited := func(l *exec.LinkLoad, t *tally) float64 { return float64(l.Queue) * float64(t.last) }
		queue := waited(&rest.links[i], rest) + (waited(a, full)-waited(b, half))*pace*float64(iterations)/
			float64(more)
		l.Queue = units.Bytes(max(0, queue) / float64(max(1, t.last)))
	}
	return t
}

// part simulates a part of a method's operation, or takes what an earlier run of it came to.
func (x *Executor) part(ctx context.Context, p *plan.Plan, m *method) (*tally, error) {
	if p.Members() != nil && p.Req.Func.IsP2P() { // of which the key does not say who sends to whom
		return x.tally(ctx, m, p)
	}
	return x.windows.ran.Get(x.keyOf(p, m), func() (*tally, error) { return x.tally(ctx, m, p) })
}

// keyOf returns what distinguishes a part of an operation, simulated by a method, from others of the Config.
func (x *Executor) keyOf(p *plan.Plan, m *method) windowKey {
	key := x.keyOfOne(p, m)
	for _, o := range p.Members() {
		key.members += fmt.Sprintf("%d %d %+v\n", o.Fuse, o.Task, x.keyOfOne(o.Plan, m))
	}
	return key
}

func (x *Executor) keyOfOne(p *plan.Plan, m *method) windowKey {
	r, l, programs := &p.Req, m.whole.Layout(int32(p.Comm.NRanks-1)), p.Programs(0)
	key := windowKey{fn: r.Func, typ: r.Type, op: r.Op, root: r.Root, inPlace: r.InPlace, direct: r.Direct,
		peer: r.Peer, aside: r.Misalign, apart: r.BlockStep() % 128, algo: r.Algo, proto: r.Proto,
		warps: r.Warps,
		count: r.Count, turns: p.Turns(), split: p.Split, kernels: engine.KernelsFor(m.whole, x.cfg.Kernels),
		miss: x.class.Miss(int64(l.Input + l.Output)), jitter: m.jitter, groups: len(programs)}
	if r.Func.IsP2P() && len(programs) > 0 {
		key.sent = programs[len(programs)-1].Transfer
		key.sent.Off, key.sent.Dst = key.sent.Off%128, key.sent.Dst%128 // the rest of which is apart's
	}
	return key
}

// tally simulates a part of a method's operation.
func (x *Executor) tally(ctx context.Context, m *method, p *plan.Plan) (*tally, error) {
	e, q, err := x.folded(ctx, p, m.whole, trace.Discard, m.jitter, m.times(p))
	if err != nil {
		return nil, err
	}
	if err := x.lay(e, q); err != nil {
		return nil, err
	}
	if err := x.run(ctx, e, nil); err != nil {
		return nil, err
	}
	return x.tallyOf(e, q)
}
