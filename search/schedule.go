package search

import (
	"math"

	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// schedule runs the attempts of one search: which speed, path kinds, crossing
// of nets and equality of channels to try, and when to stop (search.cc:991).
type schedule struct {
	e     *engine
	want  Want
	cross int // NCCL_CROSS_NIC where the pattern and the nets let it matter
	minSM int

	minIntra, minInter topo.PathKind // best kinds in the system: where to begin
	maxIntra, maxInter topo.PathKind // worst kinds in the system: where to end
	speeds             []float32
	at                 int // index of the present speed
	trySame            bool
	amd                bool  // AMD CPUs carry different channels badly across sockets
	left               int64 // of the global budget
	attempts           []Attempt
	fallback           bool      // no channel was found
	ends               [2]uint64 // the nets of that graph
	firstPass          bool
	// kinds of routes that exist, by kind: raising a limit to one that does not
	// exist permits nothing new.
	hasIntra, hasInter [topo.PathDIS + 1]bool
	seen               map[settings]outcome // attempts of the first pass at this speed
}

// settings are what distinguishes an attempt of the first pass from another at the same
// speed.
type settings struct {
	pattern      Pattern
	same         bool
	cross        int
	intra, inter topo.PathKind // the worst kinds that exist and are permitted
}

// outcome is what an attempt leaves behind, apart from a better result.
type outcome struct {
	budget, found int
	steps         int64
}

func newSchedule(e *engine, w Want, p Params) *schedule {
	s := &schedule{e: e, want: w, trySame: w.Pattern != NVLSPattern, left: budgetGlobal,
		seen: map[settings]outcome{}}
	sys := e.sys
	switch w.Pattern {
	case RingPattern, BalancedTree, SplitTree:
		if len(sys.Of(topo.NET)) > 1 {
			s.cross = p.CrossNIC.Or(2)
		}
	}
	s.minSM = lowestSM(sys)
	s.limitKinds()
	cpu := sys.Nodes[sys.Of(topo.CPU)[0]].CPU
	s.amd = cpu.Arch == topo.ArchX86 && cpu.Vendor == topo.VendorAMD
	s.speeds = speedsFor(&e.rules.Search, s.minSM, e.kinds)
	e.collNet = w.CollNet
	e.steps = 0

	b := &e.best
	*b = trial{order: b.order, in: b.in, out: b.out,
		pattern: w.Pattern, minChannels: w.MinChannels, maxChannels: w.MaxChannels,
		crossNIC: s.firstCross(), sameChannels: s.trySame, typeIntra: s.minIntra, typeInter: s.minInter,
	}
	return s
}

// lowestSM is the lowest compute capability of a System's GPUs.
func lowestSM(sys *topo.System) int {
	sm := math.MaxInt
	for _, g := range sys.Of(topo.GPU) {
		sm = min(sm, sys.Nodes[g].GPU.SM)
	}
	return sm
}

// limitKinds sets which kinds of paths are tried.
func (s *schedule) limitKinds() {
	s.existing()
	r := &s.e.rules.Search
	if !r.KindsOfSystem {
		s.minIntra, s.minInter = topo.PathNVL, topo.PathPIX
		if s.e.gpus == 1 {
			s.minIntra = topo.PathLOC
		}
		s.maxIntra, s.maxInter = topo.PathSYS, topo.PathSYS
	}
	if r.SYSBelowSM90 && s.minSM < 90 {
		s.maxInter = topo.PathSYS
	}
}

// existing finds the best and the worst paths between GPUs and to nets
// (paths.cc:911, search.cc:1000).
func (s *schedule) existing() {
	e := s.e
	s.minIntra, s.maxIntra = topo.PathLOC, topo.PathSYS
	s.minInter, s.maxInter = topo.PathPIX, topo.PathSYS
	if e.gpus > 1 {
		s.minIntra, s.maxIntra = topo.PathSYS, topo.PathLOC
		for a := 0; a < e.gpus; a++ {
			for b := 0; b < e.gpus; b++ {
				if k := e.gpuGPU.at(a, b).kind; a != b {
					s.hasIntra[k] = true
					s.minIntra, s.maxIntra = min(s.minIntra, k), max(s.maxIntra, k)
				}
			}
		}
	}
	if !e.kinds {
		return
	}
	s.minInter, s.maxInter = topo.PathSYS, topo.PathLOC
	for i := range e.netGPU.routes {
		s.hasInter[e.netGPU.routes[i].kind] = true
	}
	for i := range e.gpuNet.routes {
		k := e.gpuNet.routes[i].kind
		s.hasInter[k] = true
		s.minInter, s.maxInter = min(s.minInter, k), max(s.maxInter, k)
	}
}

// firstCross is the crossing to begin with: NCCL_CROSS_NIC=2 tries none first.
func (s *schedule) firstCross() int {
	if s.cross == 1 {
		return 1
	}
	return 0
}

// run searches until the result cannot get better or the budgets end.
func (s *schedule) run() {
	e := s.e
	if !s.limitChannels() {
		return
	}
	e.cur.copyFrom(&e.best, e.gpus)
	s.firstSpeed()

	s.firstPass = true
	for done := false; !done && e.stopped == nil; {
		e.poll() // an attempt on few GPUs may be shorter than what visit counts
		s.attempt()
		done = e.budget == -1 || float32(e.best.nChannels)*e.best.bwInter >= float32(e.sys.TotalBW) ||
			!s.relax()
	}
	s.firstPass = false
	s.duplicate()
	s.raise()
	if e.best.nChannels == 0 && !s.want.CollNet && e.best.pattern != NVLSPattern {
		s.giveUp()
	}
}

// limitChannels adapts the bounds of channels to the pattern; false where the
// pattern is impossible here (search.cc:1034-1054).
func (s *schedule) limitChannels() bool {
	e, b := s.e, &s.e.best
	switch b.pattern {
	case NVLSPattern:
		if !e.hasNVS || s.minSM < 90 {
			return false
		}
		b.maxChannels = min(e.rules.Search.MaxNVLSHeads, e.gpus)
	case CollNetDirect:
		b.maxChannels = min(e.rules.Search.MaxCollNetHeads, e.gpus)
	}
	if e.gpus == 1 && b.pattern != RingPattern {
		b.pattern = TreePattern
	}
	if b.pattern == NVLSPattern && !e.kinds {
		b.minChannels = b.maxChannels // all GPUs serve evenly
	}
	if b.pattern == RingPattern && b.maxChannels >= 2 && b.minChannels == 1 && e.rules.Search.TwoIslands &&
		e.splitNVLink() {
		b.minChannels = 2 // the tree will need two, and gets as many as the ring
	}
	return true
}

// splitNVLink reports whether NVLink joins the GPUs into exactly two groups
// (paths.cc:948).
func (e *engine) splitNVLink() bool {
	group := make([]int, e.gpus)
	for g := range group {
		group[g] = g
	}
	for g := range group {
		for o := g + 1; o < e.gpus; o++ {
			if e.gpuGPU.at(g, o).kind == topo.PathNVL {
				group[o] = group[g]
			}
		}
	}
	size := make([]int, e.gpus)
	groups := 0
	for _, g := range group {
		if size[g]++; size[g] == 2 {
			groups++
		}
	}
	return groups == 2
}

// firstSpeed goes to the fastest speed that the machine can have.
func (s *schedule) firstSpeed() {
	e := s.e
	total := float32(e.sys.TotalBW)
	n := e.gpus
	if e.rules.Topo.DevNodes {
		n = len(e.sys.Of(topo.DEV))
	}
	if n > 1 && e.cur.pattern != RingPattern {
		total = float32(float64(total) * (float64(n) / float64(n-1)))
	}
	for s.at < len(s.speeds)-1 &&
		(s.speeds[s.at] > float32(e.sys.MaxBW) || s.speeds[s.at]*float32(e.cur.minChannels) > total) {
		s.at++
	}
	e.cur.bwIntra, e.cur.bwInter = s.speeds[s.at], s.speeds[s.at]
}

// attempt searches once at the present settings.
func (s *schedule) attempt() {
	e := s.e
	e.budget = budgetFree
	if e.cur.sameChannels {
		e.budget = budgetSame
	}
	s.left -= int64(e.budget)
	e.cur.nChannels, e.found = 0, 0
	e.prepare()
	repeated := false
	if s.firstPass && e.quick && e.cur.pattern != NVLSPattern && e.xgmi == nil {
		repeated = s.once()
	} else {
		e.nextChannel()
	}
	a := Attempt{
		BWIntra: units.GBps(e.cur.bwIntra), BWInter: units.GBps(e.cur.bwInter),
		TypeIntra: e.sys.Rank(e.cur.typeIntra), TypeInter: e.sys.Rank(e.cur.typeInter),
		SameChannels: e.cur.sameChannels, Channels: e.found, Repeated: repeated,
	}
	switch {
	case e.budget == -1:
		a.Stop = "perfect"
	case e.budget == 0:
		a.Stop = "budget"
	case e.found == 0:
		a.Stop = "none"
	default:
		a.Stop = "exhausted"
	}
	s.attempts = append(s.attempts, a)
}

// once searches unless an earlier attempt of the first pass at this speed was
// the same: NCCL searches again, visits the same channels in the same order and
// finds none that is better than what it already has, because results only get
// better (search.cc:420; not so for NVLS). It reports whether it did not search.
func (s *schedule) once() bool {
	e, t := s.e, &s.e.cur
	key := settings{t.pattern, t.sameChannels, t.crossNIC, worst(&s.hasIntra, t.typeIntra),
		worst(&s.hasInter, t.typeInter)}
	if o, ok := s.seen[key]; ok {
		e.budget, e.found = o.budget, o.found
		e.steps += o.steps
		return true
	}
	before := e.steps
	e.nextChannel()
	s.seen[key] = outcome{e.budget, e.found, e.steps - before}
	return false
}

// worst returns the worst kind that exists up to a limit.
func worst(has *[topo.PathDIS + 1]bool, limit topo.PathKind) topo.PathKind {
	for ; limit > 0 && !has[limit]; limit-- {
	}
	return limit
}

// relax moves on to the next settings of the first pass; false at their end.
// The order is NCCL's: different channels, a plain tree, worse paths between
// GPUs, worse paths to nets, crossing nets, less speed; each starts those
// before it again (search.cc:1103-1151).
func (s *schedule) relax() bool {
	e, t, b := s.e, &s.e.cur, &s.e.best
	if t.sameChannels && !(s.amd && t.typeIntra == topo.PathSYS) {
		t.sameChannels = false
		return true
	}
	t.sameChannels = s.trySame
	s.left += int64(e.budget)
	if s.left < 0 && b.nChannels > 0 {
		return false
	}
	if s.minSM >= 90 && t.pattern == BalancedTree {
		t.pattern = TreePattern
		return true
	}
	t.pattern = b.pattern

	limit := s.maxIntra
	if e.kinds {
		limit = t.typeInter
	}
	if t.typeIntra < limit && (b.nChannels == 0 || t.typeIntra < b.typeIntra) {
		if t.typeIntra++; t.typeIntra < topo.PathDIS {
			return true
		}
	}
	t.typeIntra = s.minIntra
	if e.kinds && t.typeInter < s.maxInter &&
		(b.nChannels == 0 || t.typeInter < b.typeInter || t.typeInter < e.sys.Rank(topo.PathPXN)) {
		if t.typeInter++; t.typeInter < topo.PathDIS {
			return true
		}
	}
	t.typeInter = s.minInter
	if any := s.e.rules.Search.CrossAny; s.cross == 2 && t.crossNIC == 0 &&
		(any || b.pattern == RingPattern || b.pattern == BalancedTree) {
		if t.crossNIC = 2; any {
			t.crossNIC = 1
		}
		return true
	}
	t.crossNIC = s.firstCross()
	if s.at < len(s.speeds)-1 && (b.nChannels == 0 || float64(s.speeds[s.at+1]/b.bwInter) > .49) {
		s.at++
		t.bwIntra, t.bwInter = s.speeds[s.at], s.speeds[s.at]
		clear(s.seen)
		return true
	}
	return false
}

// duplicate uses every channel twice where that helps to fill fast links
// (search.cc:961).
func (s *schedule) duplicate() {
	b, gpus := &s.e.best, s.e.gpus
	if b.nChannels == 0 || b.pattern == NVLSPattern || b.bwIntra < 25 ||
		s.minSM > 80 && b.bwIntra < 50 && b.nChannels > 4 {
		return
	}
	n := min(b.nChannels*2, b.maxChannels)
	more := n - b.nChannels
	copy(b.order[b.nChannels*gpus:], b.order[:more*gpus])
	copy(b.in[b.nChannels:], b.in[:more])
	copy(b.out[b.nChannels:], b.out[:more])
	parts := float32((n + b.nChannels - 1) / b.nChannels)
	b.bwIntra /= parts
	b.bwInter /= parts
	b.nChannels = n
}

// raise is the second pass: it starts from the result and tries higher speeds
// while they succeed (search.cc:1163-1185).
func (s *schedule) raise() {
	e, t, b := s.e, &s.e.cur, &s.e.best
	t.copyFrom(b, e.gpus)
	s.at = 0
	for s.at < len(s.speeds)-1 && s.speeds[s.at] > b.bwInter {
		s.at++
	}
	t.bwIntra, t.bwInter = s.speeds[s.at], s.speeds[s.at]
	t.minChannels = b.nChannels
	for e.budget = -1; e.budget != 0 && s.at > 0 && e.stopped == nil; s.attempt() {
		faster := s.speeds[s.at-1]
		switch {
		case b.pattern == RingPattern:
			t.bwIntra, t.bwInter = faster, faster
		case b.pattern == NVLSPattern && t.bwInter == b.bwInter && t.bwInter < t.bwIntra*2:
			t.minChannels, t.maxChannels = b.nChannels, b.nChannels
			t.bwInter = faster
		case t.bwIntra == b.bwIntra && t.bwIntra < t.bwInter*2:
			t.bwIntra = faster
		default:
			return
		}
		s.at--
	}
}

// giveUp is the graph where nothing was found: the GPUs in order on one channel
// (search.cc:1189).
func (s *schedule) giveUp() {
	b := &s.e.best
	for g := 0; g < s.e.gpus; g++ {
		b.order[g] = int32(g)
	}
	b.bwIntra, b.bwInter = 0.1, 0.1
	b.typeIntra, b.typeInter = topo.PathSYS, topo.PathSYS
	b.nChannels = 1
	s.fallback = true
	if s.e.rules.Search.NoGraphNets {
		s.giveUpNets()
	}
}

// giveUpNets takes the best nets of the first and the last GPU for that graph; where
// one has none it leads to no other node (search.cc:1195 of v2.29.7).
func (s *schedule) giveUpNets() {
	b, nets := &s.e.best, s.e.nets
	in, out := nets.returns(topo.PathLOC, 0), nets.returns(topo.PathLOC, s.e.gpus-1)
	if len(in) == 0 || len(out) == 0 {
		b.bwInter, b.typeInter = 0, topo.PathDIS
		s.ends = [2]uint64{NoNet, NoNet}
		return
	}
	all := s.e.sys.Of(topo.NET)
	s.ends = [2]uint64{s.e.sys.Nodes[all[in[0]]].Ident, s.e.sys.Nodes[all[out[0]]].Ident}
}
