package tuning

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
)

// Cells is one figure per collective, algorithm and protocol.
type Cells [nFuncs][nAlgos][nProtos]float32

// Model is the cost model of one communicator.
type Model struct {
	In     Input
	Params Params

	// Latency in microseconds and Bandwidth in GB/s (of the algorithm, not of
	// the bus); a Bandwidth of 0 means off.
	Latency, Bandwidth Cells
	// Raw is the bandwidth before user lists and safety rules switched cells
	// off: what a forced cell would have.
	Raw Cells

	// MaxThreads and ThreadThreshold (bytes per thread) by algorithm and
	// protocol; zero where NCCL has none.
	MaxThreads      [nAlgos][nProtos]int
	ThreadThreshold [nAlgos][nProtos]int64

	// Enabled are the lists after NCCL_ALGO and NCCL_PROTO: 0 off, 1 on, 2 on
	// where safe (LL128 without a list).
	EnabledAlgos  [nFuncs][nAlgos]int
	EnabledProtos [nFuncs][nProtos]int

	off [nFuncs][nAlgos][nProtos][]Reason
	tab *rules.Tuning
	// cost is the table of RCCL's cost model; nil for NCCL's.
	cost *rules.CostTable
}

// New computes the model (ncclTopoTuneModel). Errors: a
// *coll.MaskError for a malformed list (NCCL fails its init with it), or
// Params without rules.
func New(in Input, p Params) (*Model, error) {
	if err := p.Rules.Check("tuning"); err != nil {
		return nil, err
	}
	if in.NRanks < 1 || in.NNodes < 1 || in.NNodes > in.NRanks {
		return nil, fmt.Errorf("tuning: %d ranks on %d nodes: not a communicator", in.NRanks, in.NNodes)
	}
	m := &Model{In: in, Params: p}
	var err error
	if m.tab, m.cost, err = amdTable(&p.Rules.Tuning, &in, &p.AMD); err != nil {
		return nil, err
	}
	m.setMaxThreads()
	if err := m.readLists(); err != nil {
		return nil, err
	}
	if in.NRanks == 1 {
		return m, nil
	}
	s := newShape(&m.In, m.tab)
	for f := range coll.Func(nFuncs) {
		for a := range coll.NumAlgorithms {
			for pr := range coll.NumProtocols {
				m.fill(s, f, a, pr)
				m.enable(f, a, pr)
			}
		}
	}
	if m.tab.ListsOfAll {
		m.bringRingsBack()
	}
	m.setThresholds()
	return m, nil
}

// shape holds what all cells share.
type shape struct {
	tab         *rules.Tuning
	nRanks      int
	nNodes      int
	ppn         float32 // ranks per node
	sm, scale   int     // row and column of the caps
	llMax       float64
	ringLL128   float64
	treeLL128   float64
	treeMax     float64
	nvlsTreeMax float64
	power       bool
	intraHW, hw [nAlgos]int
}

func newShape(in *Input, tab *rules.Tuning) *shape {
	s := &shape{tab: tab, nRanks: in.NRanks, nNodes: in.NNodes, sm: rules.Class(in.MinSM),
		scale: min(in.NNodes, 3) - 1}
	s.ppn = float32(in.NRanks) / float32(in.NNodes)
	row := s.sm
	if in.NNodes > 1 { // LL goes by the CPU between nodes (tuning.cc:248)
		row = 0
		if in.CPUVendor == vendorAMD || in.CPUVendor == vendorMixed && tab.LLMixedAsAMD {
			row = 1
		}
	}
	s.llMax = tab.LLMax[row][s.scale]
	s.ringLL128 = tab.RingLL128Max[s.sm][s.scale]
	s.treeLL128 = tab.TreeLL128Max[s.sm][s.scale]
	s.treeMax = tab.TreeMax[s.sm][s.scale]
	s.nvlsTreeMax = tab.NVLSTreeMax[s.sm][s.scale]
	s.power = in.CPUArch == archPower
	for a := range s.hw {
		// Exactly NVL: LOC and NVB count as PCI (tuning.cc:261).
		s.intraHW[a] = rules.HopPCI
		if in.graph(coll.Algorithm(a)).TypeIntra == topo.PathNVL {
			s.intraHW[a] = rules.HopNVLink
		}
		s.hw[a] = s.intraHW[a]
		if in.NNodes > 1 {
			s.hw[a] = rules.HopNet
		}
	}
	return s
}

// hwLat looks up a hop latency; on POWER the Tree's over PCI is the Ring's
// (tuning.cc:256).
func (s *shape) hwLat(hw int, a coll.Algorithm, p coll.Protocol) float32 {
	if s.power && hw == rules.HopPCI && a == coll.Tree && p == coll.Simple {
		a = coll.Ring
	}
	return float32(s.tab.HWLat[hw][a][p])
}

// steps is the number of hops of a ring (tuning.cc:265).
func (s *shape) steps(f coll.Func) int {
	switch f {
	case coll.AllReduce:
		return 2 * (s.nRanks - 1)
	case coll.ReduceScatter, coll.AllGather:
		return s.nRanks - 1
	}
	return s.nRanks
}

// gathers reports whether an operation is AllGather or ReduceScatter.
func gathers(f coll.Func) bool { return f == coll.AllGather || f == coll.ReduceScatter }

// fill computes one cell's latency and raw bandwidth, or notes why NCCL has no
// such cell (tuning.cc:270-406).
func (m *Model) fill(s *shape, f coll.Func, a coll.Algorithm, p coll.Protocol) {
	reason := m.skipped(f, a, p)
	if reason.Rule == "" {
		reason = m.missing(a, p)
	}
	if reason.Rule != "" {
		m.off[f][a][p] = []Reason{reason}
		return
	}
	g := m.In.graph(a)
	bus, r := m.busBW(s, g, f, a, p)
	if r.Rule != "" {
		m.off[f][a][p] = []Reason{r}
	}
	nvls := a == coll.NVLS || a == coll.NVLSTree
	if a == coll.Ring || !gathers(f) || nvls && s.tab.NVLSRatioAll { // bus to algorithm bandwidth
		ratio := float32(.5)
		switch {
		case nvls && s.tab.NVLSRatio != 0:
			ratio = s.tab.NVLSRatio
		case a == coll.Ring || nvls:
			ratio = float32(float64(s.nRanks) / float64(s.steps(f)))
		}
		bus *= ratio
	}
	m.Raw[f][a][p], m.Bandwidth[f][a][p] = bus, bus
	m.Latency[f][a][p] = m.latency(s, g, f, a, p)
}

// busBW is the bus bandwidth of a cell; a Reason comes with a zero.
func (m *Model) busBW(s *shape, g *search.Graph, f coll.Func, a coll.Algorithm, p coll.Protocol) (float32,
	Reason) {
	collnet := a == coll.CollNetDirect || a == coll.CollNetChain
	n := float32(g.NChannels)
	bw := float32(g.BWInter)
	if s.nNodes <= 2 || collnet {
		bw = float32(g.BWIntra)
	}
	if a == coll.NVLS || a == coll.NVLSTree {
		bw = s.nvlsBW(g, f, a)
	}
	bus := n * bw
	switch {
	case m.cost != nil:
		bus = m.share(bus, f, a, p)
	case a == coll.Ring:
		bus = s.ringBW(bus, g.NChannels, p)
	case a == coll.Tree:
		bus = s.treeBW(bus, g.NChannels, f, p, m.In.TreePattern)
	case a == coll.PAT:
		bus = float32(float64(bus) * s.tab.PATEff)
	}
	if r := unused(a, p); r.Rule != "" {
		return 0, r
	}
	if a == coll.CollNetDirect {
		bus = s.collNetDirectBW(bus, g, f, m.In.MinSM)
	}
	if (a == coll.NVLS || a == coll.CollNetDirect) && gathers(f) && s.nNodes > 1 {
		if r := m.noNetGather(f, a); r.Rule != "" {
			return 0, r
		}
	}
	if collnet && !m.In.CollNet.Enabled {
		return 0, m.collNetOff(a)
	}
	if g.NChannels == 0 || bus != bus {
		return 0, Reason{Rule: "the search found no " + a.String() + " graph", At: rules.AtNoGraph}
	}
	return bus, Reason{}
}

func (s *shape) ringBW(bus float32, nChannels int, p coll.Protocol) float32 {
	switch p {
	case coll.LL:
		return float32(math.Min(s.llMax, float64(bus)*.5))
	case coll.LL128:
		return float32(math.Min(float64(bus)*s.ringLL128Share(), float64(nChannels)*s.ringLL128))
	}
	return bus
}

// ringLL128Share is what LL128 leaves of a ring's bandwidth.
func (s *shape) ringLL128Share() float64 {
	if s.ppn < 2 {
		return s.tab.RingLL128Sparse
	}
	return s.tab.RingLL128
}

func (s *shape) treeBW(bus float32, nChannels int, f coll.Func, p coll.Protocol,
	pattern search.Pattern) float32 {
	if f == coll.AllReduce {
		bus = float32(math.Min(float64(bus)*.92, float64(nChannels)*s.treeMax))
	}
	switch p {
	case coll.LL:
		bus = float32(math.Min(float64(bus)*1.0/3.8, s.llMax))
	case coll.LL128:
		eff := 120.0 / 128.0
		if s.nNodes == 1 {
			eff = 7.0 / 9.0
		}
		bus = float32(math.Min(float64(bus)*eff, float64(nChannels)*s.treeLL128))
	}
	if pattern == search.TreePattern {
		bus = float32(float64(bus) * .85)
	}
	return bus
}

// nvlsBW is NVLS bus bandwidth per channel.
func (s *shape) nvlsBW(g *search.Graph, f coll.Func, a coll.Algorithm) float32 {
	return s.tab.NVLSBandwidth(s.tab, rules.NVLS{
		Intra: float32(g.BWIntra), Inter: float32(g.BWInter), Channels: g.NChannels,
		PerNode: s.ppn, Nodes: s.nNodes, Class: s.sm, Scale: s.scale, Tree: a == coll.NVLSTree,
		AllReduce: f == coll.AllReduce,
	})
}

// collNetDirectBW: tuning.cc:309-319.
func (s *shape) collNetDirectBW(bus float32, g *search.Graph, f coll.Func, minSM int) float32 {
	if gathers(f) {
		return s.tab.CollNetGather(s.ppn, float32(g.BWIntra), float32(g.BWInter), s.nNodes > 1)
	}
	factor := float32(float64(s.ppn) / float64(g.NChannels)) // GPUs per NIC
	factor -= (factor - 1) / 2
	bus /= factor
	if minSM >= 90 {
		bus = float32(float64(bus) * .85)
	}
	return bus
}

// latency is the fixed time of a cell in microseconds (tuning.cc:349-405).
func (m *Model) latency(s *shape, g *search.Graph, f coll.Func, a coll.Algorithm, p coll.Protocol) float32 {
	base := float32(s.tab.BaseLat[a][p])
	intra := s.hwLat(s.intraHW[a], a, p)
	inter := s.hwLat(rules.HopNet, a, p)
	if s.ppn == 1 && s.tab.NetLatOfTree { // nothing hides the network: the Tree's latency holds for all
		inter = s.hwLat(rules.HopNet, coll.Tree, p)
	}
	inter += g.LatencyInter
	if p == coll.Simple { // the flush
		inter += g.LatencyInter
	}
	local := s.nRanks/s.nNodes - 1
	log := float32(log2(uint64(s.nNodes)))
	switch a {
	case coll.Ring:
		return m.ringLatency(s, g, f, p, base, intra, inter)
	case coll.Tree:
		if f == coll.AllReduce {
			base += 2 * (float32(float32(local)*intra) + float32(log*inter))
		}
	case coll.CollNetDirect: // 0.4 us for every further local rank
		t := float64(float32(min(1, local))*intra) + float64(float64(local)*0.4)
		base = float32(float64(base) + (float64(2*t) + float64(inter)))
	case coll.CollNetChain:
		base += float32(float32(2*local)*intra) + inter
	case coll.NVLS:
		base = intra
		if s.nNodes > 1 {
			base += inter
		}
	case coll.NVLSTree:
		base += intra + float32(float32(2*log2(uint64(s.nNodes)))*inter)
	case coll.PAT:
		t := float64(float64(log)*(float64(inter)/3.5)) + float64(float64(s.nRanks)*2.8)
		base = float32(float64(base) + t)
	}
	return base
}

func (m *Model) ringLatency(s *shape, g *search.Graph, f coll.Func, p coll.Protocol, base, intra,
	inter float32) float32 {
	n := s.steps(f)
	if f == coll.Reduce || f == coll.Broadcast {
		lat := s.hwLat(s.hw[coll.Ring], coll.Ring, p)
		if g.SameChannels != 0 {
			return base + lat
		}
		if p == coll.Simple {
			lat = s.hwLat(s.hw[coll.Ring], coll.Tree, p)
		}
		return base + float32(float32(n)*lat)
	}
	overhead, nInter := float32(0), 0
	if s.nNodes > 1 {
		overhead = m.netOverhead()
		if p == coll.Simple {
			overhead *= 3
		}
		nInter = s.nNodes - 1
		switch {
		case f == coll.AllReduce && s.tab.NetRoundTrip:
			nInter = 2 * s.nNodes
		case f == coll.AllReduce:
			nInter *= 2
		}
	}
	intra = max(intra, overhead)
	return base + (float32(float32(n-nInter)*intra) + float32(float32(nInter)*inter))
}

// netOverhead is the host's cost of one network step in microseconds
// (tuning.cc:212).
func (m *Model) netOverhead() float32 {
	if o := m.Params.NetOverheadNs; o.Set {
		return float32(float64(o.Value) * .001)
	}
	if m.In.CPUArch == archX86 && m.In.CPUVendor == vendorAMD {
		return 2
	}
	return 1
}

// log2 rounds down; -1 for 0, as NCCL's log2i gives.
func log2(x uint64) int { return 63 - bits.LeadingZeros64(x) }

// Grouped is the model of operations of a group, in which RCCL has neither DDA nor hierarchical AllGathers
// (collectives.cc:132, 152 of RCCL 2.30.4).
func (m *Model) Grouped() *Model {
	if len(m.tab.DDA)+len(m.tab.Hierarchical) == 0 {
		return m
	}
	own, tab := *m, *m.tab
	tab.DDA, tab.Hierarchical = nil, nil
	own.tab = &tab
	return &own
}
