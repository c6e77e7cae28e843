// Package topo represents what NCCL knows about one host (or one multi-node NVLink domain): nodes, links and
// the paths between them. It is pure: no XML, no operating system.
package topo

import (
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo/internal/view"
	"github.com/simccl/simccl/units"
)

// NodeKind is a vertex kind, numbered as NCCL (topo.h, GPU..NET).
type NodeKind uint8

// Node kinds.
const (
	GPU NodeKind = iota
	PCI
	NVS
	CPU
	NIC
	NET
	GIN // a port for transfers that GPUs start
	DEV // a GPU's device, between it and its links (rules.Topo.DevNodes)
	NumNodeKinds
)

// LinkKind is an edge type with NCCL's numbers (topo.h, LINK_*).
type LinkKind uint8

// Link kinds; 2, 5..8 are path kinds in NCCL and unused here.
const (
	LinkLOC LinkKind = 0
	LinkNVL LinkKind = 1
	LinkC2C LinkKind = 3
	LinkPCI LinkKind = 4
	LinkSYS LinkKind = 9
	LinkNET LinkKind = 10
)

// PathKind is the quality of a route, ordered best to worst (topo.h, PATH_*).
type PathKind uint8

// Path kinds.
const (
	PathLOC PathKind = iota
	PathNVL
	PathNVB
	PathC2C
	PathPIX
	PathPXB
	PathP2C
	PathPXN
	PathPHB
	PathSYS
	PathNET
	PathDIS
)

// NodeID is a dense index into System.Nodes; None where there is no node.
type NodeID int32

// None is the id of no node.
const None NodeID = -1

// LinkID is a dense index into System.Links. Links are directed.
type LinkID int32

// Link is one directed edge. Its reverse, where one exists, is another Link.
type Link struct {
	From, To NodeID
	Kind     LinkKind
	BW       units.GBps
}

// Node is one vertex; exactly one of the kind-specific parts is set for GPU,
// PCI, CPU, NET and DEV nodes.
type Node struct {
	Kind  NodeKind
	Ident uint64 // NCCL's id: systemId<<56 | busId or dev (topo.h NCCL_TOPO_ID)
	// Links leave this node, in NCCL's own order (bandwidth descending, PCI
	// up-link last): the search's breadth-first walk depends on it.
	Links []LinkID
	GPU   *GPUInfo
	PCI   *PCIInfo
	CPU   *CPUInfo
	Net   *NetInfo
	Dev   *DevInfo
}

// GPUInfo is the attributes of a GPU node.
type GPUInfo struct {
	Dev  int  // CUDA device index on its host (attribute dev)
	Rank int  // rank within the System's host or domain, 0-based; comm adds the host's first rank
	SM   int  // compute capability, 90 for sm_90
	GDR  bool // GPUDirect RDMA supported
	Host int  // index of the host in a multi-host NVLink domain, else 0
	// BusID is the PCI address as in the file ("0000:1b:00.0").
	BusID  string
	Device uint64 // as PCIInfo's
	Name   string // marketing name where the source has one
	Arch   string // architecture of AMD's GPUs, "gfx942"; else empty
	CU     int    // compute units of AMD's GPUs; else 0
}

// DevInfo describes a GPU's device. Its PCI, NVLink and C2C links are the device's,
// and one link without a rate worth mentioning joins it with the GPU.
type DevInfo struct {
	Device uint64 // as PCIInfo's
	Dev    int    // as GPUInfo's
	SM     int
	Arch   string // as GPUInfo's
	GPUs   int    // on the device
}

// PCIInfo is the attributes of a PCI switch or bridge.
type PCIInfo struct {
	Device uint64 // vendor, device, subsystem vendor and device, 16 bits each
}

// CPU architectures, vendors and models with NCCL's numbers (graph.h).
type (
	CPUArch   int
	CPUVendor int
	CPUModel  int
)

// CPU architectures and vendors with NCCL's numbers (graph.h:58-66).
const (
	ArchX86   CPUArch = 1
	ArchPower CPUArch = 2
	ArchARM   CPUArch = 3
	ArchMixed CPUArch = 4

	VendorIntel   CPUVendor = 1
	VendorAMD     CPUVendor = 2
	VendorZhaoxin CPUVendor = 3
	VendorMixed   CPUVendor = 4
)

// Kinds are the kinds of machines that RCCL distinguishes, with its numbers (graph/topo.h:101 of
// RCCL 2.30.4).
type Kinds uint8

// Kinds of machines: a chordal ring of eight, two or four sockets with XGMI in groups, GPUDirect RDMA for
// all, sixteen GPUs of one host, XGMI from each GPU to each.
const (
	ChordalRing Kinds = 1
	Rome4P2H    Kinds = 2
	GDRForAll   Kinds = 4
	OneHost16   Kinds = 8
	XGMIForAll  Kinds = 32
)

// CPUInfo is the attributes of a NUMA node.
type CPUInfo struct {
	NUMA     int
	Arch     CPUArch
	Vendor   CPUVendor
	Model    CPUModel
	Affinity string
}

// Plugin is the network plugin of NCCL that reports a net; see view.PluginOf.
type Plugin = view.Plugin

// NCCL's own plugins for InfiniBand and RoCE and for TCP, those that are separate
// libraries, and one that is not known.
const (
	PluginVerbs     = view.Verbs
	PluginSockets   = view.Sockets
	PluginEFA       = view.EFA
	PluginSlingshot = view.Slingshot
	PluginGoogle    = view.Google
	PluginUnknown   = view.Unknown
)

// NetInfo describes one port that NCCL's net plugin reports, possibly virtual
// (several ports fused).
type NetInfo struct {
	Dev         int
	Name        string
	ASIC        uint64 // guid; without one the net's own Ident, or its number (rules.Topo.GUIDFallback)
	Port        int
	Rail, Plane int // as the plugin reports them; -1 where it does not
	BW          units.GBps
	LatencyUs   float32
	GDR         bool
	Coll        bool
	MaxChannels int
	LocalGPU    int      // index among System.Of(GPU), -1 without one
	Fused       []string // names of the physical ports, in order; nil for a physical port
	// PortBW are the speeds of those ports; nil where only their sum is known.
	PortBW []units.GBps
	Plugin Plugin // that reports it
	// Sockets: Plugin is PluginSockets (TCP through host memory).
	Sockets bool
	Vendor  uint16 // of the PCI device that it is on, 0 without one
	// PCIBusID is the bus id of the nearest <pci> around the net, "" without
	// one: rails of a multi-host domain go by it (NCCL_MNNVL_RAIL_PER_HOST).
	PCIBusID string
	Host     int
	// Bus is the number of that bus id where the port's <nic> is in the <pci>; else 0.
	Bus uint64
}

// Path is the best route from a node to a base node (GPU, NET, CPU or NVS).
// The zero Path has no links; Kind is PathDIS where no route exists.
type Path struct {
	Kind  PathKind
	BW    units.GBps
	Links []LinkID
}

// System is an immutable topology with its paths, after NCCL's trimming.
type System struct {
	Rules *rules.Ruleset // those that it was built by
	Nodes []Node
	Links []Link
	// Inter is set when the communicator has more ranks than this System has
	// GPUs (search.cc ncclTopoSearchInit).
	Inter          bool
	MaxBW, TotalBW units.GBps
	NHosts         int
	// NetDevs is NCCL_NETDEVS_POLICY; LocalNet and the search follow it.
	NetDevs NetDevsPolicy
	// Kinds are the properties of the machine that RCCL's rules test.
	Kinds Kinds
	// Access is the access settings with which the paths were computed; the release's defaults are resolved.
	Access Access

	// Verdicts lists the transports that were refused on the paths, and the reasons.
	Verdicts []Verdict

	fastestNet units.GBps             // the fastest port
	noRelay    bool                   // NCCL_NVB_DISABLE
	of         [NumNodeKinds][]NodeID // NCCL's per-kind order
	index      []int32                // position of a node within its kind
	paths      [NumNodeKinds][][]Path // [base kind][base index][node]
}

// Of lists the nodes of a kind in NCCL's order; the slice is not to be changed.
func (s *System) Of(k NodeKind) []NodeID { return s.of[k] }

// Index returns the position of n among the nodes of its kind.
func (s *System) Index(n NodeID) int { return int(s.index[n]) }

// Path returns the route from a node to a base node of kind GPU, NET, CPU or
// NVS. The Path is shared and not to be changed.
func (s *System) Path(from, to NodeID) Path {
	k := s.Nodes[to].Kind
	if s.paths[k] == nil {
		return Path{Kind: PathDIS}
	}
	return s.paths[k][s.index[to]][from]
}

// Assemble builds a System from parts already in NCCL's order: the Links of every node, the nodes of each
// kind in their order in nodes, and path(from, base) for the base kinds GPU, NET, CPU and NVS. It does not
// set Inter, MaxBW, TotalBW and NHosts. Tests and generators use it for Systems without a topology file.
func Assemble(r *rules.Ruleset, nodes []Node, links []Link, path func(from, base NodeID) Path) *System {
	s := &System{Rules: r, Nodes: nodes, Links: links, NHosts: 1, index: make([]int32, len(nodes))}
	for i := range nodes {
		k := nodes[i].Kind
		s.index[i] = int32(len(s.of[k]))
		s.of[k] = append(s.of[k], NodeID(i))
	}
	for _, k := range []NodeKind{GPU, NET, CPU, NVS} {
		s.paths[k] = make([][]Path, len(s.of[k]))
		for i, base := range s.of[k] {
			s.paths[k][i] = make([]Path, len(nodes))
			for n := range nodes {
				s.paths[k][i][n] = path(NodeID(n), base)
			}
		}
	}
	return s
}

// WithSpeeds returns the System with other bandwidths of its links (by LinkID)
// and nets (in the order of Of(NET)). All else, the paths with their bandwidths
// too, is shared with s.
func (s *System) WithSpeeds(links, nets []units.GBps) *System {
	out := *s
	out.Links = append([]Link(nil), s.Links...)
	for i := range out.Links {
		out.Links[i].BW = links[i]
	}
	out.Nodes = append([]Node(nil), s.Nodes...)
	for i, n := range s.of[NET] {
		info := *s.Nodes[n].Net
		info.BW = nets[i]
		out.Nodes[n].Net = &info
	}
	return &out
}
