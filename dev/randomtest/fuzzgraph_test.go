package whole

import (
	"fmt"
	"os"
	"testing"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/search/graphxml"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// FuzzGivenGraphs makes graph files by their structure (NCCL_GRAPH_FILE) and takes
// them through reading, connecting and planning on two hosts. What is read must
// connect or be refused with an error; a plan on it must pass its proof.
func FuzzGivenGraphs(f *testing.F) {
	text, err := os.ReadFile(golden.Root(f, "testdata", "topos", "h200x4-4.xml"))
	if err != nil {
		f.Fatal(err)
	}
	spec, err := topoxml.Parse(text, "h200x4-4.xml")
	if err != nil {
		f.Fatal(err)
	}
	p := topo.DefaultParams()
	var clusters [2]*fabric.Cluster
	for i := range clusters {
		if clusters[i], err = fabric.NewUniform(spec, i+1, p); err != nil {
			f.Fatal(err)
		}
	}
	f.Add([]byte{0, 0, 4, 1, 0, 1, 2, 3, 1, 3, 2, 1, 0})
	f.Add([]byte{1, 1, 4, 1, 0, 1, 2, 3, 0, 1, 0, 1, 2, 3, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		g := generator{script: script[:min(len(script), 300)]}
		cl := clusters[g.next(2)]
		file := g.graphs(cl.Host(0).Systems[0])
		defer func() {
			if r := recover(); r != nil {
				t.Fatalf("%v in\n%s", r, file)
			}
		}()
		c, err := comm.New(cl, comm.Params{Rules: rules.Default(), Access: p.Access,
			Given: func(s *topo.System) ([]*search.Graph, error) {
				return graphxml.Parse([]byte(file), "fuzz", s)
			}})
		if err == nil {
			plans(t, &g, c, file)
		}
	})
}

// graphs writes a graph file: mostly whole permutations of the GPUs.
func (g *generator) graphs(s *topo.System) string {
	g.out.WriteString(`<graphs version="1">`)
	gpus := len(s.Of(topo.GPU))
	for range 1 + g.next(3) {
		n := 1 + g.next(4)
		fmt.Fprintf(&g.out,
			`<graph id="%d" pattern="%d" crossnic="%d" nchannels="%d" speedintra="%d" speedinter="%d" latencyinter="0" typeintra="%s" typeinter="%s" samechannels="%d">`,
			g.next(5), 1+g.next(5), g.next(3), n, 1+g.next(40), 1+g.next(40),
			g.pick("NVL", "PIX", "SYS", "LOC"), g.pick("PIX", "PHB", "SYS", "NVL"), g.next(2))
		for range n {
			g.out.WriteString("<channel>")
			g.net(s)
			first, step := g.next(gpus), 1+2*g.next(2)
			for i := range gpus - g.next(8)/7 {
				fmt.Fprintf(&g.out, `<gpu dev="%d"/>`, (first+i*step)%gpus)
			}
			g.net(s)
			g.out.WriteString("</channel>")
		}
		g.out.WriteString("</graph>")
	}
	g.out.WriteString("</graphs>")
	return g.out.String()
}

// net writes one end of a channel: a net of the system, or sometimes another.
func (g *generator) net(s *topo.System) {
	nets := s.Of(topo.NET)
	if !s.Inter && g.next(8) != 7 {
		return
	}
	dev := uint64(g.next(12))
	if int(dev) < len(nets) {
		dev = s.Nodes[nets[dev]].Ident
	}
	fmt.Fprintf(&g.out, `<net dev="%#x"/>`, dev)
}
