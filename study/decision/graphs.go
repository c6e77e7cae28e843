package decision

import (
	"strconv"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/search/preset"
	"github.com/simccl/simccl/topo"
)

// Graph is one searched graph; Channels is absent in the final ones.
type Graph struct {
	Name         string `json:"name"`
	ID           int    `json:"id"`
	Pattern      int    `json:"pattern"`
	NChannels    int    `json:"nChannels"`
	BWIntra      Num    `json:"bwIntra"`
	BWInter      Num    `json:"bwInter"`
	TypeIntra    string `json:"typeIntra"`
	TypeInter    string `json:"typeInter"`
	SameChannels int    `json:"sameChannels"`
	CrossNIC     int    `json:"crossNic"`
	LatencyInter Num    `json:"latencyInter"`
	NHops        int    `json:"nHops"`
	MinChannels  int    `json:"minChannels"`
	MaxChannels  int    `json:"maxChannels"`
	// NIntraChannels is RCCL's number of channels within the node that name NICs.
	NIntraChannels *int       `json:"nIntraChannels,omitempty"`
	Channels       *[]Channel `json:"channels,omitempty"`
	// TreeBase are the trees that RCCL's model of the machine has ready, of GPUs by device.
	TreeBase []string `json:"treeBase,omitempty"`
}

// Channel is one path through the host: local ranks in order, and the nets by
// which it enters and leaves.
type Channel struct {
	Intra []int    `json:"intra"`
	Inter []string `json:"inter,omitzero"`
}

// Domain is one part of a host whose GPUs cannot reach the other parts'.
type Domain struct {
	Ranks  []int   `json:"ranks"`
	Graphs []Graph `json:"graphs"`
}

// Nets and GPUs have NCCL's names host-id, in hexadecimal.
const localBits = 56

func netName(id uint64) string {
	return "NET/" + strconv.FormatUint(id>>localBits, 16) + "-" + strconv.FormatUint(id&(1<<localBits-1), 16)
}

func finalOf(g *search.Graph, sys *topo.System) Graph {
	return Graph{Name: g.Name, ID: g.ID, Pattern: int(g.Pattern), NChannels: g.NChannels,
		BWIntra: Num(g.BWIntra), BWInter: Num(g.BWInter),
		TypeIntra: sys.PathName(g.TypeIntra), TypeInter: sys.PathName(g.TypeInter),
		SameChannels: g.SameChannels,
		CrossNIC:     g.CrossNIC,
		LatencyInter: Num(g.LatencyInter), NHops: g.NHops, MinChannels: g.MinChannels,
		MaxChannels: g.MaxChannels}
}

func graphOf(g *search.Graph, sys *topo.System, inter bool) Graph {
	out := finalOf(g, sys)
	list := make([]Channel, g.NChannels)
	for c := range list {
		list[c].Intra = g.Intra[c]
		if g.ID == search.NVLSID { // a file may name them all, the head alone counts
			list[c].Intra = g.Intra[c][:1]
		}
		if inter {
			list[c].Inter = []string{netName(g.Inter[c][0]), netName(g.Inter[c][1])}
		}
	}
	out.Channels = &list
	return out
}

// graphsOf lists all graphs in NCCL's order.
func graphsOf(s *search.Set, sys *topo.System, known *preset.Result) []Graph {
	out := make([]Graph, 0, search.NumGraphs)
	for _, id := range search.OrderOf(sys.Rules) {
		g := graphOf(s[id], sys, sys.Inter || sys.Rules.Library == rules.RCCL && len(sys.Of(topo.NET)) > 0)
		if sys.Rules.Library == rules.RCCL {
			rcclGraph(&g, s[id], known)
		}
		out = append(out, g)
	}
	return out
}
