package connect

import (
	"fmt"
	"math"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/search/preset"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// Domain is what NCCL calls a node: the GPUs that see each other in one
// System, with the graphs that were searched there. Equal domains share System
// and Graphs.
type Domain struct {
	System *topo.System
	Graphs search.Set
	// First is added to a local rank (GPUInfo.Rank, Graph.Intra) to get the
	// rank in the communicator.
	First int32
	// Host is the domain's host in the cluster; a multi-host NVLink domain counts
	// as one, and GPUInfo.Host reports which machine of it a GPU is in.
	Host int32
	// Preset is what RCCL knew of it before a search; nil without presets.
	Preset *preset.Result
}

// Input is what Join needs of a communicator.
type Input struct {
	// Domains partition the ranks 0..n-1.
	Domains []Domain
	// Multicast is set where NVLink multicast is there and can be allocated.
	Multicast bool
	// Access is what the Systems' paths were laid with.
	Access topo.Access
}

// Error says that the input does not form a communicator.
type Error struct{ Problem string }

func (e *Error) Error() string { return "connect: " + e.Problem }

func fail(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// NVLSSupported reports whether the ranks of a System search NVLS graphs
// (transport/nvls.cc:155). multicast is Input.Multicast.
func NVLSSupported(sys *topo.System, multicast bool, p Params) bool {
	enable := p.NVLSEnable.Or(2)
	if enable == 0 || len(sys.Of(topo.GPU)) < p.Rules.Connect.NVLSMinGPUs {
		return false
	}
	return enable != 2 || multicast
}

// nvlsByRank sets the number of NVLS channels that every rank starts with,
// which depends on its own GPU (transport/nvls.cc:178): fewer on Blackwell
// where all ranks share one NVLink domain.
func (c *Layout) nvlsByRank(in *Input, p *Params) {
	r := &p.Rules.Connect
	blackwell := r.NVLSSM100OneDomain
	if manyHosts(c.Domains) {
		blackwell = r.NVLSSM100
	}
	tuned := c.tuneNVLS(r)
	lo, hi := p.ctas()
	c.NVLSCount = make([]int, c.NRanks)
	for i := range c.Domains {
		sys := c.Domains[i].System
		for _, id := range sys.Of(topo.GPU) {
			gpu, n := sys.Nodes[id].GPU, r.NVLSSM90
			if gpu.SM >= 100 {
				n = blackwell
			}
			if tuned.Channels > 0 {
				n = tuned.Channels
			}
			if v := whole(p.NVLSNChannels, 0); v > 0 {
				n = v
			}
			c.NVLSCount[c.Domains[i].First+int32(gpu.Rank)] = int(max(lo, min(hi, n)))
		}
	}
	c.NVLSChannels = c.NVLSCount[0]
	def := r.NVLSChunk
	if tuned.Chunk > 0 {
		def = tuned.Chunk
	}
	c.NVLSChunkSize, c.NVLSTreeChunk = units.Bytes(whole(p.NVLSChunkSize, def)), units.Bytes(tuned.TreeChunk)
}

// tuneNVLS asks the rules for the channels and chunks of NVLS.
func (c *Layout) tuneNVLS(r *rules.Connect) rules.NVLSTuned {
	if r.NVLSTune == nil {
		return rules.NVLSTuned{}
	}
	return r.NVLSTune(rules.NVLSShape{MinSM: c.MinSM, Nodes: c.NNodes, PerNode: c.MinLocalRanks,
		NetBW: c.MinNetBW(), TypeInter: rules.Level(c.Final[search.NVLSID].TypeInter)})
}

// MinNetBW is the bandwidth in GB/s of the slowest net that a rank uses, 0 without nets
// (comm->minNetBw).
func (c *Layout) MinNetBW() float32 {
	bw := float32(math.Inf(1))
	for i := range c.Domains {
		sys := c.Domains[i].System
		if i > 0 && sys == c.Domains[i-1].System {
			continue
		}
		for g, id := range sys.Of(topo.GPU) {
			for _, net := range sys.LocalNets(g) {
				bw = min(bw, float32(sys.Path(id, sys.Of(topo.NET)[net]).BW))
			}
		}
	}
	if math.IsInf(float64(bw), 1) {
		return 0
	}
	return bw
}

// manyHosts reports whether ranks exist beyond rank 0's NVLink domain (or host,
// where the domain is no larger).
func manyHosts(ds []Domain) bool {
	for i := range ds {
		if ds[i].Host != ds[0].Host {
			return true
		}
	}
	return false
}
