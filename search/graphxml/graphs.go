// Package graphxml reads and writes NCCL's graph file (NCCL_GRAPH_FILE,
// NCCL_GRAPH_DUMP_FILE; search.cc:814-958 of v2.28.9) as search.Graphs. It is a
// pure codec: bytes in, values out; errors are topo.Errors with file, line and
// column. It must not know what is decided from graphs.
package graphxml

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/cnum"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/decl"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/units"
)

// shownPaths is how many errors of a file have their whole path: building it for
// each error of a large file is quadratic.
const shownPaths = 10

// Write renders the graphs of one System, in NCCL's order, as
// NCCL_GRAPH_DUMP_FILE holds them (search.cc:891-958). Graphs that were not
// searched (nil) are written without channels.
//
// NCCL 2.28.9 fails to write a graph whose paths are C2C, and its init with it,
// because its table lacks that kind (search.cc:818); here it is written as
// "C2C", and Parse reads it.
func Write(sys *topo.System, set search.Set) ([]byte, error) {
	devOf := map[int]uint64{}
	for _, n := range sys.Of(topo.GPU) {
		devOf[sys.Nodes[n].GPU.Rank] = graphDev(sys, n)
	}
	var b bytes.Buffer
	b.WriteString("<graphs version=\"1\">\n")
	for _, id := range search.OrderOf(sys.Rules) {
		if id == search.CollNetDirectID && sys.Rules.Search.OneCollNetGraph {
			continue
		}
		g := set[id]
		if g == nil {
			g = &search.Graph{ID: id, Pattern: patternOf[id]}
		}
		inFile := id
		if id == search.CollNetDirectID {
			inFile = sys.Rules.Search.CollNetDirectFile
		}
		if err := writeGraph(&b, sys, g, inFile, devOf); err != nil {
			return nil, err
		}
	}
	b.WriteString("</graphs>\n")
	return b.Bytes(), nil
}

// patternOf is what NCCL's init sets before it decides to search
// (init.cc:1015-1058).
var patternOf = [search.NumGraphs]search.Pattern{
	search.RingID: search.RingPattern, search.TreeID: search.BalancedTree,
	search.CollNetChainID: search.TreePattern,
	search.NVLSID:         search.NVLSPattern, search.CollNetDirectID: search.CollNetDirect,
}

// graphDev is a GPU's name in graph files: its device number with its host's
// number in the upper byte (search.cc:876).
func graphDev(sys *topo.System, gpu topo.NodeID) uint64 {
	n := &sys.Nodes[gpu]
	return n.Ident>>56<<56 | uint64(n.GPU.Dev)&(1<<56-1)
}

func writeGraph(b *bytes.Buffer, sys *topo.System, g *search.Graph, id int, devOf map[int]uint64) error {
	fmt.Fprintf(b,
		`  <graph id="%d" pattern="%d" crossnic="%d" nchannels="%d" speedintra="%s" speedinter="%s" latencyinter="%s" typeintra="%s" typeinter="%s" samechannels="%d"`,
		id, g.Pattern, g.CrossNIC, g.NChannels, short(float32(g.BWIntra)), short(float32(g.BWInter)),
		short(g.LatencyInter), g.TypeIntra, g.TypeInter, g.SameChannels)
	if g.NChannels == 0 {
		b.WriteString("/>\n")
		return nil
	}
	b.WriteString(">\n")
	for c := range g.NChannels {
		b.WriteString("    <channel>\n")
		if sys.SearchesNets() {
			fmt.Fprintf(b, "      <net dev=\"%s\"/>\n", altHex(g.Inter[c][0]))
		}
		for _, r := range g.Intra[c] {
			dev, ok := devOf[r]
			if !ok {
				return fmt.Errorf("graph %d channel %d: local rank %d has no GPU in the system", g.ID, c, r)
			}
			rank := ""
			if sys.Rules.Search.GraphRanks {
				rank = fmt.Sprintf(" rank=\"%d\"", r)
			}
			fmt.Fprintf(b, "      <gpu dev=\"%s\"%s/>\n", altHex(dev), rank)
			if g.ID == search.NVLSID {
				break // only the head counts
			}
		}
		if sys.SearchesNets() {
			fmt.Fprintf(b, "      <net dev=\"%s\"/>\n", altHex(g.Inter[c][1]))
		}
		b.WriteString("    </channel>\n")
	}
	b.WriteString("  </graph>\n")
	return nil
}

// short prints as C's %g: six digits, no trailing zeros.
func short(f float32) string { return strconv.FormatFloat(float64(f), 'g', 6, 64) }

// altHex prints as C's %#lx: 0 has no prefix.
func altHex(v uint64) string {
	if v == 0 {
		return "0"
	}
	return "0x" + strconv.FormatUint(v, 16)
}

// Parse reads a graph file (NCCL_GRAPH_FILE) for one System: GPUs go by
// device number there, so the System says which local ranks they are. The error
// is a topo.Errors.
func Parse(data []byte, name string, sys *topo.System) ([]*search.Graph, error) {
	top, errs := topoxml.Tree(data, name)
	if len(errs) > 0 {
		return nil, errs
	}
	p := graphParser{sys: sys, rankOf: map[uint64]int{}}
	for _, n := range sys.Of(topo.GPU) {
		p.rankOf[graphDev(sys, n)] = sys.Nodes[n].GPU.Rank
	}
	if top.Name != "graphs" {
		p.fail(top, nil, "", "the outermost element is not <graphs>",
			"give a file as NCCL_GRAPH_DUMP_FILE writes it")
		return nil, p.errs
	}
	if p.integer(top, nil, "version") != 1 {
		p.fail(top, nil, "version", "only version 1 is known", `write version="1"`)
	}
	var out []*search.Graph
	for _, e := range top.Children {
		if e.Name == "graph" {
			out = append(out, p.graph(e, []*topo.Element{top}))
		}
	}
	return out, p.errs.Or()
}

type graphParser struct {
	sys    *topo.System
	rankOf map[uint64]int
	errs   topo.Errors
}

func (p *graphParser) fail(e *topo.Element, above []*topo.Element, attr, problem, hint string) {
	path := e.Name
	if len(p.errs) < shownPaths {
		path = decl.PathOf(e, above)
	}
	p.errs = append(p.errs, topoxml.ErrorAt(e, path, attr, problem, hint))
}

func (p *graphParser) integer(e *topo.Element, above []*topo.Element, attr string) int {
	v, ok := e.Get(attr)
	if !ok {
		p.fail(e, above, attr, "is missing", "write a number")
		return 0
	}
	n, whole := cnum.Int(v)
	if !whole || n != int64(int32(n)) {
		p.fail(e, above, attr, "not an integer", "write "+topoxml.SuggestInt(v))
	}
	return int(int32(n))
}

func (p *graphParser) speed(e *topo.Element, above []*topo.Element, attr string, need bool) float32 {
	v, ok := e.Get(attr)
	if !ok {
		if need {
			p.fail(e, above, attr, "is missing", "write GB/s, for example 24")
		}
		return 0
	}
	f, err := strconv.ParseFloat(v, 32)
	if err != nil || f < 0 || f != f {
		p.fail(e, above, attr, "not a speed", "write GB/s, for example 24")
		return 0
	}
	return float32(f)
}

// kind reads a path kind by prefix as NCCL does (xml.h:407); what it does not
// know is a fault here, while NCCL would silently take LOC.
func (p *graphParser) kind(e *topo.Element, above []*topo.Element, attr string) topo.PathKind {
	v, _ := e.Get(attr)
	for k := topo.PathLOC; k <= topo.PathSYS; k++ {
		if strings.HasPrefix(v, k.String()) {
			return k
		}
	}
	p.fail(e, above, attr, "not a path kind", "write one of LOC NVL NVB C2C PIX PXB P2C PXN PHB SYS")
	return topo.PathLOC
}

func (p *graphParser) graph(e *topo.Element, above []*topo.Element) *search.Graph {
	g := &search.Graph{
		ID: p.integer(e, above, "id"), Pattern: search.Pattern(p.integer(e, above, "pattern")),
		CrossNIC: p.integer(e, above, "crossnic"), NChannels: p.integer(e, above, "nchannels"),
		BWIntra:      units.GBps(p.speed(e, above, "speedintra", true)),
		BWInter:      units.GBps(p.speed(e, above, "speedinter", true)),
		LatencyInter: p.speed(e, above, "latencyinter", false),
		TypeIntra:    p.kind(e, above, "typeintra"), TypeInter: p.kind(e, above, "typeinter"),
		SameChannels: p.integer(e, above, "samechannels"),
	}
	if g.ID < 0 || g.ID >= search.NumGraphs {
		p.fail(e, above, "id", "no such graph",
			"write 0 ring, 1 tree, 2 collnet chain, 3 nvls or 4 collnet direct")
	} else {
		g.Name = graphNames[g.ID]
		g.CollNet = g.ID == search.CollNetChainID || g.ID == search.CollNetDirectID
	}
	if most := p.sys.Rules.MaxChannels; g.NChannels < 0 || g.NChannels > most {
		p.fail(e, above, "nchannels", "not a number of channels", fmt.Sprintf("write 0 to %d", most))
	}
	inside := append(above[:len(above):len(above)], e)
	for _, c := range e.Children {
		if c.Name == "channel" {
			p.channel(g, c, inside)
		}
	}
	if len(g.Intra) < g.NChannels {
		p.fail(e, above, "nchannels", fmt.Sprintf("the graph has %d channels", len(g.Intra)),
			fmt.Sprintf(`write nchannels="%d"`, len(g.Intra)))
	}
	return g
}

var graphNames = [search.NumGraphs]string{search.RingID: "ring", search.TreeID: "tree",
	search.CollNetChainID: "collnetChain",
	search.NVLSID:         "nvls", search.CollNetDirectID: "collnetDirect"}

func (p *graphParser) channel(g *search.Graph, e *topo.Element, above []*topo.Element) {
	inside := append(above[:len(above):len(above)], e)
	n := len(p.sys.Of(topo.GPU))
	intra := make([]int, 0, n)
	var inter [2]uint64
	nets := 0
	for _, c := range e.Children {
		if c.Name != "net" && c.Name != "gpu" {
			continue
		}
		v, ok := c.Get("dev")
		dev, err := strconv.ParseUint(strings.TrimPrefix(v, "0x"), 16, 64)
		if !ok || err != nil {
			p.fail(c, inside, "dev", "not a hexadecimal number", `write for example dev="0x1"`)
			continue
		}
		if c.Name == "net" {
			if nets == len(inter) {
				p.fail(c, inside, "", "a third <net> in a channel", "write one before and one after the GPUs")
				continue
			}
			inter[nets] = dev
			nets++
			continue
		}
		rank, ok := p.rankOf[dev]
		if !ok {
			p.fail(c, inside, "dev", "the topology has no GPU of this device number",
				"write the dev of a <gpu>")
			continue
		}
		intra = append(intra, rank)
	}
	p.fill(g, e, above, intra, inter, nets)
}

// fill checks a channel's numbers of GPUs and nets and adds it.
func (p *graphParser) fill(g *search.Graph, e *topo.Element, above []*topo.Element, intra []int,
	inter [2]uint64, nets int) {
	n := len(p.sys.Of(topo.GPU))
	switch {
	case g.ID == search.NVLSID && len(intra) >= 1:
		for len(intra) < n {
			intra = append(intra, 0) // as NCCL's zeroed table; only the head counts
		}
	case len(intra) != n:
		p.fail(e, above, "", fmt.Sprintf("%d GPUs, the topology has %d", len(intra), n),
			"name every GPU once")
	}
	for i, r := range intra {
		if g.ID != search.NVLSID && slices.Contains(intra[:i], r) {
			p.fail(e, above, "", "a GPU is named twice, or two GPUs of the topology have the same dev",
				"name every GPU once, and give each a dev of its own")
			break
		}
	}
	if p.sys.Inter && nets != 2 {
		p.fail(e, above, "", fmt.Sprintf("%d nets", nets), "write one <net> before and one after the GPUs")
	}
	g.Intra, g.Inter = append(g.Intra, intra[:min(len(intra), n)]), append(g.Inter, inter)
}
