package decision

import (
	"fmt"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/search/preset"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/tuning"
)

// RCCL is the decisions that only RCCL makes, under the names of its sources.
type RCCL struct {
	Arch        string `json:"arch"`
	CUs         int    `json:"cuCount"`
	TopoType    int    `json:"topoType"`         // bits, graph/topo.h:101
	Model       int    `json:"romeTopoModelIdx"` // -1 for none
	ModelName   string `json:"romeTopoModel,omitempty"`
	Tuning      int    `json:"tuningIndex"`
	LL128       Flag   `json:"ll128Enabled"`
	PivotA2A    Flag   `json:"pivotA2AEnabled"`
	PivotRings  int    `json:"pivotA2ANumBiRings"`
	TreeDefined Flag   `json:"treeDefined"`
	RailTrees   Flag   `json:"useRailOptimizedTrees"`
	BaseBW      Num    `json:"baseBw"`
	PXNDisable  Flag   `json:"pxnDisable"`
	WarpSize    int    `json:"warpSize"`
	Unroll      int    `json:"unroll"`
	Copies      int    `json:"channelFactor"` // uses of a searched channel
	OneSlice    Flag   `json:"useOneSlice"`
	APU         Flag   `json:"apu"`
	P2PNet      Flag   `json:"p2pNet"` // send/recv of one host over the network
	// NetChunk is the chunk of send/recv between nodes, -1 where none is set for the architecture.
	NetChunk   int64           `json:"p2pNetChunkSize"`
	Ranges     map[string]rows `json:"llRanges"`
	Thresholds map[string]rows `json:"channelThresholds"`
}

// rows is a table of integers.
type rows [][]int64

// RCCLChoice is the additional members of a choice under RCCL's rules.
type RCCLChoice struct {
	Pipeline *Flag  `json:"pipeline,omitempty"` // never nil
	Direct   string `json:"direct,omitempty"`   // the way in place of the algorithm
	DDA      bool   `json:"dda,omitempty"`      // by kernels that read all GPUs' memory, before all else
}

// rcclChoice returns the RCCL members of a choice; nil under NCCL's rules.
func rcclChoice(c *comm.Comm, t *tuning.Choice) *RCCLChoice {
	if c.Params.Rules.Library != rules.RCCL {
		return nil
	}
	pipelined := Flag(t.Pipelined)
	return &RCCLChoice{&pipelined, t.Direct, t.DDA}
}

// rcclOf returns rank 0's decisions that only RCCL makes; nil under NCCL's rules.
func rcclOf(c *comm.Comm) *RCCL {
	if c.Params.Rules.Library != rules.RCCL {
		return nil
	}
	sys, p, r := c.Domains[0].System, c.Preset, c.Params.Rules
	in := c.Model.In.AMD
	out := &RCCL{Arch: in.Arch, CUs: cusOf(c, in.Arch), TopoType: int(p.Kinds), Model: p.Model,
		ModelName: p.Name,
		Tuning:    in.Table, LL128: Flag(p.LL128), PivotA2A: Flag(p.PivotA2A), PivotRings: p.PivotRings,
		TreeDefined: Flag(p.TreeDefined), RailTrees: Flag(p.Rail), BaseBW: Num(p.BaseBW),
		PXNDisable: Flag(sys.Access.PXNDisable), WarpSize: tuning.Lanes, Unroll: r.Plan.UnrollOf(in.Arch,
			c.NNodes),
		Copies: c.Copies(&r.Connect), OneSlice: Flag(c.NNodes == 1 && r.Plan.OneSlice(in.Arch)),
		APU: Flag(c.APU()),
		P2PNet: Flag(r.Connect.P2PNet && sys.Kinds&topo.Rome4P2H != 0 &&
			sys.Kinds&topo.GDRForAll != 0),
		NetChunk: netChunk(c, in.Arch)}
	out.tables(&r.Tuning.Costs[in.Table])
	return out
}

// cusOf returns the number of compute units by architecture, as in the reference documents, which have no
// device.
func cusOf(c *comm.Comm, arch string) int {
	if sys := c.Domains[0].System; c.APU() {
		return sys.Nodes[sys.Of(topo.GPU)[0]].GPU.CU
	}
	return c.Params.Rules.Connect.CUs(arch)
}

// explNote says where the channels of send/recv in the document are not the communicator's.
func explNote(c *comm.Comm) string {
	if c.Params.Rules.Library != rules.RCCL {
		return ""
	}
	all, perPeer := c.PeersOfExpl(&c.Params.Connect)
	if all == c.P2PChannels && perPeer == c.P2PChannelsPerPeer {
		return ""
	}
	return fmt.Sprintf("p2pnChannels %d and p2pnChannelsPerPeer %d are those of RCCL's tools/topo_expl; "+
		"a communicator has %d and %d", all, perPeer, c.P2PChannels, c.P2PChannelsPerPeer)
}

// netChunk returns the chunk size of send/recv between nodes. As in RCCL's sources it is -1 if the
// architecture has no own value and -2 on one node; in releases without a separate value it is the
// communicator's chunk size.
func netChunk(c *comm.Comm, arch string) int64 {
	r := &c.Params.Rules.Connect
	switch n, ok := r.NetChunkOf(arch, c.NRanks); {
	case !r.PeersFit:
		return int64(c.P2PChunkSize)
	case c.NNodes == 1:
		return -2
	case ok:
		return n
	}
	return -1
}

// tables sets the size ranges and thresholds of a cost table, by operation.
func (r *RCCL) tables(t *rules.CostTable) {
	r.Ranges, r.Thresholds = map[string]rows{}, map[string]rows{}
	for _, f := range funcs {
		var ranges rows
		for p := range t.Ranges[f] {
			w := t.Ranges[f][p]
			ranges = append(ranges, []int64{w.From, w.To, w.Factor, w.Grain})
		}
		list := make(rows, 9)
		for i := range list {
			list[i] = []int64{0, 0, 0}
			if ws := t.Channels[f]; i < len(ws) {
				list[i] = []int64{ws[i].From, ws[i].To, int64(ws[i].Channels)}
			}
		}
		r.Ranges[f.String()], r.Thresholds[f.String()] = ranges, list
	}
}

// rcclGraph converts a graph to the form of RCCL's reference documents.
func rcclGraph(g *Graph, of *search.Graph, known *preset.Result) {
	if known != nil {
		g.TreeBase = known.Trees[of.ID]
	}
	g.NIntraChannels = &of.NIntraChannels
	for i := range *g.Channels {
		if c := &(*g.Channels)[i]; c.Inter == nil {
			c.Inter = []string{}
		}
	}
}
