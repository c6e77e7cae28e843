package comm_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
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
	"github.com/simccl/simccl/units"
)

type member struct {
	name  string
	count int
}

func make1(t testing.TB, p comm.Params, members ...member) *comm.Comm {
	t.Helper()
	p.Rules = rules.Default()
	var list []fabric.Member
	for _, m := range members {
		path := filepath.Join(golden.Root(t), "testdata", "topos", m.name+".xml")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := topoxml.Parse(data, m.name+".xml")
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fabric.Member{Spec: spec, Count: m.count})
	}
	tp := topo.DefaultParams()
	tp.CollNet = p.Connect.CollNet
	cl, err := fabric.New(list, tp)
	if err != nil {
		t.Fatal(err)
	}
	p.Access = tp.Access
	c, err := comm.New(cl, p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestDomainBesideHostsWithoutFabric: NVL72 trays in a job with a DGX decide as
// if each tray were a node of its own (mnnvl.cc:27).
func TestDomainBesideHostsWithoutFabric(t *testing.T) {
	mixed := make1(t, comm.Params{}, member{"gb200-nvl72-2tray", 1}, member{"dgx-h100", 1})
	trays := make1(t, comm.Params{}, member{"gb200-nvl72-tray", 2}, member{"dgx-h100", 1})
	if mixed.NNodes != 3 || !slices.Equal(mixed.NodeOf, trays.NodeOf) {
		t.Fatalf("nodes of the ranks %v, want %v", mixed.NodeOf, trays.NodeOf)
	}
	if !reflect.DeepEqual(mixed.Channels, trays.Channels) ||
		mixed.P2PChannelsPerPeer != trays.P2PChannelsPerPeer {
		t.Errorf("channels %+v\nof trays as nodes %+v", mixed.Channels, trays.Channels)
	}
	if mixed.Model.Latency != trays.Model.Latency || mixed.Model.Bandwidth != trays.Model.Bandwidth {
		t.Error("the cost table is not that of trays as nodes")
	}
}

// TestUnequalNodes: ranks of different machines agree on what the weakest can
// do (init.cc:1170).
func TestUnequalNodes(t *testing.T) {
	c := make1(t, comm.Params{}, member{"dgx-h100", 2}, member{"dgx-a100", 1}, member{"pcie-a100-4", 1})
	if c.NRanks != 28 || c.NNodes != 4 || c.MinSM != 80 || c.MaxSM != 90 || c.MinLocalRanks != 4 ||
		c.MaxLocalRanks != 8 {
		t.Errorf("%d ranks on %d nodes, sm %d to %d, %d to %d ranks a node", c.NRanks, c.NNodes, c.MinSM,
			c.MaxSM, c.MinLocalRanks, c.MaxLocalRanks)
	}
	if c.CPUVendor != topo.VendorMixed {
		t.Errorf("Intel and AMD make vendor %d", c.CPUVendor)
	}
	if c.Multicast || c.NVLSSupport {
		t.Error("auto took NVLink multicast to be on every node")
	}
	for _, id := range []int{search.RingID, search.TreeID} {
		weakest := *c.Domains[0].Graphs[id]
		for _, d := range c.Domains[1:] {
			g := d.Graphs[id]
			weakest.BWIntra, weakest.BWInter = min(weakest.BWIntra, g.BWIntra),
				min(weakest.BWInter, g.BWInter)
			weakest.TypeIntra, weakest.TypeInter = max(weakest.TypeIntra, g.TypeIntra),
				max(weakest.TypeInter, g.TypeInter)
			weakest.NChannels = min(weakest.NChannels, g.NChannels)
		}
		f := c.Final[id]
		if f.BWIntra != weakest.BWIntra || f.BWInter != weakest.BWInter || f.TypeIntra != weakest.TypeIntra ||
			f.TypeInter != weakest.TypeInter {
			t.Errorf("graph %d: agreed on %g/%g %v/%v, the weakest of each is %g/%g %v/%v", id, f.BWIntra,
				f.BWInter, f.TypeIntra, f.TypeInter,
				weakest.BWIntra, weakest.BWInter, weakest.TypeIntra, weakest.TypeInter)
		}
		if f.NChannels > weakest.NChannels {
			t.Errorf("graph %d: %d channels, one node has only %d", id, f.NChannels, weakest.NChannels)
		}
	}
	p, choice, err := c.Plan(comm.Op{Func: coll.AllReduce, Count: 1 << 20, Type: coll.Float32,
		RedOp: coll.Sum})
	if err != nil {
		t.Fatal(err)
	}
	if err := check.Plan(p); err != nil {
		t.Errorf("%v/%v over unequal nodes: %v", choice.Algo, choice.Proto, err)
	}
}

// TestEqualNodesShareGraphs: a System is searched once however many nodes have it.
func TestEqualNodesShareGraphs(t *testing.T) {
	c := make1(t, comm.Params{}, member{"dgx-h100", 64})
	for n := range c.Domains {
		if c.Domains[n].Graphs != c.Domains[0].Graphs {
			t.Fatalf("node %d was searched again", n)
		}
	}
}

// TestMulticastAuto is on only where every GPU is sm_90 behind an NVSwitch.
func TestMulticastAuto(t *testing.T) {
	for name, want := range map[string]bool{"dgx-h100": true, "dgx-b200": true, "dgx-a100": false,
		"gh200-4-alps": false, "pcie-l40s-8": false} {
		if c := make1(t, comm.Params{}, member{name, 2}); c.Multicast != want {
			t.Errorf("%s: multicast %v, want %v", name, c.Multicast, want)
		}
	}
}

// TestGivenGraphs replaces the search by a file's graphs, for every System by
// its own GPUs.
func TestGivenGraphs(t *testing.T) {
	text := []byte(`<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="10" speedinter="10" latencyinter="0" typeintra="NVL" typeinter="PIX" samechannels="1">
    <channel>
      <net dev="0"/>
      <gpu dev="0"/>
      <gpu dev="2"/>
      <gpu dev="1"/>
      <gpu dev="3"/>
      <gpu dev="4"/>
      <gpu dev="5"/>
      <gpu dev="6"/>
      <gpu dev="7"/>
      <net dev="0"/>
    </channel>
  </graph>
</graphs>
`)
	p := comm.Params{Given: func(sys *topo.System) ([]*search.Graph, error) {
		return graphxml.Parse(text, "graphs.xml", sys)
	}}
	c := make1(t, p, member{"dgx-h100", 1}, member{"dgx-a100", 1})
	if c.NChannels != 2 {
		t.Fatalf("%d channels, want the given one doubled", c.NChannels)
	}
	for i, want := range []int32{0, 2, 1, 3, 4, 5, 6, 7, 8, 10, 9, 11, 12, 13, 14, 15} {
		if got := c.Channels[0].Order[i]; got != want {
			t.Errorf("place %d of the ring: rank %d, want %d", i, got, want)
		}
	}
	bad := comm.Params{Given: func(*topo.System) ([]*search.Graph, error) {
		return nil, errors.New("no such file")
	}}
	if _, err := comm.New(c.Cluster, bad); err == nil {
		t.Error("a graph file that cannot be read was passed over")
	}
}

// TestRequest leaves choices out where NCCL makes none, and refuses what a
// list forbids.
func TestRequest(t *testing.T) {
	one := make1(t, comm.Params{}, member{"gh200", 1})
	for _, o := range []comm.Op{{Func: coll.AllReduce, Count: 8}, {Func: coll.AllToAll, Count: 8}} {
		if _, choice, err := one.Request(o); err != nil || choice.MaxChannels != 0 {
			t.Errorf("one rank chose %+v (%v)", choice, err)
		}
	}
	tree := make1(t, comm.Params{Tuning: tuning.Params{Algo: units.Some("Tree")}}, member{"dgx-h100", 2})
	var no *tuning.NoChoiceError
	if _, _, err := tree.Request(comm.Op{Func: coll.Broadcast, Count: 8, Type: coll.Float32}); !errors.As(err,
		&no) {
		t.Errorf("broadcast by tree: %v", err)
	}
	r, _, err := tree.Request(comm.Op{Func: coll.AllReduce, Count: 8, Type: coll.Float32})
	if err != nil || r.Algo != coll.Tree {
		t.Errorf("all_reduce took %v (%v)", r.Algo, err)
	}
}

// TestCollNetOnMachines proves the plans of in-network reduction on the chains,
// heads and NICs that machines really have, wherever the model allows them.
func TestCollNetOnMachines(t *testing.T) {
	for _, tc := range []struct {
		name string
		want int // plans
	}{{"dgx-h100", 7}, {"dgx-a100", 4}, {"azure-nd96asr-v4", 4}, {"gb200-nvl72-tray", 7}, {"pcie-a100-4", 1},
		{"gh200-4-alps", 1}} {
		var p comm.Params
		p.Connect.CollNet = true
		c := make1(t, p, member{tc.name, 3})
		plans := 0
		for _, f := range []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter} {
			for _, a := range []coll.Algorithm{coll.CollNetDirect, coll.CollNetChain, coll.NVLS} {
				if c.Model.Bandwidth[f][a][coll.Simple] == 0 {
					continue
				}
				pl, _, err := c.PlanAs(comm.Op{Func: f, Count: 100003, Type: coll.Float32}, a, coll.Simple)
				if err == nil {
					err = check.Plan(pl)
				}
				if err != nil {
					t.Errorf("%s: %v with %v: %v", tc.name, f, a, err)
				}
				plans++
			}
		}
		if plans != tc.want {
			t.Errorf("%s: %d plans, want %d", tc.name, plans, tc.want)
		}
	}
}
