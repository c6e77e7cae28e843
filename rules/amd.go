package rules

import (
	"strings"

	"github.com/simccl/simccl/units"
)

// Library is whose releases a rule set is of. RCCL takes the number of the NCCL that it was merged
// with, and keeps changing under it.
type Library uint8

// Libraries.
const (
	NCCL Library = iota
	RCCL
)

// String is the library's name.
func (l Library) String() string {
	if l == RCCL {
		return "RCCL"
	}
	return "NCCL"
}

// prefix precedes the number of a release in the text that For reads.
func (l Library) prefix() string {
	if l == RCCL {
		return "rccl-"
	}
	return ""
}

// Edition names a release of RCCL beside its number.
type Edition struct {
	ROCm string // "7.14": the release of ROCm that brings it; empty for NCCL
	Date string // "2026-07-13", of the sources that were read
}

// ArchRate is a rate in GB/s for architectures of GPUs that begin with Arch ("gfx95").
type ArchRate struct {
	Arch string
	BW   units.GBps
}

// ArchCount is a number for architectures of GPUs that begin with Arch.
type ArchCount struct {
	Arch string
	N    int
}

// ofArch is the number of the first row for an architecture, and whether there is one.
func ofArch(rows []ArchCount, arch string) (int, bool) {
	for _, r := range rows {
		if strings.HasPrefix(arch, r.Arch) {
			return r.N, true
		}
	}
	return 0, false
}

// AMDTopo are the rules of building a topology that only RCCL has; the zero value is NCCL's. Files
// are below src/ of RCCL 2.30.4.
type AMDTopo struct {
	// XGMI: GPUs are joined by <xgmi> in place of <nvlink>, at so many GB/s a link. Files have version 2
	// then, and GPUs gcn, arch and, as sm, their compute units (graph/xml.h:49, topo.h:303).
	XGMI []ArchRate
	// Archs are the architectures whose rules are here.
	Archs []string
	// FixedSM is the compute capability that every GPU counts as (graph/topo.cc:485).
	FixedSM int
	// LinkName is the name of links and paths over them, in place of NVL (graph/topo.cc:33).
	LinkName string
	// Accelerators: GPUs may have the PCI class 0x120000; 0x080100 is no switch (graph/topo.cc:528).
	Accelerators bool
	// AMDModels: processors of AMD have a model, Rome or an older one (graph/topo.cc:680).
	AMDModels bool

	// EndGPUs: no path goes on behind a GPU, and no GPU is a relay; more hops of NVLink are NVLink
	// (graph/paths.cc:107, 340).
	EndGPUs bool
	// P2PLevelFirm: P2PLevel holds over NCCL_P2P_LEVEL (graph/paths.cc:361).
	P2PLevelFirm bool
	// GDRByRoot: on Rome GPUDirect RDMA goes to PHB where GPU and NIC hang on one CPU and their bus
	// numbers have the same upper digit (graph/paths.cc:514). GDRReads: reads need no NVLink.
	GDRByRoot, GDRReads bool
	// NetIntraOff and PXNOff are the defaults of NCCL_NET_DISABLE_INTRA and NCCL_PXN_DISABLE
	// (graph/paths.cc:617, 694). PXNRanks are the fewest ranks from which PXN is on by default all the
	// same (rccl_wrap.cc:628).
	NetIntraOff, PXNOff bool
	PXNRanks            []ArchCount
	// NearBuses: on Intel machines with GPUs of NearArchs, a net whose bus number is so far from the
	// GPU's is PXB for it: the first distance that each GPU has (graph/paths.cc:747, 885).
	NearBuses []uint64
	NearArchs []string
	// FastPorts: of the ports of one NIC only the fastest stay (graph/paths.cc:1033).
	FastPorts bool
	// NetsForP2P: nets stay where all GPUs have GPUDirect RDMA and XGMI does not join all
	// (graph/paths.cc:1077). NeedsNet: a machine without any fails.
	NetsForP2P, NeedsNet bool
	// AsFile: ranks of a host and nets are numbered as the file says, as tools/topo_expl takes it. NCCL's
	// files are renumbered by device and by the plugin in use.
	AsFile bool
	// InterByNets: a host with nets counts as one of several in searches (graph/search.cc:966 of 2.28.3).
	InterByNets bool
	// DirectXGMI: only one link from GPU to GPU counts as XGMI between them, else any path
	// (graph/search.cc:1557).
	DirectXGMI bool
}

// AMDSearch are the rules of searching graphs that only RCCL has; the zero value is NCCL's.
type AMDSearch struct {
	// Presets is how many of RCCL's models of machines the release has; 0 for none (search/preset).
	Presets int
	// PresetsEven: they hold only where all hosts have as many ranks.
	PresetsEven bool
	// RailsKeepPaths: a model whose trees go by rails leaves the paths to nets as they are.
	RailsKeepPaths bool
	// MoreXGMI: of two equal graphs the one with more steps over XGMI is better (graph/search.cc:470 of RCCL
	// 2.30.4).
	MoreXGMI bool
	// NetsToStart: without nets a search begins at GPUs between nodes, too (graph/search.cc:833 of RCCL
	// 2.30.4).
	NetsToStart bool
	// RomeRings bounds the rings of one Rome node alone; 0 for no bound (graph/search.cc:1183 of RCCL
	// 2.30.4).
	RomeRings int
	// RingAndTreeOnly: there are no other graphs.
	RingAndTreeOnly bool
}

// XGMIRate is the rate of one XGMI link of an architecture; the last row holds for all others.
func (t *AMDTopo) XGMIRate(arch string) units.GBps {
	for _, r := range t.XGMI {
		if strings.HasPrefix(arch, r.Arch) {
			return r.BW
		}
	}
	return 0
}

// PXNFromRanks is the least number of ranks from which PXN is on where NCCL_PXN_DISABLE is unset, and
// whether the architecture has one.
func (t *AMDTopo) PXNFromRanks(arch string) (int, bool) { return ofArch(t.PXNRanks, arch) }

// KnownArch reports whether the rules cover an architecture.
func (t *AMDTopo) KnownArch(arch string) bool {
	for _, a := range t.Archs {
		if arch == a {
			return true
		}
	}
	return false
}

// PresetPlace numbers the places among hosts at which a machine's presets differ: rings of odd hosts go
// backwards, and the last two of an odd number have their own (graph/rome_models.cc:2640).
func (s *Search) PresetPlace(index, count int) int {
	switch {
	case s.Presets == 0:
		return 0
	case count%2 == 1 && index >= count-2 && count > 1:
		return 2 + count - index
	}
	return index % 2
}

// TableOf is the index of the tables for an architecture and what a model says, -1 for nothing
// (graph/tuning.cc:1155, 1185). ainic: the NICs are AMD's.
func (t *Tuning) TableOf(arch string, model int, ainic bool) int {
	if n, ok := ofArch(t.TablesAINIC, arch); ok && ainic {
		return n
	}
	if n, ok := ofArch(t.TablesFirm, arch); ok {
		return n
	}
	if n, ok := ofArch(t.Tables, arch); ok && model < 0 {
		return n
	}
	return model
}
