package tuning

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// AMD is what RCCL's cost model and choice must know beside Input.
type AMD struct {
	Arch  string // of rank 0's GPU
	Table int    // index of the table (rules.Tuning.TableOf)
	// Alone: no ranks are on other hosts; AllXGMI: XGMI joins all GPUs of a host.
	Alone, AllXGMI bool
	// LL128, TreeDefined and PivotRings are the machine model's.
	LL128, TreeDefined bool
	PivotRings         int
	PXN                bool // relays over other GPUs are on
	AINIC              bool // the NICs are AMD's
}

// AMDParams are the settings that change RCCL's choices; the zero value is RCCL's defaults.
type AMDParams struct {
	// NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS, for each operation
	MinChannels, MaxChannels units.Opt[int64]
	AINIC                    units.Opt[int64] // RCCL_AINIC_ROCE: 1 takes AMD's NICs for such
	LL128                    bool             // RCCL_LL128_FORCE_ENABLE
	// RCCL_CHANNEL_TUNING_ENABLE=0: no channels by the table's windows
	NoWindows        bool
	Threads          units.Opt[int64]  // RCCL_THREADS_PER_BLOCK
	Algo, Proto      units.Opt[string] // RCCL_OVERRIDE_ALGO, RCCL_OVERRIDE_PROTO
	NoDDA            bool              // RCCL_DDA_ENABLE=0
	DDAMost          units.Opt[int64]  // RCCL_DDA_THRESHOLD: largest bytes on gfx950
	NoDirectGather   bool              // RCCL_DIRECT_ALLGATHER_DISABLE
	DirectGatherMost units.Opt[int64]  // RCCL_DIRECT_ALLGATHER_THRESHOLD
	NoDirectScatter  bool              // RCCL_DIRECT_REDUCE_SCATTER_DISABLE
	NoHierarchy      bool              // RCCL_HIERARCHICAL_ALLGATHER=0
	// RCCL_DISABLE_REDUCE_COPY_PIPELINING, RCCL_PIPELINE_ALL_DATA_TYPES
	NoPipeline, PipelineAll bool
}

// Lanes are those of a wavefront (graph/topo.h, comm->WarpSize).
const Lanes = 64

// amdTable takes the figures of the communicator's table in place of NCCL's.
func amdTable(t *rules.Tuning, in *Input, p *AMDParams) (*rules.Tuning, *rules.CostTable, error) {
	if !t.Has() {
		return t, nil, nil
	}
	if n := in.AMD.Table; n < 0 || n >= len(t.Costs) || t.Costs[n].HWLat == ([rules.NumHops]rules.Cells{}) {
		return nil, nil, fmt.Errorf("tuning: table %d is not among RCCL's", in.AMD.Table)
	}
	own, cost := *t, &t.Costs[in.AMD.Table]
	own.HWLat = cost.HWLat
	own.Direct, own.Hierarchical, own.DDA = p.ways(t)
	return &own, cost, nil
}

// ways are the windows of direct, hierarchical and DDA with a user's settings.
func (p *AMDParams) ways(t *rules.Tuning) (direct []rules.DirectRule, over []rules.SizeWindow,
	dda []rules.DirectRule) {
	for _, r := range t.Direct {
		gather, most := r.Func == coll.AllGather, p.DirectGatherMost
		if gather && (p.NoDirectGather || most.Set && most.Value == -1) || !gather && p.NoDirectScatter {
			continue
		}
		if gather && most.Set && t.DirectAsked {
			r.To, r.PerNode = most.Value, 0
		}
		direct = append(direct, r)
	}
	if !p.NoHierarchy {
		over = t.Hierarchical
	}
	for _, r := range t.DDA {
		if p.NoDDA {
			break
		}
		if p.DDAMost.Set && r.Arch == t.DDAAsked {
			r.To = p.DDAMost.Value
		}
		dda = append(dda, r)
	}
	return direct, over, dda
}

// amdThreads are the most threads of a block (graph/tuning.cc:712 of RCCL 2.30.4).
func (m *Model) amdThreads(slow bool) {
	t, p, arch := m.tab, &m.Params, m.In.AMD.Arch
	simple, ll, ll128 := t.Threads(arch, coll.Simple), t.Threads(arch, coll.LL), t.Threads(arch, coll.LL128)
	def := simple
	if slow {
		def = 256
	}
	m.MaxThreads[coll.Ring][coll.Simple] = blockThreads(p.NThreads, Lanes, 4*Lanes, simple, def)
	for _, a := range []coll.Algorithm{coll.Tree, coll.CollNetDirect} {
		m.MaxThreads[a][coll.Simple] = blockThreads(p.NThreads, Lanes, 4*Lanes, simple, simple)
	}
	for _, a := range []coll.Algorithm{coll.Tree, coll.Ring, coll.CollNetDirect} {
		m.MaxThreads[a][coll.LL] = blockThreads(p.NThreads, Lanes, 4*Lanes, simple, ll)
	}
	for _, a := range []coll.Algorithm{coll.Tree, coll.Ring} {
		m.MaxThreads[a][coll.LL128] = blockThreads(p.LL128NThreads, Lanes, 4*Lanes, ll128, ll128)
	}
}

// share is the algorithm's of the graph's bandwidth (graph/tuning.cc:808 of RCCL 2.30.4).
func (m *Model) share(bus float32, f coll.Func, a coll.Algorithm, p coll.Protocol) float32 {
	size := 0
	if m.In.NNodes > 2 {
		size = 1
	}
	bus *= float32(m.cost.Share[size][a][p])
	if a == coll.Ring && p == coll.LL && (f == coll.Broadcast || f == coll.Reduce) && m.In.AMD.Alone &&
		m.tab.AloneTreeOff(m.In.AMD.Arch) {
		bus = float32(float64(bus) * m.tab.AloneLL)
	}
	return bus
}

// amdAbsent is a cell that RCCL does not have on this machine.
func (m *Model) amdAbsent(a coll.Algorithm, p coll.Protocol) Reason {
	if a == coll.Tree && p == coll.Simple && m.In.AMD.Alone && m.tab.AloneTreeOff(m.In.AMD.Arch) {
		return Reason{Rule: "RCCL has no Tree by Simple on one node of " + m.In.AMD.Arch,
			At: rules.AtTreeAlone}
	}
	return Reason{}
}

// amdLL128 lists what keeps LL128 off (graph/tuning.cc:985 of RCCL 2.30.4). Asked: NCCL_PROTO names it.
func (m *Model) amdLL128(a coll.Algorithm, asked bool) []Reason {
	const set = "NCCL_PROTO=LL128 forces it"
	in, g := &m.In, m.In.graph(a)
	if !m.tab.KnowsLL128(in.AMD.Arch) {
		return []Reason{{Rule: "RCCL has no LL128 for " + in.AMD.Arch, At: rules.AtLL128SM}}
	}
	if asked && m.tab.LL128Asked {
		return nil
	}
	setting := ""
	if m.tab.LL128Asked {
		setting = set
	}
	var rs []Reason
	if !in.AMD.LL128 {
		rs = append(rs, Reason{Rule: "LL128 needs a machine model with ll128Enabled", Setting: setting,
			At: rules.AtLL128Model})
	}
	if g.TypeInter > topo.PathPXB {
		rs = append(rs,
			Reason{Rule: fmt.Sprintf("LL128 goes as far as PXB between nodes and the %s graph has %s",
				graphName(g), g.TypeInter), Setting: setting, At: rules.AtLL128PXB})
	}
	if g.TypeIntra > topo.PathNVL {
		rs = append(rs, Reason{Rule: fmt.Sprintf("LL128 needs XGMI inside the node and the %s graph has %s",
			graphName(g), g.TypeIntra), Setting: setting, At: rules.AtLL128NVLink})
	}
	return rs
}

// amdBarred is why an operation cannot take a cell that has a bandwidth (enqueue.cc:2322-2350 of RCCL
// 2.30.4).
func (m *Model) amdBarred(o Op, a coll.Algorithm, p coll.Protocol) Reason {
	switch {
	case p == coll.LL128 && !m.In.AMD.AllXGMI && !(m.tab.LL128Asked && m.Params.Proto.Set):
		return Reason{Rule: "LL128 is for machines whose GPUs are all joined by XGMI",
			At: rules.AtLL128AllXGMI}
	case a == coll.PAT && gathers(o.Func) && !m.Params.Algo.Set:
		n := int64(o.NBytes(m.In.NRanks))
		if w, ok := m.tab.PATWindow(m.In.NNodes); ok && (n < w.From || n > w.To) {
			return Reason{Rule: fmt.Sprintf("PAT is for %d to %d bytes on %d nodes", w.From, w.To,
				m.In.NNodes),
				Setting: "NCCL_ALGO=PAT", At: rules.AtPATWindow}
		}
	}
	return Reason{}
}

// factor returns the share of a cell's bandwidth that operations of 2^lg bytes reach by RCCL's tables of
// Tree, and of Ring between nodes (graph/tuning.cc:1108 of RCCL 2.30.4).
func (m *Model) factor(a coll.Algorithm, p coll.Protocol, lg int) float32 {
	lg = max(0, min(rules.FactorSizes-1, lg))
	switch {
	case a == coll.Tree:
		return m.cost.TreeShare[p][lg]
	case a == coll.Ring && m.In.NNodes > 1:
		return m.cost.RingShare[p][lg]
	}
	return 1
}

// perRank is the size that RCCL's windows are of (include/rccl_common.h:117).
func perRank(f coll.Func, nBytes, ranks int64) int64 {
	if f == coll.AllReduce {
		return nBytes
	}
	return nBytes / ranks
}

// amdAfter changes a choice after the minimum of times and finds its channels and threads
// (enqueue.cc:2440-2610 of RCCL 2.30.4).
func (m *Model) amdAfter(c *Choice) {
	o, n := c.Op, int64(c.NBytes)
	if c.Algo != coll.PAT && !c.Steered {
		m.amdProto(c, perRank(o.Func, n, int64(m.In.NRanks)))
	}
	m.amdLaunch(c)
	m.amdForced(c)
	m.amdDirect(c)
}

// amdForced are algorithms that RCCL takes whatever the times are.
func (m *Model) amdForced(c *Choice) {
	in, o := &m.In, c.Op
	listed, reduces := m.Params.Algo.Set || m.Params.Proto.Set, o.Func == coll.AllReduce
	switch {
	case !reduces:
	case in.AMD.PivotRings == m.tab.PivotRings:
		if listed {
			break
		}
		a, p, rule := coll.Ring, coll.Simple,
			"with rings for pivots an AllReduce of more than %d bytes is Ring by Simple"
		if int64(c.NBytes) <= m.tab.PivotMost {
			a, p, rule = coll.Tree, coll.LL,
				"with rings for pivots an AllReduce of up to %d bytes is Tree by LL"
			c.MaxChannels = min(m.tab.PivotChannels, in.Channels)
		}
		m.overrule(c, a, p, fmt.Sprintf(rule, m.tab.PivotMost), rules.AtPivot)
	case in.AMD.TreeDefined:
		m.overrule(c, coll.Tree, c.Proto, "a machine model that defines trees has all AllReduces by Tree",
			rules.AtTreeDefined)
	}
	m.amdBlock(c)
	m.amdAsked(c)
	if w, ok := rules.In(m.tab.AloneTree, in.AMD.Arch, o.Func, int64(c.NBytes)); ok && in.NNodes == 1 &&
		!m.Params.Algo.Set && m.Params.Plugin == nil {
		m.overrule(c, coll.Tree, coll.LL,
			fmt.Sprintf("on one node of %s an AllReduce of %d to %d bytes is Tree by LL",
				in.AMD.Arch, w.From, w.To), rules.AtAloneTree)
	}
}

// amdAsked takes the algorithm and then the protocol that the user names, where the model has them on
// (rccl_wrap.cc:233-287 of RCCL 2.30.4).
func (m *Model) amdAsked(c *Choice) {
	p := &m.Params.AMD
	for _, a := range coll.Algorithms() {
		if p.Algo.Set && strings.EqualFold(p.Algo.Value, a.String()) && c.Times[a][c.Proto] != Off {
			m.overrule(c, a, c.Proto, "RCCL_OVERRIDE_ALGO="+p.Algo.Value, rules.AtOverride)
			break
		}
	}
	for _, r := range coll.Protocols() {
		if p.Proto.Set && strings.EqualFold(p.Proto.Value, r.String()) && c.Times[c.Algo][r] != Off {
			m.overrule(c, c.Algo, r, "RCCL_OVERRIDE_PROTO="+p.Proto.Value, rules.AtOverride)
			break
		}
	}
}

// overrule takes an algorithm and a protocol in place of those so far, for a rule.
func (m *Model) overrule(c *Choice, a coll.Algorithm, p coll.Protocol, rule string, at rules.Place) {
	if c.Algo == a && c.Proto == p {
		return
	}
	c.Algo, c.Proto = a, p
	if c.Overruled == nil {
		c.Overruled = new([]Reason)
	}
	*c.Overruled = append(*c.Overruled, Reason{Rule: rule, At: at})
}

// amdProto takes the protocol that goes by the share of a rank in place of the fastest (rccl_wrap.cc:83 of
// RCCL 2.30.4).
func (m *Model) amdProto(c *Choice, size int64) {
	in, f := &m.In, c.Op.Func
	if m.Params.Proto.Set {
		return
	}
	if in.NNodes == 1 {
		if w, ok := rules.In(m.tab.AloneLLMost, in.AMD.Arch, f, size); ok {
			m.overrule(c, c.Algo, coll.LL,
				fmt.Sprintf("on one node of %s a share of up to %d bytes of a rank is LL",
					in.AMD.Arch, w.To), rules.AtAloneLL)
		}
		return
	}
	r := m.cost.Ranges[f]
	if r[coll.LL].To == 0 && r[coll.LL128].To == 0 {
		return
	}
	p, from, to := coll.Simple, int64(0), uint64(0)
	if size > r[coll.LL].From && size <= r[coll.LL].To {
		p, from, to = coll.LL, r[coll.LL].From, uint64(r[coll.LL].To)
	}
	if in.AMD.LL128 {
		most := uint64(r[coll.LL128].To)
		if f == coll.AllReduce && in.NNodes > 2 {
			most = uint64(float64(most) * m.tab.LL128Stretch)
		}
		if size > r[coll.LL128].From && uint64(size) <= most {
			p, from, to = coll.LL128, r[coll.LL128].From, most
		}
	}
	rule := "between nodes a share of a rank beyond the ranges of LL and LL128 is Simple"
	if p != coll.Simple {
		rule = fmt.Sprintf("between nodes a share of more than %d bytes of a rank, up to %d, is %s", from, to,
			p)
	}
	m.overrule(c, c.Algo, p, rule, rules.AtRanges)
}

// grain are bytes per thread for which a further channel is used. RCCL reads the row of Simple beyond the two
// of its table, which is LL of the operation after it there (rccl_wrap.cc:294 of RCCL 2.30.4).
func (m *Model) grain(c *Choice) int64 {
	per := m.ThreadThreshold[c.Algo][c.Proto]
	f := c.Op.Func
	if !gathers(f) || m.In.NNodes < 2 || m.Params.ThreadThresholds.Set || m.Params.AMD.MinChannels.Set ||
		m.Params.AMD.MaxChannels.Set {
		return per
	}
	r, p := &m.cost.Ranges[f], c.Proto
	if p == coll.Simple {
		next := coll.AllReduce
		if f == coll.ReduceScatter {
			next = coll.AllGather
		}
		r, p = &m.cost.Ranges[next], coll.LL
	}
	if g := r[p].Grain; g != 0 {
		return g * int64(m.In.NRanks)
	}
	return per
}

// amdLaunch finds channels and threads (enqueue.cc:2450-2500 of RCCL 2.30.4).
func (m *Model) amdLaunch(c *Choice) {
	n := uint64(c.NBytes)
	nc, nt := m.In.Channels, m.MaxThreads[c.Algo][c.Proto]
	least := int(m.Params.AMD.MinChannels.Or(-2))
	if c.Algo == coll.PAT && m.tab.PATSteps {
		c.MaxChannels = m.patChannels(n, least)
		m.amdBlock(c)
		return
	}
	per := int(m.grain(c))
	if n < uint64(int64(int32(nc*nt*per))) && nc > least {
		nc = max(1, max(least, int(int32(n/uint64(max(1, nt*per))))))
	}
	c.MaxChannels = m.windowChannels(c, nc, least)
	m.amdBlock(c)
}

func (m *Model) patChannels(n uint64, least int) int {
	nc := m.In.Channels
	switch {
	case n <= 32<<10:
		nc = 1
	case n <= 64<<10:
		nc = 2
	case n <= 1<<20:
		nc = 4
	}
	if least > 0 {
		nc = max(least, nc)
	}
	if most := int(m.Params.AMD.MaxChannels.Or(-2)); most > 0 {
		nc = min(most, nc)
	}
	return nc
}

// windowChannels are the table's channels for the share of a rank (rccl_wrap.cc:177 of RCCL 2.30.4).
func (m *Model) windowChannels(c *Choice, nc, least int) int {
	in := &m.In
	if in.NNodes < 2 || m.Params.AMD.NoWindows || in.NRanks == in.NNodes && !m.tab.OneRankNodes {
		return nc
	}
	size := (int64(c.NBytes) + int64(in.NRanks) - 1) / int64(in.NRanks)
	for _, w := range m.cost.Channels[c.Op.Func] {
		if size <= w.From || size > w.To {
			continue
		}
		most := max(in.Channels, int(m.Params.AMD.MaxChannels.Or(-2)))
		if w.Channels >= max(least, 1) && w.Channels <= most {
			nc = w.Channels
		}
		break
	}
	return nc
}

// amdBlock are the threads of a block (rccl_wrap.cc:808 of RCCL 2.30.4).
func (m *Model) amdBlock(c *Choice) {
	t, arch := m.tab, m.In.AMD.Arch
	nt := m.MaxThreads[c.Algo][c.Proto]
	if c.Algo == coll.Tree || c.Algo == coll.PAT {
		nt = t.Threads(arch, coll.Simple)
	}
	switch {
	case m.In.NNodes == 1:
		nt = t.LeastThreads
	case c.Proto == coll.LL:
		nt = t.Threads(arch, coll.LL)
	}
	size := (int64(c.NBytes) + int64(m.In.NRanks) - 1) / int64(m.In.NRanks)
	if c.Op.Func == coll.ReduceScatter && size <= t.SmallScatter {
		nt = t.Threads(arch, coll.LL)
	}
	if n := m.Params.AMD.Threads; n.Set && n.Value != -1 { // rccl_wrap.cc:808
		nt = max(3*Lanes, min(t.Threads(arch, coll.Simple), (int(n.Value)+Lanes-1)/Lanes*Lanes))
	}
	c.Warps = nt / Lanes
	c.Threads = c.Warps * Lanes
	c.Pipelined = m.pipelined(c.Op)
}

// pipelined reports whether a reduction is pipelined (rccl_wrap.cc:307 of RCCL 2.30.4).
func (m *Model) pipelined(o Op) bool {
	if p := &m.Params.AMD; p.NoPipeline || o.Type != coll.BFloat16 && !p.PipelineAll ||
		!m.tab.PipelinedOn(m.In.AMD.Arch) {
		return false
	}
	switch o.Func {
	case coll.AllReduce:
		return m.In.NNodes == 1 ||
			uint64(o.NBytes(m.In.NRanks)) <= uint64(512<<20)<<(log2(uint64(m.In.NNodes))-1)
	case coll.ReduceScatter, coll.Reduce:
		return true
	}
	return false
}

// Ways by which RCCL does an operation in place of the algorithm that its model names.
const (
	DirectGather  = "AllGatherDirect"     // send and receive to all
	DirectScatter = "ReduceScatterDirect" // the same, and a reduction
	Hierarchical  = "Hierarchical"        // over nodes, then within them
	DDA           = "DDA"                 // kernels that read the memory of all GPUs
)

// Instead is what does an operation in place of Algo, "" for nothing, and how to have Algo do it.
func (c *Choice) Instead() (way, otherwise string) {
	switch {
	case c.DDA:
		return DDA, "RCCL_DDA_ENABLE=0 leaves it out"
	case c.Direct == DirectGather:
		return c.Direct, "RCCL_DIRECT_ALLGATHER_DISABLE=1 leaves it out"
	case c.Direct == DirectScatter:
		return c.Direct, "RCCL_DIRECT_REDUCE_SCATTER_DISABLE=1 leaves it out"
	case c.Direct == Hierarchical:
		return c.Direct, "RCCL_HIERARCHICAL_ALLGATHER=0 leaves it out"
	}
	return "", ""
}

// amdDirect finds the ways that RCCL takes before its model is asked: DDA, hierarchical, direct
// (collectives.cc:134-160, 440, 560 of RCCL 2.30.4).
func (m *Model) amdDirect(c *Choice) {
	in, o, n := &m.In, c.Op, int64(c.NBytes)
	for _, r := range m.tab.Direct {
		if !m.amdWay(&r, o.Func, n) {
			continue
		}
		c.Direct = DirectGather
		if o.Func == coll.ReduceScatter {
			c.Direct = DirectScatter
		}
	}
	if o.Func == coll.AllGather {
		for _, w := range m.tab.Hierarchical {
			if in.NNodes >= w.Nodes {
				if n <= w.To && in.NRanks > in.NNodes {
					c.Direct = Hierarchical
				}
				break
			}
		}
	}
	for _, r := range m.tab.DDA {
		c.DDA = c.DDA || m.amdWay(&r, o.Func, n) && ddaTakes(o, n, int64(in.NRanks))
	}
}

func (m *Model) amdWay(r *rules.DirectRule, f coll.Func, n int64) bool {
	in := &m.In
	return r.Func == f && strings.HasPrefix(in.AMD.Arch, r.Arch) && n >= r.From &&
		n <= r.To+r.PerNode*int64(in.NNodes) && in.NNodes >= r.MinNodes &&
		(r.MaxNodes == 0 || in.NNodes <= r.MaxNodes) &&
		(r.RankMultiple == 0 || in.NRanks%r.RankMultiple == 0) && (r.Ranks == 0 || in.NRanks == r.Ranks) &&
		(!r.PXN || in.AMD.PXN) && !(r.NoAINIC && in.AMD.AINIC)
}

// ddaFlat is the size in bytes up to which each GPU reads all of an AllReduce (dda_all_reduce_ipc.cu:157).
const ddaFlat = 256 << 10

// ddaTakes reports whether the kernels take an operation: sums of three types, in whole 16 bytes.
func ddaTakes(o Op, n, ranks int64) bool {
	if o.Func.Reduces() && o.RedOp != coll.Sum ||
		o.Type != coll.Float32 && o.Type != coll.Float16 && o.Type != coll.BFloat16 {
		return false
	}
	part := n
	if o.Func != coll.AllReduce || n > ddaFlat {
		if n%(ranks*int64(o.Type.Size())) != 0 {
			return false
		}
		part = n / ranks
	}
	return part%16 == 0
}

// TakenByDDA reports whether the kernels do an AllToAll in place of sends and receives (collectives.cc:310,
// dda_alltoall_ipc.cu:80 of RCCL 2.30.4).
func (m *Model) TakenByDDA(o Op) bool {
	ranks := int64(m.In.NRanks)
	n := o.Count * int64(o.Type.Size()) * ranks
	return o.Func == coll.AllToAll && slices.ContainsFunc(m.tab.DDA, func(r rules.DirectRule) bool {
		return m.amdWay(&r, o.Func, n) && ddaTakes(o, n, ranks)
	})
}

// amdCuts are the counts from which a rule that goes by bytes holds or no longer holds; unit are the bytes of
// one element of every rank.
func (m *Model) amdCuts(f coll.Func, unit uint64) []uint64 {
	var cuts []uint64
	bytes := func(n int64) { // from so many bytes on
		if n > 0 {
			cuts = append(cuts, (uint64(n)+unit-1)/unit)
		}
	}
	share := func(n int64) { // from so many bytes of a rank on
		if f != coll.AllReduce {
			n *= int64(m.In.NRanks)
		}
		bytes(n)
	}
	for k := 6; k < 6+rules.FactorSizes; k++ {
		bytes(1 << k)
	}
	for _, r := range m.cost.Ranges[f] {
		share(r.From + 1)
		share(r.To + 1)
	}
	if f == coll.AllReduce {
		most := float64(uint64(m.cost.Ranges[f][coll.LL128].To)) * m.tab.LL128Stretch
		bytes(int64(most) + 1)
		bytes(m.tab.PivotMost + 1)
	}
	for _, list := range [][]rules.FuncWindow{m.tab.AloneLLMost, m.tab.AloneTree} {
		for _, w := range list {
			if w.Func == f {
				share(w.From)
				share(w.To + 1)
			}
		}
	}
	for _, list := range [][]rules.SizeWindow{m.tab.PATWindows, m.tab.Hierarchical} {
		for _, w := range list {
			bytes(w.From)
			bytes(w.To + 1)
		}
	}
	for _, r := range m.tab.Direct {
		bytes(r.From)
		bytes(r.To + r.PerNode*int64(m.In.NNodes) + 1)
	}
	return cuts
}

// amdShares adds the steps from a graph's bandwidth to a cell's.
func (m *Model) amdShares(d *deriver, f coll.Func, a coll.Algorithm, p coll.Protocol) {
	v, nodes := m.share(d.last, f, a, p), "up to two nodes"
	size := 0
	if m.In.NNodes > 2 {
		size, nodes = 1, "more than two nodes"
	}
	what := fmt.Sprintf("table %d: %s by %s on %s has %g of the graph", m.In.AMD.Table, a, p, nodes,
		m.cost.Share[size][a][p])
	if v != d.last*float32(m.cost.Share[size][a][p]) {
		what += fmt.Sprintf(", and on one node of %s x %g", m.In.AMD.Arch, m.tab.AloneLL)
	}
	d.add(what, v)
}
