package tuning

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// absent reports why NCCL has no such cell, for any machine and
// settings.
func (m *Model) absent(f coll.Func, a coll.Algorithm, p coll.Protocol) Reason {
	if r := m.skipped(f, a, p); r.Rule != "" {
		return r
	}
	return unused(a, p)
}

// skipped are the cells that NCCL leaves at zero (tuning.cc:273-282).
func (m *Model) skipped(f coll.Func, a coll.Algorithm, p coll.Protocol) Reason {
	switch {
	case f == coll.Broadcast && a != coll.Ring:
		return Reason{Rule: f.String() + " runs as Ring only", At: rules.AtBroadcastRing}
	case f == coll.Reduce && a != coll.Ring:
		return Reason{Rule: f.String() + " runs as Ring only", At: rules.AtReduceRing}
	case a == coll.PAT && !m.tab.PAT:
		return Reason{Rule: m.Params.Rules.Name() + " has no PAT"}
	case gathers(f) && a != coll.PAT && a != coll.Ring && a != coll.NVLS && a != coll.CollNetDirect:
		at := rules.AtGatherAlgos
		if f == coll.ReduceScatter {
			at = rules.AtScatterAlgos
		}
		return Reason{Rule: m.Params.Rules.Library.String() + " has no " + a.String() + " " + f.String(),
			At: at}
	case f == coll.AllReduce && a == coll.PAT:
		return Reason{Rule: m.Params.Rules.Library.String() + " has no PAT AllReduce",
			At: rules.AtPATAllReduce}
	case (a == coll.NVLS || a == coll.NVLSTree) && p != coll.Simple:
		return Reason{Rule: a.String() + " runs with Simple only", At: rules.AtNVLSSimple}
	case a == coll.PAT && p != coll.Simple:
		return Reason{Rule: a.String() + " runs with Simple only", At: rules.AtPATSimple}
	}
	return Reason{}
}

// unused are the cells that have a latency and no bandwidth (tuning.cc:311).
func unused(a coll.Algorithm, p coll.Protocol) Reason {
	switch {
	case a == coll.CollNetDirect && p != coll.Simple:
		return Reason{Rule: a.String() + " runs with Simple only", At: rules.AtCollNetDirectSimple}
	case a == coll.CollNetChain && p != coll.Simple:
		return Reason{Rule: a.String() + " runs with Simple only", At: rules.AtCollNetChainSimple}
	}
	return Reason{}
}

// missing reports why this communicator has no such cell.
func (m *Model) missing(a coll.Algorithm, p coll.Protocol) Reason {
	if m.cost != nil {
		if r := m.amdAbsent(a, p); r.Rule != "" {
			return r
		}
	}
	switch a {
	case coll.PAT:
		return m.patOff()
	case coll.NVLS, coll.NVLSTree:
		return m.nvlsGraphOff(a)
	}
	return Reason{}
}

// patOff: tuning.cc:202-208.
func (m *Model) patOff() Reason {
	in, set := &m.In, m.Params.PATEnable
	on := set.Set && set.Value != 2
	if m.tab.PATOff { // any number but 0 switches it on
		set = units.Some(set.Or(0))
		on = false
	}
	switch {
	case in.MinSM < m.tab.PATSM:
		return Reason{Rule: fmt.Sprintf("PAT needs sm_%d and a GPU is sm_%d", m.tab.PATSM, in.MinSM),
			At: rules.AtPATSM}
	case set.Set && set.Value == 0:
		return Reason{Rule: "NCCL_PAT_ENABLE=0", Setting: "NCCL_PAT_ENABLE=1 switches PAT on",
			At: rules.AtPATEnable}
	case on:
		return Reason{}
	case in.NNodes != in.NRanks:
		return Reason{
			Rule: fmt.Sprintf("PAT is for one rank a node and there are %d ranks on %s", in.NRanks,
				plural(in.NNodes, "node")),
			Setting: "NCCL_PAT_ENABLE=1 forces it", At: rules.AtPATNodes,
		}
	case in.NetOffload:
		return Reason{Rule: "PAT cannot use a net plugin's device offload",
			Setting: "NCCL_PAT_ENABLE=1 forces it", At: rules.AtPATOffload}
	}
	return Reason{}
}

// nvlsGraphOff: NVLS needs a graph of enough channels (tuning.cc:288).
func (m *Model) nvlsGraphOff(a coll.Algorithm) Reason {
	g := m.In.graph(a)
	if g.NChannels >= m.tab.NVLSLeast {
		return Reason{}
	}
	if r := m.In.NVLSOff; g.NChannels == 0 && r.Rule != "" {
		return r
	}
	return Reason{
		Rule: fmt.Sprintf("%s needs %d channels and the search found %d", a, m.tab.NVLSLeast, g.NChannels),
		At:   rules.AtNVLSChannels,
	}
}

// noNetGather reports why NVLS or CollNetDirect cannot gather or scatter between
// nodes (tuning.cc:324-343).
func (m *Model) noNetGather(f coll.Func, a coll.Algorithm) Reason {
	c := &m.In.CollNet
	if !c.Enabled {
		return m.collNetOff(a)
	}
	offers, plugin, heads := c.AllGather, rules.AtCollNetGathers, rules.AtGatherHeads
	if f == coll.ReduceScatter {
		offers, plugin, heads = c.ReduceScatter, rules.AtCollNetScatters, rules.AtScatterHeads
	}
	if !offers {
		return Reason{Rule: "the CollNet plugin has no " + f.String(), At: plugin}
	}
	ranks := float64(m.In.MaxLocalRanks)
	if m.tab.CollNetMean {
		ranks = float64(m.In.NRanks) / float64(m.In.NNodes)
	}
	if ranks > float64(c.Heads) {
		return Reason{
			Rule: fmt.Sprintf("needs a NIC for every GPU: %g ranks on a node, %d network heads", ranks,
				c.Heads),
			At: heads,
		}
	}
	return Reason{}
}

// collNetOff words that an algorithm lacks CollNet, and why that is off.
func (m *Model) collNetOff(a coll.Algorithm) Reason {
	what := "it needs CollNet"
	if a == coll.NVLS {
		what = "NVLS between nodes needs CollNet"
	}
	if r := m.In.CollNet.Off; r.Rule != "" {
		return Reason{Rule: what + ", which is off: " + r.Rule, Setting: r.Setting, At: r.At}
	}
	return Reason{
		Rule:    what + ", which is off",
		Setting: "NCCL_COLLNET_ENABLE=1 enables it, and a net plugin with collective support is needed",
		At:      rules.AtCollNetPlugin,
	}
}

// readLists applies NCCL_PROTO and NCCL_ALGO (tuning.cc:408-428).
func (m *Model) readLists() error {
	for f := range m.EnabledAlgos {
		for a := range m.EnabledAlgos[f] {
			m.EnabledAlgos[f][a] = 1
		}
		m.EnabledProtos[f] = [nProtos]int{coll.LL: 1, coll.LL128: 2, coll.Simple: 1}
	}
	if m.tab.ListsOfAll {
		m.readOneList()
		return nil
	}
	if s := m.Params.Proto; s.Set {
		err := applyMask(s.Value, coll.ParseProtocolMask, nProtos, func(f, p, on int) {
			m.EnabledProtos[f][p] = on
		})
		if err != nil {
			return fmt.Errorf("NCCL_PROTO=%w", err)
		}
	}
	if s := m.Params.Algo; s.Set {
		err := applyMask(s.Value, coll.ParseAlgorithmMask, nAlgos, func(f, a, on int) {
			m.EnabledAlgos[f][a] = on
		})
		if err != nil {
			return fmt.Errorf("NCCL_ALGO=%w", err)
		}
	}
	return nil
}

// readOneList applies lists that hold for all collectives. Where CollNet is off
// and no other algorithm is left, Ring and Tree come back (tuning.cc:313 of v2.23.4).
func (m *Model) readOneList() {
	var algo, proto []bool
	if s := m.Params.Algo; s.Set {
		algo = coll.OneAlgorithmList(s.Value)
		if !m.In.CollNet.Enabled && !algo[coll.Ring] && !algo[coll.Tree] && !algo[coll.NVLS] &&
			!algo[coll.NVLSTree] {
			algo[coll.Ring], algo[coll.Tree] = true, true
		}
	}
	if s := m.Params.Proto; s.Set {
		proto = coll.OneProtocolList(s.Value)
	}
	for f := range m.EnabledAlgos {
		for a, on := range algo {
			m.EnabledAlgos[f][a] = number(on)
		}
		for p, on := range proto {
			m.EnabledProtos[f][p] = number(on)
		}
	}
}

func number(on bool) int {
	if on {
		return 1
	}
	return 0
}

// applyMask sets the cells that a list names to 0 or 1. Those it does not
// mention follow whatever default the mask is read over, which keeps them
// apart.
func applyMask(list string, parse func(string, coll.Mask) (coll.Mask, error), n int,
	set func(f, i, on int)) error {
	var yes coll.Mask
	for f := range yes {
		yes[f] = make([]bool, n)
		for i := range yes[f] {
			yes[f][i] = true
		}
	}
	overOff, err := parse(list, coll.Mask{})
	if err != nil {
		return err
	}
	overOn, err := parse(list, yes)
	if err != nil {
		return err
	}
	for f := range overOn {
		for i, on := range overOn[f] {
			switch {
			case on != overOff[f][i]:
			case on:
				set(f, i, 1)
			default:
				set(f, i, 0)
			}
		}
	}
	return nil
}

// enable switches a cell off where user or rules say so and notes every reason
// (tuning.cc:462-497).
func (m *Model) enable(f coll.Func, a coll.Algorithm, p coll.Protocol) {
	if m.absent(f, a, p).Rule != "" {
		m.Bandwidth[f][a][p] = 0
		return
	}
	var why []Reason
	add := func(r Reason) {
		if r.Rule != "" && !slices.Contains(m.off[f][a][p], r) {
			why = append(why, r)
		}
	}
	if m.EnabledAlgos[f][a] == 0 {
		add(Reason{Rule: "NCCL_ALGO=" + m.Params.Algo.Value + " leaves it out",
			Setting: "NCCL_ALGO without that entry", At: rules.AtAlgoList})
	}
	if m.In.NNodes == 1 && a == coll.NVLSTree {
		add(Reason{Rule: "NVLSTree joins nodes and there is one", At: rules.AtNVLSTreeNodes})
	}
	if !m.In.CollNet.Enabled {
		if a == coll.CollNetDirect || a == coll.CollNetChain || a == coll.NVLS && m.In.NNodes > 1 {
			add(m.collNetOff(a))
		}
	}
	if a == coll.CollNetChain && m.In.CollNet.ChainHeadless && m.tab.CollNetChainHeads {
		add(Reason{Rule: "a CollNet chain begins at a rank without a connection to the network",
			At: rules.AtCollNetChainHeads})
	}
	if a == coll.CollNetDirect && !m.In.NVSwitch {
		add(Reason{Rule: "CollNetDirect needs an NVSwitch", At: rules.AtCollNetDirectSwitch})
	}
	switch m.EnabledProtos[f][p] {
	case 0:
		add(Reason{Rule: "NCCL_PROTO=" + m.Params.Proto.Value + " leaves it out",
			Setting: "NCCL_PROTO without that entry", At: rules.AtProtoList})
	case 2:
		for _, r := range m.ll128Unsafe(a) {
			add(r)
		}
	case 1:
		if m.cost != nil && p == coll.LL128 {
			for _, r := range m.amdLL128(a, true) {
				add(r)
			}
		}
	}
	if len(why) > 0 || len(m.off[f][a][p]) > 0 {
		m.Bandwidth[f][a][p] = 0
		m.off[f][a][p] = append(m.off[f][a][p], why...)
	}
}

// ll128Unsafe lists what keeps LL128 off by default: its 128-byte stores must
// stay whole on every link of the route (tuning.cc:480-494).
func (m *Model) ll128Unsafe(a coll.Algorithm) []Reason {
	if m.cost != nil {
		return m.amdLL128(a, false)
	}
	const force = "NCCL_PROTO=LL128 forces it at the risk of corrupt data"
	in, g := &m.In, m.In.graph(a)
	limit, at, set := topo.PathPXB, rules.AtLL128PXB, "LL128 goes as far as PXB between nodes below sm_90"
	if in.MinSM >= 90 {
		if m.Params.LL128C2C.Or(1) != 0 {
			limit, at, set = topo.PathPXN, rules.AtLL128PXN, "LL128 goes as far as PXN between nodes"
		} else {
			set = "NCCL_LL128_C2C=0 keeps LL128 to PXB between nodes"
			if m.tab.LL128AlsoPXN && g.TypeInter == topo.PathPXN {
				limit = topo.PathPXN
			}
		}
	}
	var rs []Reason
	if g.TypeInter > limit {
		rs = append(rs, Reason{Rule: fmt.Sprintf("%s and the %s graph has %s", set, graphName(g),
			g.TypeInter), Setting: force, At: at})
	}
	if g.TypeIntra > topo.PathNVB {
		rs = append(rs, Reason{Rule: fmt.Sprintf("LL128 needs NVLink inside the node and the %s graph has %s",
			graphName(g), g.TypeIntra), Setting: force, At: rules.AtLL128NVLink})
	}
	if in.MinSM != in.MaxSM && (m.tab.LL128MixedSM == 0 || in.MinSM < m.tab.LL128MixedSM) {
		rs = append(rs, Reason{Rule: fmt.Sprintf("LL128 needs equal GPUs and there are sm_%d and sm_%d",
			in.MinSM, in.MaxSM), Setting: force, At: rules.AtLL128EqualSM})
	}
	switch known := m.tab.LL128SMs; {
	case in.MinSM < m.tab.LL128MinSM:
		rs = append(rs, Reason{Rule: fmt.Sprintf("LL128 needs sm_%d and a GPU is sm_%d", m.tab.LL128MinSM,
			in.MinSM), Setting: force, At: rules.AtLL128SM})
	case len(known) > 0 && !slices.Contains(known, in.MinSM):
		rs = append(rs, Reason{Rule: fmt.Sprintf("NCCL %s has LL128 for other GPUs than sm_%d",
			m.Params.Rules.Version(), in.MinSM), Setting: force, At: rules.AtLL128SM})
	}
	return rs
}

// bringRingsBack gives Ring its bandwidth back for a collective of which lists leave
// nothing (graph/tuning.cc:322 of v2.22.3).
func (m *Model) bringRingsBack() {
	for f := range coll.Func(nFuncs) {
		if m.Bandwidth[f] != [nAlgos][nProtos]float32{} {
			continue
		}
		for p := range coll.NumProtocols {
			if bw := m.ringKept(f, p); bw > 0 {
				m.Bandwidth[f][coll.Ring][p], m.off[f][coll.Ring][p] = bw, nil
			}
		}
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func graphName(g *search.Graph) string {
	if g.Name != "" {
		return g.Name
	}
	return "final"
}
