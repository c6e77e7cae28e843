package comm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/search/graphxml"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/tuning"
)

// reducing makes a communicator by rules whose network reduces; with given graphs, which
// change makes of those that the search finds.
func reducing(t *testing.T, r *rules.Ruleset, change func(search.Set) *search.Graph,
	members ...member) *comm.Comm {
	t.Helper()
	var list []fabric.Member
	for _, m := range members {
		data, err := os.ReadFile(filepath.Join(golden.Root(t), "testdata", "topos", m.name+".xml"))
		if err != nil {
			t.Fatal(err)
		}
		spec, err := topoxml.Parse(data, m.name+".xml")
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fabric.Member{Spec: spec, Count: m.count})
	}
	tp := topo.ParamsOf(r)
	tp.CollNet = true
	cl, err := fabric.New(list, tp)
	if err != nil {
		t.Fatal(err)
	}
	p := comm.Params{Rules: r, Access: tp.Access}
	p.Connect.CollNet = true
	c, err := comm.New(cl, p)
	if err == nil && change != nil {
		g := change(c.Domains[0].Graphs)
		p.Given = func(*topo.System) ([]*search.Graph, error) { return []*search.Graph{g}, nil }
		c, err = comm.New(cl, p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// turned is a graph of a set whose channels begin at another GPU.
func turned(id int) func(search.Set) *search.Graph {
	return func(set search.Set) *search.Graph {
		g := *set[id]
		g.Intra = nil
		for _, ranks := range set[id].Intra {
			g.Intra = append(g.Intra, append(slices.Clone(ranks[1:]), ranks[0]))
		}
		return &g
	}
}

// reversed is a graph of a set with its channels in the opposite order.
func reversed(id int) func(search.Set) *search.Graph {
	return func(set search.Set) *search.Graph {
		g := *set[id]
		g.Intra, g.Inter = slices.Clone(g.Intra), slices.Clone(g.Inter)
		slices.Reverse(g.Intra)
		slices.Reverse(g.Inter)
		return &g
	}
}

// reduced is a rule where the network reduces, on a machine with given graphs.
type reduced struct {
	of
	given func(search.Set) *search.Graph
}

func reducedOfReleases() []reduced {
	graphs := func(c *comm.Comm) any {
		chain, direct := c.Final[search.CollNetChainID], c.Final[search.CollNetDirectID]
		text, err := graphxml.Write(c.Domains[0].System, c.Domains[0].Graphs)
		if err != nil {
			return err
		}
		var ids []string
		for _, part := range strings.Split(string(text), "<graph id=\"")[1:] {
			ids = append(ids, part[:1])
		}
		return fmt.Sprint(chain.Pattern, direct.Pattern, ids)
	}
	heads := func(c *comm.Comm) any { return c.CollNet.NetHeads[0] }
	off := func(c *comm.Comm) any { return c.CollNet.Off }
	chain := func(c *comm.Comm) any {
		return c.Model.WhyOff(tuning.Op{Func: coll.AllReduce, Count: 1 << 20, Type: coll.Float32},
			coll.CollNetChain, coll.Simple)
	}
	// Seven heads: of 8 and 4 ranks the nodes have 6 on average.
	gather := func(c *comm.Comm) any {
		in := c.Model.In
		in.CollNet.Heads = 7
		m, err := tuning.New(in, tuning.Params{Rules: c.Rules})
		if err != nil {
			return err
		}
		return m.Raw[coll.AllGather][coll.CollNetDirect][coll.Simple] > 0
	}
	most := func(c *comm.Comm) any { return c.Rules.Search.MaxCollNetHeads }
	h100, dgx2, pcie := member{"dgx-h100", 2}, member{"dgx-2", 2}, member{"pcie-a100-4", 2}
	return []reduced{
		{of{"graph of CollNetDirect", []member{h100}, graphs, "2.21.5", "2.22.3", "3 3 [0 1 2 3]",
			"3 6 [0 1 2 2 3]"}, nil},
		{of{"CollNetDirect in graph files", []member{h100}, graphs, "2.22.3", "2.23.4", "3 6 [0 1 2 2 3]",
			"3 6 [0 1 4 2 3]"}, nil},
		{of{"most ranks of a node with CollNet", []member{dgx2}, off, "2.22.3", "2.23.4",
			"NCCL 2.22.3 has it for 8 ranks a node and there are 16", ""}, nil},
		{of{"most CollNetDirect heads", []member{h100}, most, "2.24.3", "2.25.1", "32", "8"}, nil},
		{of{"heads that gathers over CollNet need", []member{{"dgx-h100", 1}, {"gh200-4-alps", 1}}, gather,
			"2.26.6", "2.27.3", "true", "false"}, nil},
		{of{"heads of the network that reduces", []member{h100}, heads, "2.27.7", "2.28.3",
			"[0 1 2 3 4 5 6 7]", "[7 6 5 4 3 2 1 0]"}, reversed(search.NVLSID)},
		{of{"most ranks of a node with CollNetChain", []member{dgx2}, chain, "2.27.7", "2.28.3", "[]",
			"[CollNet is for 8 ranks a node and there are 16]"}, nil},
		{of{"CollNetChain by the network's heads", []member{pcie}, chain, "2.30.3", "2.30.7", "[]",
			"[a CollNet chain begins at a rank without a connection to the network]"},
			turned(search.CollNetChainID)},
	}
}

// TestCollNetOfReleases pins what releases have otherwise where the network reduces;
// docs/VERSIONS.md has the source of each.
func TestCollNetOfReleases(t *testing.T) {
	for _, x := range reducedOfReleases() {
		var got [2]string
		for i, release := range []string{x.before, x.from} {
			r, err := rules.For(release)
			if err != nil {
				t.Fatal(err)
			}
			got[i] = fmt.Sprint(x.is(reducing(t, r, x.given, x.on...)))
		}
		if got != [2]string{x.was, x.to} {
			t.Errorf("%s: NCCL %s %q, %s %q; want %q and %q", x.name, x.before, got[0], x.from, got[1], x.was,
				x.to)
		}
	}
}

// TestCollNetHeadsAreBounded: CollNetDirect has at most as many channels as the rules say.
func TestCollNetHeadsAreBounded(t *testing.T) {
	r := rules.Default()
	r.Search.MaxCollNetHeads = 4
	if n := reducing(t, r, nil, member{"dgx-h100", 2}).Final[search.CollNetDirectID].NChannels; n != 4 {
		t.Errorf("%d channels, want 4", n)
	}
}

// TestCollNetPlansOfReleases proves the plans of each release where the network reduces.
func TestCollNetPlansOfReleases(t *testing.T) {
	for _, release := range rules.Known() {
		r, err := rules.For(release.String())
		if err != nil {
			t.Fatal(err)
		}
		c := reducing(t, r, nil, member{"dgx-h100", 3})
		plans := 0
		for _, f := range []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter} {
			for _, a := range []coll.Algorithm{coll.CollNetDirect, coll.CollNetChain, coll.NVLS} {
				op := tuning.Op{Func: f, Count: 100003, Type: coll.Float32}
				if c.Model.Force(op, a, coll.Simple).Times[a][coll.Simple] == tuning.Off {
					continue
				}
				pl, _, err := c.PlanAs(comm.Op{Func: f, Count: 100003, Type: coll.Float32}, a, coll.Simple)
				if err == nil {
					err = check.Plan(pl)
				}
				if err != nil {
					t.Errorf("%s: %v with %v: %v", release, f, a, err)
				}
				plans++
			}
		}
		if plans < 5 {
			t.Errorf("%s: %d plans", release, plans)
		}
	}
}

// TestCollNetIsUnverified: where the network reduces, what is printed says that nothing
// confirms it.
func TestCollNetIsUnverified(t *testing.T) {
	if c := reducing(t, rules.Default(), nil, member{"dgx-h100", 2}); c.Unverified() == "" {
		t.Error("no word of CollNet")
	}
	c, err := ruled(t, rules.Default(), nil, member{"dgx-h100", 2})
	if err != nil || c.Unverified() != "" {
		t.Errorf("%q, %v", c.Unverified(), err)
	}
}
