package graphxml_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/refsys"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/search/graphxml"
	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// TestGraphDumps writes the graphs of every reference and compares the text
// with NCCL 2.28.9's NCCL_GRAPH_DUMP_FILE byte for byte (search.cc
// ncclTopoGetXmlFromGraphs), reads it back, and writes it again.
func TestGraphDumps(t *testing.T) {
	refs := golden.Own(t)
	if !testing.Short() {
		refs = golden.All(t)
	}
	same := 0
	for i := range refs {
		r := &refs[i]
		r.Load(t)
		var want string
		var graphs []refsys.Graph
		r.Section(t, "graphXml", &want)
		r.Section(t, "graphs", &graphs)
		sys := refsys.System(t, r)
		var inter struct{ Inter int }
		r.Section(t, "system", &inter)
		sys.Inter = inter.Inter == 1
		got, err := graphxml.Write(sys, refsys.Set(t, graphs))
		if err != nil {
			t.Errorf("%s: %v", r.Name, err)
			continue
		}
		if d := cmp.Diff(want, string(got)); d != "" {
			t.Errorf("%s: %s", r.Name, d)
			continue
		}
		back, err := graphxml.Parse(got, r.Name, sys)
		if err != nil {
			t.Errorf("%s: %v", r.Name, err)
			continue
		}
		var set search.Set
		for _, g := range back {
			set[g.ID] = g
		}
		again, err := graphxml.Write(sys, set)
		if err != nil || string(again) != want {
			t.Errorf("%s: reading and writing changed the file (%v)", r.Name, err)
			continue
		}
		same++
		r.Doc = nil
	}
	t.Logf("graphXml %d/%d", same, len(refs))
}

// smallSystem is a host of two GPUs behind NVLink with one net, as others are
// searched.
func smallSystem(t testing.TB) *topo.System {
	t.Helper()
	data, err := os.ReadFile(golden.Root(t, "testdata", "topos", "h200x4-2.xml"))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := topoxml.Parse(data, "h200x4-2.xml")
	if err != nil {
		t.Fatal(err)
	}
	p := topo.DefaultParams()
	p.NRanks = 4
	h, err := topo.Build(spec, p)
	if err != nil {
		t.Fatal(err)
	}
	return h.Systems[0]
}

const c2cGraph = `<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="24" speedinter="1.2" latencyinter="0" typeintra="C2C" typeinter="PHB" samechannels="1">
    <channel>
      <net dev="0"/>
      <gpu dev="0x1"/>
      <gpu dev="0"/>
      <net dev="0"/>
    </channel>
  </graph>
</graphs>
`

func TestC2CGraphsAreReadAndWritten(t *testing.T) {
	sys := smallSystem(t)
	list, err := graphxml.Parse([]byte(c2cGraph), "c2c.xml", sys)
	if err != nil {
		t.Fatal(err)
	}
	g := list[0]
	if g.TypeIntra != topo.PathC2C || g.Intra[0][0] != 1 || g.BWInter != 1.2 {
		t.Errorf("read %+v", g)
	}
	out, err := graphxml.Write(sys, search.Set{search.RingID: g})
	if err != nil || !strings.HasPrefix(string(out), c2cGraph[:strings.Index(c2cGraph, "</graphs>")]) {
		t.Errorf("wrote %s (%v)", out, err)
	}
}

func TestBadGraphsAreNamedWithTheirPlace(t *testing.T) {
	sys := smallSystem(t)
	for _, c := range []struct{ from, to, want string }{
		{`typeintra="C2C"`, `typeintra="CXL"`,
			`g.xml:2:106: graphs/graph[0]: typeintra="CXL": not a path kind`},
		{`<gpu dev="0x1"/>`, `<gpu dev="0x9"/>`,
			`g.xml:5:12: graphs/graph[0]/channel[0]/gpu[0]: dev="0x9": the topology has no GPU of this device number`},
		{`<gpu dev="0x1"/>`, `<gpu dev="0x0"/>`,
			`g.xml:3:5: graphs/graph[0]/channel[0]: a GPU is named twice`},
		{`      <gpu dev="0x1"/>` + "\n", ``,
			`g.xml:3:5: graphs/graph[0]/channel[0]: 1 GPUs, the topology has 2`},
		{`id="0"`, `id="7"`, `no such graph`},
		{`nchannels="1"`, `nchannels="3"`, `the graph has 1 channels`},
		{`version="1"`, `version="2"`, `only version 1`},
		{`<graphs`, `<chart`, `not well-formed`},
		{`speedintra="24"`, `speedintra="fast"`, `not a speed`},
	} {
		_, err := graphxml.Parse([]byte(strings.Replace(c2cGraph, c.from, c.to, 1)), "g.xml", sys)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s -> %s: want %q, got %v", c.from, c.to, c.want, err)
		}
	}
}

func FuzzGraphXML(f *testing.F) {
	sys := smallSystem(f)
	f.Add([]byte(c2cGraph))
	f.Add([]byte(`<graphs version="1"/>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := graphxml.Parse(data, "fuzz", sys)
		if err != nil {
			return
		}
		var set search.Set
		for _, g := range list {
			set[g.ID] = g
		}
		out, err := graphxml.Write(sys, set)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if _, err := graphxml.Parse(out, "again", sys); err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, out)
		}
	})
}
