package decision

import (
	"bytes"
	"encoding/json"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/search/graphxml"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/doc"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// RCCL is what only RCCL decides, under the names that its sources have.
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
}

// rcclOf is that of rank 0; nil of another library.
func rcclOf(c *comm.Comm) *RCCL {
	if c.Params.Rules.Library != rules.RCCL {
		return nil
	}
	sys, p := c.Domains[0].System, c.Preset
	gpu := sys.Nodes[sys.Of(topo.GPU)[0]].GPU
	return &RCCL{Arch: gpu.Arch, CUs: gpu.CU, TopoType: int(p.Kinds), Model: p.Model, ModelName: p.Name,
		Tuning: c.Params.Rules.Tuning.TableOf(gpu.Arch, p.Tuning), LL128: Flag(p.LL128),
		PivotA2A:   Flag(p.PivotA2A),
		PivotRings: p.PivotRings, TreeDefined: Flag(p.TreeDefined), RailTrees: Flag(p.Rail),
		BaseBW:     Num(p.BaseBW),
		PXNDisable: Flag(sys.Access.PXNDisable)}
}

// Graphs is the document of a communicator whose library's rules stop at the channels.
type Graphs struct {
	NNodes      int               `json:"nNodes"`
	GPUsPerNode int               `json:"gpusPerNode"`
	NRanks      int               `json:"nRanks"`
	Env         map[string]string `json:"env"`
	TopoXML     string            `json:"topoXml"`
	System      doc.SystemSection `json:"system"`
	Paths       doc.PathsSection  `json:"paths"`
	Graphs      []Graph           `json:"graphs"`
	GraphXML    string            `json:"graphXml"`
	GraphsFinal []Graph           `json:"graphsFinal"`
	Channels    Channels          `json:"channels"`
	RCCL        *RCCL             `json:"rccl,omitempty"`
	// Missing says what has no rules yet; all that is not here.
	Missing     string `json:"missing"`
	Reference   string `json:"reference"`
	NCCLVersion string `json:"ncclVersion"`
}

// Unfinished is the document of what is built of a communicator, as one line of JSON.
func Unfinished(c *comm.Comm, settings [][2]string, missing error) ([]byte, error) {
	d0, host, r := &c.Domains[0], c.Cluster.Host(0), c.Params.Rules
	graphs, err := graphxml.Write(d0.System, d0.Graphs)
	if err != nil {
		return nil, err
	}
	d := Graphs{NNodes: c.Cluster.NHosts(), GPUsPerNode: host.NRanks(), NRanks: c.NRanks,
		Env:     map[string]string{},
		TopoXML: string(topoxml.Write(host.Dump)), System: doc.System(c.Searched),
		Paths:  doc.Paths(d0.System),
		Graphs: graphsOf(&d0.Graphs, d0.System), GraphXML: string(graphs), RCCL: rcclOf(c),
		Missing:     missing.Error(),
		Reference:   r.Name() + " (" + r.Edition.Date + ", ROCm " + r.Edition.ROCm + ")",
		NCCLVersion: r.Version()}
	d.Channels = channelsOf(c)
	for i := range d.Graphs {
		of := c.Final[d.Graphs[i].ID]
		g := finalOf(of)
		g.TypeIntra, g.TypeInter = d0.System.PathName(of.TypeIntra), d0.System.PathName(of.TypeInter)
		d.GraphsFinal = append(d.GraphsFinal, g)
	}
	for _, row := range settings {
		d.Env[row[0]] = row[1]
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err = e.Encode(d)
	return b.Bytes(), err
}

// rcclGraph gives a graph the form of RCCL's documents.
func rcclGraph(g *Graph, of *search.Graph, sys *topo.System) {
	g.TypeIntra, g.TypeInter = sys.PathName(of.TypeIntra), sys.PathName(of.TypeInter)
	g.NIntraChannels = &of.NIntraChannels
	for i := range *g.Channels {
		if c := &(*g.Channels)[i]; c.Inter == nil {
			c.Inter = []string{}
		}
	}
}
