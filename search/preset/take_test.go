package preset

import (
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
)

// modelled is a machine that is like a model, of one CPU, whose GPUs and nets are the model's in their order.
func modelled(ref *model) (*machine, mapping) {
	m := &machine{model: *ref, cpu: &topo.CPUInfo{}}
	nodes := []topo.Node{{Kind: topo.CPU, CPU: m.cpu}}
	to := mapping{}
	for i := range ref.gpus {
		nodes = append(nodes, topo.Node{Kind: topo.GPU, Ident: uint64(i) << 12,
			GPU: &topo.GPUInfo{Dev: i, Rank: i}})
		m.gpuAt, m.devs, to.gpus = append(m.gpuAt, i), append(m.devs, i), append(to.gpus, i)
	}
	for i := range ref.nics {
		nodes = append(nodes, topo.Node{Kind: topo.NET, Ident: uint64(i), Net: &topo.NetInfo{Dev: i}})
		m.netAt, to.nics = append(m.netAt, i), append(to.nics, i)
	}
	m.sys = topo.Assemble(rules.Default(), nodes, nil, func(from, base topo.NodeID) topo.Path {
		return topo.Path{Kind: topo.PathSYS, BW: 10}
	})
	return m, to
}

// TestRingsOfTheLastHosts: rings of odd hosts go backwards unless that is switched off; of an odd number of
// hosts the last has rings of its own, and so has the one before (graph/rome_models.cc:2640).
func TestRingsOfTheLastHosts(t *testing.T) {
	at := slices.IndexFunc(models(), func(m *model) bool { return m.tail1 != nil && m.tail2 != nil })
	ref := models()[at]
	m, to := modelled(ref)
	for _, c := range []struct {
		index, count int
		forwards     bool
		rings        []string
		reverse      bool
	}{{0, 1, false, ref.rings, false}, {0, 2, false, ref.rings, false}, {1, 2, false, ref.rings, true},
		{1, 2, true, ref.rings, false}, {0, 5, false, ref.rings, false}, {1, 5, false, ref.rings, true},
		{2, 5, false, ref.rings, false}, {3, 5, false, ref.tail2, false}, {4, 5, false, ref.tail1, false},
		{3, 4, false, ref.rings, true}, {1, 3, true, ref.tail2, false}} {
		f := &finder{m: m, h: Host{Index: c.index, Count: c.count, Settings: Settings{Forwards: c.forwards}},
			res: &Result{Model: None}}
		got, want := f.take(search.RingID, at, ref, to, false), f.draw(search.RingID, c.rings, to, c.reverse)
		if !slices.EqualFunc(got.Intra, want.Intra, slices.Equal) || got.NChannels == 0 || f.res.Model != at {
			t.Errorf("host %d of %d, forwards %t: %v, want %v", c.index, c.count, c.forwards, got.Intra,
				want.Intra)
		}
	}
	if rings := [][]string{ref.rings, ref.tail1, ref.tail2}; slices.Equal(rings[0], rings[1]) ||
		slices.Equal(rings[1], rings[2]) || slices.Equal(rings[0], rings[2]) {
		t.Error("the last hosts have the rings of the others: the test shows nothing")
	}
}

// TestTreesByRails: trees are drawn from a model's rails where these are asked for and not switched off, and
// there are some that fit; else from its rings.
func TestTreesByRails(t *testing.T) {
	at := slices.IndexFunc(models(), func(m *model) bool { return m.rails != nil })
	ref := models()[at]
	m, to := modelled(ref)
	for _, c := range []struct {
		name        string
		rails, none bool
		text, want  []string
	}{{"asked for", true, false, ref.rails, ref.rails}, {"not asked for", false, false, ref.rails, ref.rings},
		{"switched off", true, true, ref.rails, ref.rings}, {"none that fits", true, false, []string{"0"},
			ref.rings}} {
		other := *ref
		other.rails = c.text
		f := &finder{m: m, h: Host{Settings: Settings{NoRails: c.none}}, res: &Result{Model: None}}
		got := f.take(search.TreeID, at, &other, to, c.rails)
		want := f.draw(search.TreeID, c.want, to, false)
		if !slices.EqualFunc(got.Intra, want.Intra, slices.Equal) || f.res.Rail != (c.name == "asked for") {
			t.Errorf("%s: %v, rails %t; want %v", c.name, got.Intra, f.res.Rail, want.Intra)
		}
	}
}

// TestNeighbourOfAGPUBesideANet: where a model says so, the GPU whose device pairs with one that a net is
// near (PXB) is near to it, too (graph/rome_models.cc:2472).
func TestNeighbourOfAGPUBesideANet(t *testing.T) {
	nodes := []topo.Node{{Kind: topo.CPU, CPU: &topo.CPUInfo{}}}
	for rank, dev := range []int{3, 0, 2, 1, 4, 5} { // by rank
		nodes = append(nodes, topo.Node{Kind: topo.GPU, Ident: uint64(rank) << 12,
			GPU: &topo.GPUInfo{Dev: dev, Rank: rank}})
	}
	nodes = append(nodes, topo.Node{Kind: topo.NET, Net: &topo.NetInfo{}})
	sys := topo.Assemble(rules.Default(), nodes, nil, func(from, base topo.NodeID) topo.Path {
		kind := topo.PathSYS
		if n := nodes[max(from, base)]; n.Kind == topo.NET {
			if g := nodes[min(from, base)].GPU; g != nil && g.Dev == 2 {
				kind = topo.PathPXB
			} else if g != nil && g.Dev == 4 {
				kind = topo.PathPHB
			}
		}
		return topo.Path{Kind: kind, BW: 10}
	})
	for paired, want := range map[bool]string{false: "3 SYS, 0 SYS, 2 PXB, 1 SYS, 4 PHB, 5 SYS",
		true: "3 PXB, 0 SYS, 2 PXB, 1 SYS, 4 PHB, 5 SYS"} {
		after := (&Result{Kinds: sys.Kinds, Paired: paired}).System(sys)
		var got []string
		for _, g := range after.Of(topo.GPU) {
			got = append(got, string(rune('0'+after.Nodes[g].GPU.Dev))+" "+
				after.Path(g, after.Of(topo.NET)[0]).Kind.String())
		}
		if g := strings.Join(got, ", "); g != want {
			t.Errorf("paired %t: %s, want %s", paired, g, want)
		}
	}
}

// TestModelsSettleTuning: a model's options say the table of tuning, its bandwidth, and how many rings of a
// pivot go both ways; LL128, trees and the pivot's alltoall stay allowed by what was settled before.
func TestModelsSettleTuning(t *testing.T) {
	r := &Result{Tuning: -1}
	f := &finder{res: r}
	f.settle(&model{options: map[string]string{"tuning": "3", "baseBw": "161.4", "pivotA2ANumBiRings": "4",
		"ll128Enabled": "1", "pivotA2AEnabled": "1", "treeDefined": "0"}})
	f.settle(&model{options: map[string]string{"treeDefined": "1"}})
	if r.Tuning != 3 || r.BaseBW != 161.4 || r.PivotRings != 4 || !r.LL128 || !r.PivotA2A || !r.TreeDefined {
		t.Errorf("%+v", r)
	}
}
