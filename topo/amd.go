package topo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/topo/decl"
)

// Models of AMD's processors with RCCL's numbers (include/graph.h:96 of RCCL 2.30.4).
const (
	ModelZen  CPUModel = 5
	ModelRome CPUModel = 6
)

// amdModel is Rome for Zen 2 to 4, else an older or a newer one (graph/topo.cc:680 of RCCL 2.30.4).
func amdModel(family, model int) CPUModel {
	if family == 143 && model >= 49 || family == 175 {
		return ModelRome
	}
	return ModelZen
}

// amdClasses maps PCI classes to kinds of nodes in RCCL's order (graph/topo.cc:528 of RCCL 2.30.4).
var amdClasses = []pciClass{{decl.PCIBridgeClass, PCI}, {"0x068000", NVS}, {"0x068001", CPU}, {"0x03", GPU},
	{"0x02", NIC}, {"0x120000", GPU}}

func (d *draft) classKind(class string) NodeKind {
	classes := pciClasses
	if d.rules.Topo.Accelerators {
		classes = amdClasses
	}
	for _, c := range classes {
		if strings.HasPrefix(class, c.prefix) {
			return c.kind
		}
	}
	return PCI
}

// gcnNames are architectures by the numbers that old files have (misc/archinfo.cc).
var gcnNames = map[string]string{"906": "gfx906", "908": "gfx908", "910": "gfx90a", "942": "gfx942",
	"950": "gfx950", "1250": "gfx1250"}

// describeAMD sets the attributes of a GPU that RCCL reads in addition to NCCL's: architecture (gcn) and
// compute units.
func (d *draft) describeAMD(g *Element, info *GPUInfo) {
	t := &d.rules.Topo
	if t.FixedSM == 0 {
		return
	}
	info.CU, info.SM = info.SM, t.FixedSM
	info.Arch, _ = g.Get("gcn")
	if name, ok := gcnNames[info.Arch]; ok {
		info.Arch = name
	}
	if !t.KnownArch(info.Arch) {
		d.complain(g, "gcn", fmt.Sprintf("architecture %s: what %s decides for it is not modelled",
			termtext.Quote(info.Arch, 0), d.rules.Name()), "known are "+strings.Join(t.Archs, ", "))
	}
}

// Arch returns the architecture of the System's first GPU, by which RCCL decides for all.
func (s *System) Arch() string {
	if len(s.of[GPU]) == 0 {
		return ""
	}
	return s.Nodes[s.of[GPU][0]].GPU.Arch
}

// For returns the access settings for a communicator of nRanks ranks: while NCCL_PXN_DISABLE is unset, RCCL
// enables PXN from a number of ranks that depends on the architecture (rccl_wrap.cc:614 of RCCL 2.30.4).
func (a Access) For(s *System, nRanks int) Access {
	if n, ok := s.Rules.Topo.PXNFromRanks(s.Arch()); ok && a.PXNAuto {
		a.PXNDisable = nRanks < n
	}
	return a
}

// sameRoot reports whether a GPU and a NIC of a Rome machine hang on one CPU, each over one bridge at
// most, and on one of its root complexes (rules.Topo.GDRByRoot).
func (s *System) sameRoot(gpu, net NodeID) bool {
	c := s.Nodes[s.of[CPU][0]].CPU
	if !s.Rules.Topo.GDRByRoot || c.Arch != ArchX86 || c.Vendor != VendorAMD || c.Model != ModelRome {
		return false
	}
	at := func(n NodeID) NodeID {
		i := slices.IndexFunc(s.of[CPU], func(c NodeID) bool { return len(s.Path(n, c).Links) == 2 })
		if i < 0 {
			return None
		}
		return s.of[CPU][i]
	}
	const root = 0xf0000
	g, n := at(gpu), at(net)
	return g != None && g == n && s.Nodes[gpu].Ident&root == s.Nodes[net].Net.Bus&root
}

// nearByBus makes a GPU and a NIC neighbours if the distance of their bus numbers is one of those of virtual
// machines without visible PCIe switches (rules.Topo.NearBuses).
//
// RCCL also checks that the firmware's name is Hyper-V's. Topology files do not have it, so every Intel
// machine is treated as one.
func (s *System) nearByBus(nRanks int) {
	r, gpus, nets := &s.Rules.Topo, s.of[GPU], s.of[NET]
	cpu := s.Nodes[s.of[CPU][0]].CPU
	alone := len(gpus) == nRanks
	if cpu.Arch != ArchX86 || cpu.Vendor != VendorIntel || !slices.Contains(r.NearArchs, s.Arch()) ||
		alone && (len(gpus) != 8 || len(nets) != 8) {
		return
	}
	for _, far := range r.NearBuses {
		near := func(g, n NodeID) bool {
			a, b := s.Nodes[g].Ident, s.Nodes[n].Net.Bus
			return a-b == far || b-a == far
		}
		lacks := func(g NodeID) bool {
			return !slices.ContainsFunc(nets, func(n NodeID) bool { return near(g, n) })
		}
		if slices.ContainsFunc(gpus, lacks) {
			continue
		}
		for _, g := range gpus {
			for _, n := range nets {
				if near(g, n) {
					s.setKind(g, n, PathPXB)
				}
			}
		}
		return
	}
}

// withoutSlowPorts leaves out the ports of a NIC that are slower than another of it (rules.Topo.FastPorts).
func (s *System) withoutSlowPorts() *System {
	slow := func(n NodeID) bool {
		if s.Nodes[n].Kind != NET {
			return false
		}
		port := s.Nodes[n].Net
		return slices.ContainsFunc(s.of[NET], func(o NodeID) bool {
			other := s.Nodes[o].Net
			return other.ASIC == port.ASIC && other.BW > port.BW
		})
	}
	if !slices.ContainsFunc(s.of[NET], slow) {
		return s
	}
	return s.without(slow)
}

// maxXGMIHops is the largest number of XGMI links on a route between two GPUs (include/graph.h:
// MAX_XGMI_INTER_GPUS).
const maxXGMIHops = 5

// ByXGMI reports whether every GPU reaches every other one in at most `most` XGMI links, through other GPUs
// if necessary (graph/search.cc:1557 of RCCL 2.30.4; rules.Topo.DirectXGMI).
func (s *System) ByXGMI(most int) bool {
	gpus := s.of[GPU]
	for _, from := range gpus {
		reached := []NodeID{from}
		for hops, seen := 0, 0; hops < most; hops++ {
			edge := reached[seen:]
			seen = len(reached)
			for _, a := range edge {
				for _, b := range gpus {
					p := s.Path(a, b)
					if p.Kind == PathNVL && (len(p.Links) == 1 || !s.Rules.Topo.DirectXGMI) &&
						!slices.Contains(reached, b) {
						reached = append(reached, b)
					}
				}
			}
		}
		if len(reached) < len(gpus) {
			return false
		}
	}
	return true
}

// Adjoining reports whether a path leads over one link of XGMI (graph/rome_models.cc:2319 of RCCL 2.30.4).
func (s *System) Adjoining(p Path) bool {
	hops := 1
	if s.Rules.Topo.DevNodes {
		hops = 3
	}
	return p.Kind == PathNVL && len(p.Links) > 0 && len(p.Links) <= hops
}

// SearchesNets reports whether searches look at paths to nets (rules.Topo.InterByNets).
func (s *System) SearchesNets() bool {
	return s.Inter || s.Rules.Topo.InterByNets && len(s.of[NET]) > 0
}

// classify sets s.Kinds, the properties of the machine that RCCL's rules test (graph/paths.cc:1055 of RCCL
// 2.30.4). It fails on a machine without nets if the release needs one.
func (s *System) classify(p *Params) error {
	r := &s.Rules.Topo
	if !r.NetsForP2P {
		return nil
	}
	gpus := s.of[GPU]
	if s.ByXGMI(maxXGMIHops) {
		s.Kinds = XGMIForAll
	}
	if len(s.of[NET]) == 0 && r.NeedsNet {
		return &PathError{Node: s.Name(gpus[0]), At: gpus[0],
			Problem: "the file has no net, and " + s.Rules.Name() +
				" fails on a GPU without one (graph/paths.cc:908)",
			Hint: "add the machine's NICs, or take another release"}
	}
	gdr := true
	for g := range gpus {
		if nets := s.LocalNets(g); len(nets) > 0 {
			gdr, _ = s.gdr(gpus[g], s.of[NET][nets[0]], true, &p.Access)
		}
		if !gdr {
			break
		}
	}
	if gdr && s.Kinds&XGMIForAll == 0 {
		s.Kinds |= GDRForAll
	}
	return nil
}

// WithKinds returns a copy of the System with other Kinds; nodes and paths are shared.
func (s *System) WithKinds(k Kinds) *System {
	out := *s
	out.Kinds = k
	return &out
}

// WithNetKinds returns the System with other kinds of paths from GPUs to nets. All else is shared with s.
func (s *System) WithNetKinds(kind func(gpu, net NodeID) PathKind) *System {
	out := *s
	out.paths[NET] = make([][]Path, len(s.paths[NET]))
	for i, net := range s.of[NET] {
		out.paths[NET][i] = slices.Clone(s.paths[NET][i])
		for _, g := range s.of[GPU] {
			out.paths[NET][i][g].Kind = kind(g, net)
		}
	}
	return &out
}
