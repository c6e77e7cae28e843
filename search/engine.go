package search

import (
	"math"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
)

// trial is what a search varies and finds: NCCL's ncclTopoGraph without its
// big arrays. Bandwidths are float32 as NCCL computes with them.
type trial struct {
	pattern                  Pattern
	crossNIC                 int
	sameChannels             bool
	minChannels, maxChannels int
	nChannels                int
	bwIntra, bwInter         float32
	latency                  float32
	typeIntra, typeInter     topo.PathKind
	nHops                    int
	// order[c*GPUs+i] is the GPU at place i of channel c; in and out are the
	// nets of a channel, by the first net that has their id.
	order   []int32
	in, out []int32
}

// copyFrom takes over o, of the arrays only the channels that o has.
func (t *trial) copyFrom(o *trial, gpus int) {
	order, in, out := t.order, t.in, t.out
	*t = *o
	t.order, t.in, t.out = order, in, out
	copy(t.order, o.order[:o.nChannels*gpus])
	copy(t.in, o.in[:o.nChannels])
	copy(t.out, o.out[:o.nChannels])
}

func newTrial(gpus, channels int) trial {
	return trial{
		order: make([]int32, channels*gpus),
		in:    make([]int32, channels),
		out:   make([]int32, channels),
	}
}

// engine searches one System. Bandwidth that its searches reserve is given
// back; what rounding leaves changed stays changed for the next search, as in
// NCCL, so the searches of one System go through one engine, in NCCL's order.
type engine struct {
	rules  *rules.Ruleset
	sys    *topo.System
	gpus   int
	inter  bool
	kinds  bool // paths to nets count (topo.System.SearchesNets)
	hasNVS bool
	xgmi   []bool // by pair of GPUs: one link joins them (rules.Search.MoreXGMI)
	nets   *netTable

	gpuGPU, gpuNet, netGPU, nvsGPU, gpuNVS table
	uplinks                                []uplink

	// Remaining bandwidth of links and nets, GB/s; in a quick attempt links are
	// counted in left, in thousandths.
	linkBW    []float32
	netBW     []float32
	left      []int32
	cur, best trial

	quick      bool // see prepare
	exactFloat bool // never quick: NCCL's arithmetic throughout
	surcharges bool // some route has a surcharge
	shares     bool // some route charges reverse links
	evenNets   bool // all nets have the same latency
	perHost    bool // NCCL_MNNVL_RAIL_PER_HOST
	collNet    bool
	budget     int // calls left; -1 after a perfect result
	steps      int64
	cancelled  func() error // Params.Cancelled
	stopped    error        // what it returned
	found      int          // most channels seen in this attempt
	intra      rate
	cross      rate // between GPU and net
	half       rate // of cross, for balanced trees
	double     rate // of intra, for the head of an NVLS channel
	used       []uint64
	stack      []int32 // GPUs to try next, of all depths
	ranked     []rankedGPU
	preference [][]candidate // by gpu*(nets+1)+net+1
}

// rate is a bandwidth to charge, as NCCL's float32 and in thousandths, with and
// without the surcharge on PCI.
type rate struct {
	bw, pci      float32
	milli, pciM  int32
	mult         float32 // hops count that many times
	hops         int     // mult where it is whole
	whole, round bool    // all charges are whole thousandths; whole GB/s
}

func newEngine(sys *topo.System, p Params) (*engine, error) {
	gpus, nets, nvs := sys.Of(topo.GPU), sys.Of(topo.NET), sys.Of(topo.NVS)
	e := &engine{
		rules: p.Rules, sys: sys, gpus: len(gpus), inter: sys.Inter &&
			(len(nets) > 0 || !p.Rules.Search.NetsToStart),
		kinds: sys.SearchesNets(), hasNVS: len(nvs) > 0,
		nets:    newNetTable(sys, p),
		linkBW:  make([]float32, len(sys.Links)),
		left:    make([]int32, len(sys.Links)),
		netBW:   make([]float32, len(nets)),
		used:    make([]uint64, len(gpus)),
		perHost: p.RailPerHost.Or(false),
		cur:     newTrial(len(gpus), p.Rules.MaxChannels),
		best:    newTrial(len(gpus), p.Rules.MaxChannels),
		ranked:  make([]rankedGPU, 0, len(gpus)),

		cancelled: p.Cancelled,
	}
	m := routeMaker{sys: sys, cancelled: p.Cancelled}
	e.gpuGPU = m.table(gpus, gpus)
	e.gpuNet, e.netGPU = m.table(gpus, nets), m.table(nets, gpus)
	if e.hasNVS && lowestSM(sys) >= 90 { // else no NVLS
		e.gpuNVS, e.nvsGPU = m.table(gpus, nvs), m.table(nvs, gpus)
	}
	if m.err != nil {
		return nil, m.err
	}
	if p.Rules.Search.MoreXGMI {
		for _, a := range gpus {
			for _, b := range gpus {
				e.xgmi = append(e.xgmi, sys.Adjoining(sys.Path(a, b)))
			}
		}
	}
	e.surcharges, e.shares = m.surcharges, m.shares
	for i := range sys.Links {
		e.linkBW[i] = float32(sys.Links[i].BW)
	}
	e.evenNets = true
	for i, n := range nets {
		e.netBW[i] = float32(sys.Nodes[n].Net.BW)
		if sys.Nodes[n].Net.LatencyUs != sys.Nodes[nets[0]].Net.LatencyUs {
			e.evenNets = false
		}
	}
	for _, g := range gpus {
		e.uplinks = append(e.uplinks, uplinkOf(sys, g))
	}
	e.preference = make([][]candidate, len(gpus)*(len(nets)+1))
	return e, nil
}

// milliOf returns the thousandths of a float32 and whether it is exactly the
// float32 nearest to that many thousandths.
func milliOf(v float32) (int32, bool) {
	if !(v >= 0 && v < 1<<14) {
		return 0, false
	}
	k := int32(math.RoundToEven(float64(v) * 1000))
	return k, float32(k)/1000 == v
}

// newRate makes the charge for a bandwidth; hops count mult times.
func (e *engine) newRate(bw, mult float32) rate {
	r := rate{bw: bw, pci: float32(bw*6) / 5, mult: mult, hops: int(mult)}
	var ok, okPCI bool
	r.milli, ok = milliOf(r.bw)
	r.pciM, okPCI = milliOf(r.pci)
	r.whole = ok && (okPCI || !e.surcharges)
	if e.shares {
		_, eighth := milliOf(r.bw / 8)
		_, pciEighth := milliOf(r.pci / 8)
		r.whole = r.whole && eighth && (pciEighth || !e.surcharges)
	}
	r.round = !e.shares && r.milli%1000 == 0 && (r.pciM%1000 == 0 || !e.surcharges)
	return r
}

// prepare sets the rates of an attempt and decides whether it may be quick.
//
// NCCL keeps links in float32 and rounds every change to 1/1000 GB/s. Where
// every link and every charge is a whole number of thousandths, small enough
// that float32 rounding never reaches half a thousandth, giving back restores
// exactly what was taken. Then counting in integers gives the same answers, and
// once the budget is spent the rest of the search has no effect and may be
// skipped. Elsewhere the attempt follows NCCL's arithmetic to the letter.
func (e *engine) prepare() {
	t := &e.cur
	e.intra, e.cross = e.newRate(t.bwIntra, 1), e.newRate(t.bwInter, 1)
	e.quick = e.intra.whole && e.cross.whole && t.pattern != CollNetDirect && !e.exactFloat
	round := e.intra.round && e.cross.round
	switch t.pattern {
	case BalancedTree:
		e.half = e.newRate(t.bwInter/2, 1)
		e.quick, round = e.quick && e.half.whole, round && e.half.round
	case NVLSPattern:
		e.double = e.newRate(t.bwIntra*2, 2)
		e.quick, round = e.quick && e.double.whole, round && e.double.round
	}
	if !e.quick {
		return
	}
	for i, bw := range e.linkBW {
		k, ok := milliOf(bw)
		// Below 4096 float32 errs by less than .377 thousandths over one
		// change; above, only whole GB/s are safe.
		if !ok || bw >= 4096 && !(round && k%1000 == 0) {
			e.quick = false
			return
		}
		e.left[i] = k
	}
	for n := range e.netBW {
		if !e.netExact(n) {
			e.quick = false
			return
		}
	}
}

// netExact reports whether a net always gets back what it gave. It does not where
// no GPU reaches it, because NCCL then forgets to (search.cc:737). Taking whole
// GB/s from a float32 that has them is exact; one that a faster net of the same
// rail drives below zero is exact only with few binary places.
func (e *engine) netExact(n int) bool {
	if e.nets.cut[n] {
		return false
	}
	bw := e.netBW[n]
	if bw < 1<<13 && bw*512 == float32(int32(bw*512)) {
		return true
	}
	for _, o := range e.nets.peers[n] {
		if e.netBW[o] != bw {
			return false
		}
	}
	return true
}
