package decision

import (
	"bytes"
	"encoding/json"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search/graphxml"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/show"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// Document is everything that NCCL decides. System and Paths describe rank 0's System; Domains is set if NCCL
// splits the host; Selection is absent for one rank, for which NCCL makes no choice.
type Document struct {
	NNodes      int                `json:"nNodes"`
	GPUsPerNode int                `json:"gpusPerNode"`
	NRanks      int                `json:"nRanks"`
	Env         map[string]string  `json:"env"`
	Notes       []string           `json:"notes"`
	TopoXML     string             `json:"topoXml"`
	System      show.SystemSection `json:"system"`
	Paths       show.PathsSection  `json:"paths"`
	Graphs      []Graph            `json:"graphs"`
	Domains     []Domain           `json:"domains,omitempty"`
	GraphXML    string             `json:"graphXml"`
	GraphsFinal []Graph            `json:"graphsFinal"`
	Channels    Channels           `json:"channels"`
	Tuning      Tuning             `json:"tuning"`
	Selection   []Choice           `json:"selection,omitempty"`
	RCCL        *RCCL              `json:"rccl,omitempty"`
	Reference   string             `json:"reference"`
	NCCLVersion string             `json:"ncclVersion"` // whose rules decided: "2.28.9"
}

// Given supplies what the communicator does not contain: counts as the user gave them, settings, notes, and
// files as NCCL dumps them.
type Given struct {
	Nodes       int // hosts (or NVLink domains) as the user counted them
	GPUsPerNode int
	Env         map[string]string // settings in force, for the record
	Notes       []string
	// TopoXML and GraphXML are rank 0's topology and graphs as NCCL dumps them;
	// where they are empty they are rendered from the communicator.
	TopoXML, GraphXML string
}

// New describes a communicator. It returns an error if a choice or its chunking fails.
func New(c *comm.Comm, g Given) (*Document, error) {
	d0 := &c.Domains[0]
	if err := g.render(c); err != nil {
		return nil, err
	}
	d := &Document{NNodes: g.Nodes, GPUsPerNode: g.GPUsPerNode, NRanks: c.NRanks, Env: g.Env, Notes: g.Notes,
		TopoXML: g.TopoXML,
		System:  show.System(c.Searched), Paths: show.Paths(d0.System),
		Graphs:   graphsOf(&d0.Graphs, d0.System, d0.Preset),
		Domains:  domainsOf(c.Layout),
		GraphXML: g.GraphXML, Channels: channelsOf(c), Tuning: tuningOf(c.Model), RCCL: rcclOf(c),
		Reference:   reference(c.Params.Rules),
		NCCLVersion: c.Params.Rules.Version()}
	if d.Env == nil {
		d.Env = map[string]string{}
	}
	if d.Notes == nil {
		d.Notes = []string{}
	}
	for i := range d.Graphs {
		d.GraphsFinal = append(d.GraphsFinal, finalOf(c.Final[d.Graphs[i].ID], d0.System))
	}
	if note := explNote(c); note != "" {
		d.Notes = append(d.Notes, note)
	}
	if c.NRanks > 1 {
		choices, notes, err := selectionOf(c)
		if err != nil {
			return nil, err
		}
		d.Selection, d.Notes = choices, append(d.Notes, notes...)
	}
	return d, nil
}

// reference names the release and, of RCCL, the sources that were read.
func reference(r *rules.Ruleset) string {
	if e := r.Edition; e.Date != "" {
		return r.Name() + " (" + e.Date + ", ROCm " + e.ROCm + ")"
	}
	return r.Name()
}

// render fills the texts that the caller left empty. Bare Systems have no
// topology text.
func (g *Given) render(c *comm.Comm) error {
	if g.GraphXML == "" {
		d0 := &c.Domains[0]
		text, err := graphxml.Write(d0.System, d0.Graphs)
		if err != nil {
			return err
		}
		g.GraphXML = string(text)
	}
	if g.TopoXML == "" && c.Cluster != nil {
		g.TopoXML = string(topoxml.Write(c.Cluster.Host(0).Dump))
	}
	return nil
}

// domainsOf lists the parts of the first host, where there are several.
func domainsOf(c *connect.Layout) []Domain {
	var out []Domain
	for i := range c.Domains {
		d := &c.Domains[i]
		if d.Host != c.Domains[0].Host {
			continue
		}
		var ranks []int
		for _, id := range d.System.Of(topo.GPU) {
			ranks = append(ranks, d.System.Nodes[id].GPU.Rank)
		}
		part := Domain{Ranks: ranks}
		for _, g := range d.Graphs[:2] { // ring and tree
			part.Graphs = append(part.Graphs, graphOf(g, d.System, d.System.Inter))
		}
		out = append(out, part)
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

// Encode returns the document as one line of JSON.
func (d *Document) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(d); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
