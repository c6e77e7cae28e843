package show

import (
	"strconv"

	"github.com/simccl/simccl/topo"
)

// The types below are the `system` and `paths` sections of the decision
// document (golden README); bandwidths are GB/s.
type (
	// SystemSection is the section system: nodes and links in NCCL's internal order.
	SystemSection struct {
		MaxBW   float32     `json:"maxBw"`
		TotalBW float32     `json:"totalBw"`
		Inter   int         `json:"inter"`
		GPUs    []GPUEntry  `json:"gpus"`
		PCI     []PCIEntry  `json:"pci"`
		NVS     []NodeEntry `json:"nvs"`
		CPUs    []CPUEntry  `json:"cpus"`
		NICs    []NodeEntry `json:"nics"`
		Nets    []NetEntry  `json:"nets"`
		GINs    []NodeEntry `json:"gins,omitzero"`
		Devs    []DevEntry  `json:"devs,omitzero"`
	}
	// LinkEntry is one link of a node: its type, bandwidth and far end.
	LinkEntry struct {
		Type string  `json:"type"`
		BW   float32 `json:"bw"`
		To   string  `json:"to"`
	}
	// NodeEntry is a node without attributes of its own (NVSwitch, NIC): its id and links.
	NodeEntry struct {
		ID    string      `json:"id"`
		Links []LinkEntry `json:"links"`
	}
	// GPUEntry is a GPU node.
	GPUEntry struct {
		ID    string      `json:"id"`
		Dev   int         `json:"dev"`
		Rank  int         `json:"rank"`
		SM    int         `json:"sm"`
		GDR   int         `json:"gdr"`
		GCN   string      `json:"gcn,omitempty"`
		CU    int         `json:"cu,omitempty"`
		Links []LinkEntry `json:"links"`
	}
	// DevEntry is the device node that releases with separate device nodes put between a GPU and its links.
	DevEntry struct {
		ID     string      `json:"id"`
		Device string      `json:"device"`
		Dev    int         `json:"dev"`
		SM     int         `json:"sm"`
		GPUs   int         `json:"nGpus"`
		Links  []LinkEntry `json:"links"`
	}
	// PCIEntry is a PCI switch with its device id.
	PCIEntry struct {
		ID     string      `json:"id"`
		Device string      `json:"device"`
		Links  []LinkEntry `json:"links"`
	}
	// CPUEntry is a NUMA node with its CPU's architecture, vendor and model.
	CPUEntry struct {
		ID     string      `json:"id"`
		Arch   int         `json:"arch"`
		Vendor int         `json:"vendor"`
		Model  int         `json:"model"`
		Links  []LinkEntry `json:"links"`
	}
	// NetEntry is a net: one port as the net plugin reports it.
	NetEntry struct {
		ID          string      `json:"id"`
		Dev         int         `json:"dev"`
		ASIC        string      `json:"asic"`
		Port        int         `json:"port"`
		BW          float32     `json:"bw"`
		Latency     float32     `json:"latency"`
		GDR         int         `json:"gdr"`
		Coll        int         `json:"coll"`
		MaxChannels int         `json:"maxChannels"`
		LocalGPU    int         `json:"localGpu"`
		BusID       string      `json:"busId,omitempty"`
		Links       []LinkEntry `json:"links"`
	}
	// PathEntry is one path; Via names the nodes after the first.
	PathEntry struct {
		Type string   `json:"type"`
		BW   float32  `json:"bw"`
		Hops int      `json:"hops"`
		Via  []string `json:"via"`
	}
	// PathsSection contains matrices of paths; rows and columns follow the lists of SystemSection.
	PathsSection struct {
		GPUGPU [][]PathEntry `json:"gpuGpu"`
		GPUNet [][]PathEntry `json:"gpuNet"`
		NetGPU [][]PathEntry `json:"netGpu"`
		GPUCPU [][]PathEntry `json:"gpuCpu"`
		GPUNVS [][]PathEntry `json:"gpuNvs"`
		NetCPU [][]PathEntry `json:"netCpu"`
	}
)

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// System renders a System as the section `system`.
func System(s *topo.System) SystemSection {
	d := SystemSection{MaxBW: float32(s.MaxBW), TotalBW: float32(s.TotalBW), Inter: flag(s.Inter),
		GPUs: []GPUEntry{}, PCI: []PCIEntry{}, NVS: []NodeEntry{}, CPUs: []CPUEntry{}, NICs: []NodeEntry{},
		Nets: []NetEntry{}}
	for _, n := range s.Of(topo.GPU) {
		g := s.Nodes[n].GPU
		d.GPUs = append(d.GPUs, GPUEntry{ID: s.Name(n), Dev: g.Dev, Rank: g.Rank, SM: g.SM, GDR: flag(g.GDR),
			GCN: g.Arch, CU: g.CU, Links: linkEntries(s, n)})
	}
	for _, n := range s.Of(topo.PCI) {
		d.PCI = append(d.PCI, PCIEntry{ID: s.Name(n), Device: strconv.FormatUint(s.Nodes[n].PCI.Device, 16),
			Links: linkEntries(s, n)})
	}
	for _, n := range s.Of(topo.NVS) {
		d.NVS = append(d.NVS, NodeEntry{ID: s.Name(n), Links: linkEntries(s, n)})
	}
	for _, n := range s.Of(topo.CPU) {
		c := s.Nodes[n].CPU
		d.CPUs = append(d.CPUs, CPUEntry{ID: s.Name(n), Arch: int(c.Arch), Vendor: int(c.Vendor),
			Model: int(c.Model), Links: linkEntries(s, n)})
	}
	if s.Rules.Topo.GINNodes {
		d.GINs = []NodeEntry{}
	}
	for _, n := range s.Of(topo.GIN) {
		d.GINs = append(d.GINs, NodeEntry{ID: s.Name(n), Links: linkEntries(s, n)})
	}
	for _, n := range s.Of(topo.DEV) {
		e := s.Nodes[n].Dev
		d.Devs = append(d.Devs, DevEntry{ID: s.Name(n), Device: strconv.FormatUint(e.Device, 16), Dev: e.Dev,
			SM: e.SM, GPUs: e.GPUs, Links: linkEntries(s, n)})
	}
	for _, n := range s.Of(topo.NIC) {
		d.NICs = append(d.NICs, NodeEntry{ID: s.Name(n), Links: linkEntries(s, n)})
	}
	for _, n := range s.Of(topo.NET) {
		e := s.Nodes[n].Net
		d.Nets = append(d.Nets, NetEntry{ID: s.Name(n), Dev: e.Dev, ASIC: strconv.FormatUint(e.ASIC, 16),
			Port: e.Port, BW: float32(e.BW),
			Latency: e.LatencyUs, GDR: flag(e.GDR), Coll: flag(e.Coll), MaxChannels: e.MaxChannels,
			LocalGPU: e.LocalGPU, Links: linkEntries(s, n)})
		if len(s.Rules.Topo.XGMI) > 0 {
			d.Nets[len(d.Nets)-1].BusID = strconv.FormatUint(e.Bus, 16)
		}
	}
	return d
}

func linkEntries(s *topo.System, n topo.NodeID) []LinkEntry {
	out := []LinkEntry{}
	for _, l := range s.Nodes[n].Links {
		k := &s.Links[l]
		out = append(out, LinkEntry{Type: s.LinkName(k.Kind), BW: float32(k.BW), To: s.Name(k.To)})
	}
	return out
}

// Paths renders a System's paths as the section `paths`.
func Paths(s *topo.System) PathsSection {
	m := func(from, to topo.NodeKind) [][]PathEntry {
		rows := [][]PathEntry{}
		for _, a := range s.Of(from) {
			row := []PathEntry{}
			for _, b := range s.Of(to) {
				p := s.Path(a, b)
				e := PathEntry{Type: s.PathName(p.Kind), BW: float32(p.BW), Hops: len(p.Links),
					Via: []string{}}
				for _, l := range p.Links {
					e.Via = append(e.Via, s.Name(s.Links[l].To))
				}
				row = append(row, e)
			}
			rows = append(rows, row)
		}
		return rows
	}
	return PathsSection{GPUGPU: m(topo.GPU, topo.GPU), GPUNet: m(topo.GPU, topo.NET),
		NetGPU: m(topo.NET, topo.GPU), GPUCPU: m(topo.GPU, topo.CPU), GPUNVS: m(topo.GPU, topo.NVS),
		NetCPU: m(topo.NET, topo.CPU)}
}
