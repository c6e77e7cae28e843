package comm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/search/graphxml"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// TestPlansOfReleases: the plan that each release's rules lead to is right, of
// collectives and of sends and receives, on equal and unequal nodes.
func TestPlansOfReleases(t *testing.T) {
	machines := [][]member{{{"dgx-h100", 1}}, {{"dgx-h100", 2}}, {{"gh200-4-alps", 2}},
		{{"dgx-a100", 1}, {"pcie-a100-4", 1}}, {{"gh200", 3}}}
	if testing.Short() {
		machines = machines[2:4]
	}
	ops := []comm.Op{
		{Func: coll.AllReduce, Count: 5, Type: coll.Float32}, {Func: coll.AllReduce, Count: 70001,
			Type: coll.Float16},
		{Func: coll.AllGather, Count: 4099, Type: coll.Int8}, {Func: coll.ReduceScatter, Count: 3000,
			Type: coll.Float32},
		{Func: coll.Broadcast, Count: 100003, Type: coll.Int8, Root: 1}, {Func: coll.Reduce, Count: 20000,
			Type: coll.Float64},
		{Func: coll.AllToAll, Count: 3000, Type: coll.Float32}, {Func: coll.SendRecv, Count: 1 << 17,
			Type: coll.Float32}, {Func: coll.Gather, Count: 5, Type: coll.Int8},
	}
	for _, release := range rules.Known() {
		for _, on := range machines {
			r, err := rules.For(release.String())
			if err != nil {
				t.Fatal(err)
			}
			c, err := ruled(t, r, nil, on...)
			if err != nil {
				t.Fatalf("%s on %v: %v", release, on, err)
			}
			for _, op := range ops {
				p, choice, err := c.Plan(op)
				if err != nil {
					t.Fatalf("%s on %v, %+v: %v", release, on, op, err)
				}
				if err := check.Plan(p); err != nil {
					t.Errorf("%s on %v, %v of %d (%v %v): %v", release, on, op.Func, op.Count, choice.Algo,
						choice.Proto, err)
				}
			}
		}
	}
}

// of is what releases decide in one respect: the last release that says otherwise, and
// the first that says so.
type of struct {
	name         string
	on           []member
	is           func(*comm.Comm) any
	before, from string // releases
	was, to      string
}

// TestRulesOfReleases pins rule by rule where it changes; docs/VERSIONS.md has the
// source of each.
func TestRulesOfReleases(t *testing.T) {
	for _, x := range slices.Concat(layoutsOfReleases(), formsOfReleases(), choicesOfReleases()) {
		var got [2]string
		for i, release := range []string{x.before, x.from} {
			r, err := rules.For(release)
			if err != nil {
				t.Fatal(err)
			}
			c, err := ruled(t, r, nil, x.on...)
			if err != nil {
				t.Fatalf("%s: NCCL %s: %v", x.name, release, err)
			}
			got[i] = fmt.Sprint(x.is(c))
		}
		if got != [2]string{x.was, x.to} {
			t.Errorf("%s: NCCL %s %q, %s %q; want %q and %q", x.name, x.before, got[0], x.from, got[1], x.was,
				x.to)
		}
	}
}

func layoutsOfReleases() []of {
	h100, a100, b200, gh, alps := member{"dgx-h100", 2}, member{"dgx-a100", 2}, member{"dgx-b200", 2},
		member{"gh200", 2}, member{"gh200-4-alps", 2}
	nvlink := func(c *comm.Comm) any {
		s := c.Domains[0].System
		return s.Path(s.Of(topo.GPU)[0], s.Of(topo.GPU)[1]).BW
	}
	speeds := func(id int) func(*comm.Comm) any {
		return func(c *comm.Comm) any {
			g := c.Final[id]
			return fmt.Sprint(g.NChannels, g.BWIntra, g.BWInter, g.TypeIntra, g.TypeInter, g.CrossNIC)
		}
	}
	nets := func(c *comm.Comm) any { return len(c.Domains[0].System.Of(topo.NET)) }
	channels := func(c *comm.Comm) any { return fmt.Sprint(c.NChannels, c.NVLSChannels) }
	peers := func(c *comm.Comm) any { return fmt.Sprint(c.P2PChannels, c.P2PChannelsPerPeer) }
	return []of{
		{"nodes joined by NVLink in all", []member{{"dgx-h100", 1}, {"pcie-a100-4", 1}},
			func(c *comm.Comm) any { return c.IsAllNVLink }, "2.30.3", "2.30.7", "true", "false"},
		{"P2P level of AMD machines", []member{{"pcie-rtx4090-8", 1}}, refusals("P2P"), "2.22.3", "2.23.4",
			"0", "56"},
		{"links between Intel sockets", []member{h100}, sysLink, "2.25.1", "2.26.2", "10", "22"},
		{"C2C is a kind of link", []member{gh}, gpuCPU, "2.25.1", "2.26.2", "NVL", "C2C"},
		{"C2C and a host bridge are P2C", []member{gh}, gpuNet, "2.26.6", "2.27.3", "[PHB]", "[P2C]"},
		{"PXN over P2C", []member{alps}, refusals("PXN"), "2.27.7", "2.28.3", "12", "0"},
		{"NVLink of sm_100, first", []member{b200}, nvlink, "2.24.3", "2.25.1", "370.80002", "720"},
		{"NVLink of sm_100, then", []member{b200}, nvlink, "2.27.3", "2.27.5", "720", "721.8"},
		{"nets of a node alone", []member{{"dgx-h100", 1}}, nets, "2.28.3", "2.28.7", "0", "8"},
		{"speeds of sm_100", []member{b200}, speeds(search.RingID), "2.24.3", "2.25.1", "8 48 48 NVL PIX 2",
			"8 48 48 NVL PXN 0"},
		{"channels of sm_100", []member{b200}, channels, "2.24.3", "2.25.1", "16 16", "32 32"},
		{"speeds of sm_100 between nodes", []member{b200}, speeds(search.TreeID), "2.27.5", "2.27.7",
			"8 48 48 NVL PIX 0", "8 96 48 NVL PIX 0"},
		{"most channels", []member{{"dgx-b200", 1}}, channels, "2.24.3", "2.25.1", "24 16", "32 32"},
		{"NVLS channels on a node", []member{{"dgx-b200", 1}}, channels, "2.26.6", "2.27.3", "32 32",
			"32 24"},
		{"NVLS raises channels", []member{b200}, channels, "2.27.7", "2.28.3", "32 32", "16 32"},
		{"channels of other algorithms", []member{{"h200x4-4", 2}}, func(c *comm.Comm) any {
			choice, err := c.Model.Choose(tuning.Op{Func: coll.Broadcast, Count: 1 << 24, Type: coll.Float32})
			return fmt.Sprint(choice.MaxChannels, err)
		}, "2.21.5", "2.22.3", "2 <nil>", "16 <nil>"},
		{"nodes joined by NVLink", []member{{"gh200", 1}}, func(c *comm.Comm) any { return c.P2PChunkSize },
			"2.24.3", "2.25.1", "131072", "524288"},
		{"NVLS channels by nets", []member{{"dgx-b200", 4}}, channels, "2.29.7", "2.30.3", "16 32", "16 24"},
		{"crossing NICs", []member{{"hgx-a100-4", 2}}, speeds(search.RingID), "2.22.3", "2.23.4",
			"2 24 24 NVL PHB 1", "2 24 24 NVL PHB 2"},
		{"kinds of paths", []member{{"pcie-l40s-8", 1}}, func(c *comm.Comm) any {
			return len(c.Domains[0].Graphs[search.RingID].Attempts)
		}, "2.24.3", "2.25.1", "168", "114"},
		{"groups of send/recv on a node", []member{{"dgx-2", 1}}, func(c *comm.Comm) any {
			return c.P2PGroupSize
		}, "2.28.7", "2.28.9", "8", "16"},
		{"channels of a peer", []member{h100}, peers, "2.28.9", "2.29.2", "16 2", "16 4"},
		{"chunks of send/recv", []member{{"gb200-nvl72-2tray", 2}}, func(c *comm.Comm) any {
			return c.P2PChunkSize
		}, "2.28.9", "2.29.2", "131072", "262144"},
		{"first GPU of a net", []member{{"gcp-a3-mega", 2}}, speeds(search.TreeID), "2.27.3", "2.27.5",
			"8 45 24 NVL PIX 0", "8 48 24 NVL PIX 0"},
		{"mixed processors", []member{h100, a100}, func(c *comm.Comm) any { return c.CPUVendor }, "2.21.5",
			"2.22.3", "1", "4"},
		{"tree pattern of all", []member{{"dgx-a100", 1}, {"dgx-h100", 1}}, func(c *comm.Comm) any {
			return c.TreePattern
		}, "2.25.1", "2.26.2", "1", "3"},
	}
}

// formsOfReleases are links and ids of nodes, and what files hold.
func formsOfReleases() []of {
	h100 := member{"dgx-h100", 2}
	return []of{
		{"links of GPUs to themselves", []member{h100}, func(c *comm.Comm) any {
			s := c.Domains[0].System
			return s.Links[s.Nodes[s.Of(topo.GPU)[0]].Links[0]].Kind
		}, "2.21.5", "2.22.3", "LOC", "NVL"},
		{"ids of CPUs without NUMA node", []member{{"h200x4-4", 2}}, func(c *comm.Comm) any {
			s := c.Domains[0].System
			return s.Name(s.Of(topo.CPU)[0])
		}, "2.22.3", "2.23.4", "CPU/ffffffffffffffff-ffffffffffffff", "CPU/0-ffffffffffffff"},
		{"graphs in a graph file", []member{h100}, func(c *comm.Comm) any {
			d := &c.Domains[0]
			text, err := graphxml.Write(d.System, d.Graphs)
			return fmt.Sprint(strings.Count(string(text), "<graph "), err)
		}, "2.21.5", "2.22.3", "4 <nil>", "5 <nil>"},
	}
}

// choicesOfReleases are what releases have otherwise of the cost model and of plans.
func choicesOfReleases() []of { return append(costsOfReleases(), splitsOfReleases()...) }

// bandwidthOf and latencyOf read the cost model.
func bandwidthOf(f coll.Func, a coll.Algorithm, p coll.Protocol) func(*comm.Comm) any {
	return func(c *comm.Comm) any { return c.Model.Bandwidth[f][a][p] }
}

func latencyOf(f coll.Func, a coll.Algorithm, p coll.Protocol) func(*comm.Comm) any {
	return func(c *comm.Comm) any { return c.Model.Latency[f][a][p] }
}

func costsOfReleases() []of {
	bw, lat := bandwidthOf, latencyOf
	h100, b200, gh := member{"dgx-h100", 2}, member{"dgx-b200", 2}, member{"gh200", 2}
	b3, b1 := []member{{"dgx-b200", 3}}, []member{{"dgx-b200", 1}}
	correction := func(c *comm.Comm) any {
		return c.Model.Terms(tuning.Op{Func: coll.AllReduce, Count: 1 << 20, Type: coll.Int8}, coll.NVLSTree,
			coll.Simple).Correction
	}
	return []of{
		{"PAT", []member{gh}, bw(coll.AllGather, coll.PAT, coll.Simple), "2.22.3", "2.23.4", "0", "81.6"},
		{"NVLS AllGather", []member{{"dgx-h100", 1}}, func(c *comm.Comm) any {
			op := tuning.Op{Func: coll.AllGather, Count: 1 << 20, Type: coll.Float32}
			return c.Model.Force(op, coll.NVLS, coll.Simple).Times[coll.NVLS][coll.Simple] != tuning.Off
		}, "2.21.5", "2.22.3", "false", "true"},
		{"correction of trees below 64 bytes", []member{h100}, func(c *comm.Comm) any {
			return c.Model.Terms(tuning.Op{Func: coll.AllReduce, Count: 8, Type: coll.Float32}, coll.Tree,
				coll.Simple).Correction
		}, "2.21.5", "2.22.3", "0.9", "1"},
		{"share of PAT", []member{gh}, bw(coll.AllGather, coll.PAT, coll.Simple), "2.23.4", "2.24.3", "81.6",
			"72"},
		{"latency of trees", []member{h100}, lat(coll.AllReduce, coll.Tree, coll.Simple), "2.22.3", "2.23.4",
			"448", "92.4"},
		{"round trips of rings", []member{h100}, lat(coll.AllReduce, coll.Ring, coll.LL), "2.22.3", "2.23.4",
			"43.399998", "40"},
		{"LL128 of sparse rings", []member{gh}, func(c *comm.Comm) any {
			return c.Model.Raw[coll.AllReduce][coll.Ring][coll.LL128]
		}, "2.22.3", "2.23.4", "33.6", "44.16"},
		{"latency of nodes of one rank", []member{gh}, lat(coll.AllReduce, coll.Ring, coll.LL), "2.22.3",
			"2.23.4", "15.4", "16.6"},
		{"LL of sm_100", b1, bw(coll.AllReduce, coll.Ring, coll.LL), "2.24.3", "2.25.1", "80.571434",
			"161.14287"},
		{"LL128 of other GPUs", []member{{"pcie-l40s-8", 1}}, func(c *comm.Comm) any {
			return len(c.Model.WhyOff(tuning.Op{Func: coll.AllReduce, Count: 1024}, coll.Ring, coll.LL128))
		}, "2.26.6", "2.27.3", "2", "1"},
		{"NVLS gathers", []member{{"dgx-h100", 1}}, bw(coll.AllGather, coll.NVLS, coll.Simple), "2.26.6",
			"2.27.3", "320", "280"},
		// The speed of all GPUs of a node, of eight 85 % (graph/tuning.cc:265 of v2.26.6);
		// then the slower of that and 90 % of the network's (graph/tuning.cc:290 of v2.27.3).
		{"CollNetDirect gathers", []member{h100}, collNetGathers, "2.26.6", "2.27.3", "326.4", "345.59998"},
		{"NVLS by efficiency", []member{{"dgx-h100", 1}}, bw(coll.AllReduce, coll.NVLS, coll.Simple),
			"2.27.7", "2.28.3", "266.66666", "272"},
		{"NVLS gathers by ratio", []member{{"dgx-h100", 1}}, bw(coll.AllGather, coll.NVLS, coll.Simple),
			"2.22.3", "2.23.4", "266.66666", "320"},
		{"latency of NVLSTree", []member{h100}, lat(coll.AllReduce, coll.NVLSTree, coll.Simple), "2.28.7",
			"2.28.9", "53", "66.8"},
		{"cap of NVLSTree, first", b3, bw(coll.AllReduce, coll.NVLSTree, coll.Simple), "2.28.7", "2.28.9",
			"179.89565", "182.81738"},
		{"cap of NVLSTree, then", b3, bw(coll.AllReduce, coll.NVLSTree, coll.Simple), "2.29.7", "2.30.3",
			"182.81738", "200.34782"},
		{"ring LL128 of sm_100, first", []member{b200}, bw(coll.AllReduce, coll.Ring, coll.LL128), "2.28.3",
			"2.28.7", "188.41602", "147.62666"},
		{"ring LL128 of sm_100 on three nodes", b3, bw(coll.AllReduce, coll.Ring, coll.LL128), "2.28.9",
			"2.29.2", "184.31999", "144"},
		{"speeds of sm_100 of 80", []member{b200}, func(c *comm.Comm) any {
			return len(c.Rules.Search.Speeds[0].Inter)
		}, "2.29.2", "2.29.7", "18", "19"},
		{"ring LL128 of sm_100, then", []member{b200}, bw(coll.AllReduce, coll.Ring, coll.LL128), "2.29.2",
			"2.29.7", "147.62666", "170.66667"},
		{"tree LL128 of sm_100", []member{b200}, bw(coll.AllReduce, coll.Tree, coll.LL128), "2.27.7",
			"2.28.3", "249.56", "107.678"},
		{"tree of sm_100", []member{b200}, bw(coll.AllReduce, coll.Tree, coll.Simple), "2.27.7", "2.28.3",
			"281.52002", "145.52"},
		{"correction of NVLSTree", []member{b200}, correction, "2.28.9", "2.29.2", "1", "0.5"},
		{"LL128 of mixed GPUs", []member{h100, b200}, bw(coll.AllReduce, coll.Ring, coll.LL128), "2.29.7",
			"2.30.3", "0", "151.53548"},
	}
}

func splitsOfReleases() []of {
	split := func(p coll.Protocol, a coll.Algorithm, count int64) func(*comm.Comm) any {
		return func(c *comm.Comm) any {
			s, err := build.Split(c.Layout, plan.Request{Func: coll.AllReduce, Type: coll.Float32, Algo: a,
				Proto: p, Count: count, Channels: 8, Warps: 16})
			return fmt.Sprint(s.NChannels, s.Lo.Count, s.Hi.Count, s.Lo.ChunkSize, err)
		}
	}
	h100, b200 := member{"dgx-h100", 2}, member{"dgx-b200", 2}
	return []of{
		{"cells of channels", []member{h100}, split(coll.Simple, coll.Ring, 1<<11), "2.22.3", "2.23.4",
			"8 256 256 2097152 <nil>", "1 2048 0 2097152 <nil>"},
		{"even bytes", []member{h100}, split(coll.Simple, coll.Ring, 1<<14+6000), "2.21.5", "2.22.3",
			"8 3072 880 2097152 <nil>", "8 2796 2788 2097152 <nil>"},
		{"chunks of even bytes", []member{h100}, split(coll.LL128, coll.Tree, 1<<20), "2.21.5", "2.22.3",
			"8 132480 121216 72000 <nil>", "8 131072 131072 71040 <nil>"},
		{"threads of trees", []member{h100}, func(c *comm.Comm) any {
			op := tuning.Op{Func: coll.AllReduce, Count: 8192, Type: coll.Float32}
			choice, err := c.Model.Choose(op)
			return fmt.Sprint(choice.Algo, choice.Proto, choice.Threads, err)
		}, "2.21.5", "2.22.3", "Tree LL 512 <nil>", "Tree LL 640 <nil>"},
		{"LL in cells", []member{h100}, split(coll.LL, coll.Ring, 5000), "2.25.1", "2.26.2",
			"3 2048 904 32768 <nil>", "5 1024 904 32768 <nil>"},
		{"least traffic", []member{h100}, split(coll.Simple, coll.Ring, 1<<14), "2.28.9", "2.29.2",
			"8 2048 2048 2097152 <nil>", "4 4096 4096 2097152 <nil>"},
		{"chunks of NVLSTree", []member{b200}, split(coll.Simple, coll.NVLSTree, 1<<25), "2.29.7", "2.30.3",
			"8 4194304 4194304 131072 <nil>", "8 4194304 4194304 65536 <nil>"},
	}
}

// collNetGathers is the bandwidth of AllGather by CollNetDirect where the network
// reduces, as if its graph were the tree's.
func collNetGathers(c *comm.Comm) any {
	in := c.Model.In
	in.CollNet = tuning.CollNet{Enabled: true, Heads: 8, DirectHeads: 8, AllGather: true, ReduceScatter: true,
		Reduces: tuning.SHARPReduces}
	in.Graphs[search.CollNetDirectID] = in.Graphs[search.TreeID]
	m, err := tuning.New(in, tuning.Params{Rules: c.Rules})
	if err != nil {
		return err
	}
	return m.Raw[coll.AllGather][coll.CollNetDirect][coll.Simple]
}

// TestLL128WithoutC2C: NCCL_LL128_C2C=0 keeps LL128 to PXB between nodes, of 2.27.3 to
// PXN (graph/tuning.cc:460 of v2.27.3, 459 of v2.27.5); before 2.27.3 it is not read.
func TestLL128WithoutC2C(t *testing.T) {
	for _, x := range []struct {
		release, on string
		between     topo.PathKind
		want        bool
	}{{"2.27.3", "dgx-b200", topo.PathPXN, true}, {"2.27.5", "dgx-b200", topo.PathPXN, false},
		{"2.27.3", "gh200", topo.PathP2C, false}} {
		r, err := rules.For(x.release)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ruled(t, r, func(p *comm.Params) { p.Tuning.LL128C2C = units.Some[int64](0) },
			member{x.on, 2})
		if err != nil {
			t.Fatal(err)
		}
		has := c.Model.Bandwidth[coll.AllReduce][coll.Ring][coll.LL128] > 0
		if kind := c.Final[search.RingID].TypeInter; kind != x.between || has != x.want {
			t.Errorf("NCCL %s on %s: nets at %v, LL128 %v", x.release, x.on, kind, has)
		}
	}
}

// TestPXNBeforeP2C: 2.27.3 holds PXN for the better kind of path (graph/topo.h:80), 2.27.5
// P2C. With NCCL_PXN_C2C=1 a GPU of 2.27.3 then takes the first net, which it has PXN to,
// for nearer than its own, and GPUDirect RDMA up to PXN leaves P2C out.
func TestPXNBeforeP2C(t *testing.T) {
	for _, x := range []struct {
		what   string
		change func(*rules.Topo)
		want   [2]string
	}{
		{"relays over C2C", func(r *rules.Topo) { r.PXNC2C = true }, [2]string{"P2C crossing 2, 3 PXN",
			"PXN crossing 0, 12 PXN"}},
		{"GPUDirect RDMA up to PXN", func(r *rules.Topo) { r.GDRC2C, r.GDRLevel = false, rules.PXN },
			[2]string{"PHB crossing 2, 0 PXN", "P2C crossing 2, 0 PXN"}},
	} {
		for i, release := range []string{"2.27.3", "2.27.5"} {
			r, err := rules.For(release)
			if err != nil {
				t.Fatal(err)
			}
			x.change(&r.Topo)
			c, err := ruled(t, r, nil, member{"gh200-4-alps", 2})
			if err != nil {
				t.Fatal(err)
			}
			s, relays := c.Domains[0].System, 0
			for _, gpu := range s.Of(topo.GPU) {
				for _, net := range s.Of(topo.NET) {
					if s.Path(gpu, net).Kind == topo.PathPXN {
						relays++
					}
				}
			}
			g := c.Final[search.RingID]
			if got := fmt.Sprintf("%v crossing %d, %d PXN", g.TypeInter, g.CrossNIC, relays); got !=
				x.want[i] {
				t.Errorf("%s: NCCL %s: %s, want %s", x.what, release, got, x.want[i])
			}
		}
	}
}

// TestRelaysOverC2C: with NCCL_PXN_C2C=1, sends to the rail of the peer go by another GPU's
// proxy from 2.27.7 on; before, only where that GPU has the net over PCI (graph/search.cc:1310 of
// v2.27.5, 1311 of v2.27.7).
func TestRelaysOverC2C(t *testing.T) {
	for release, want := range map[string]int{"2.27.5": 0, "2.27.7": 24} {
		r, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		r.Topo.PXNC2C = true
		c, err := ruled(t, r, nil, member{"gh200-4-alps", 2})
		if err != nil {
			t.Fatal(err)
		}
		relayed := 0
		for src := range int32(c.NRanks) {
			for dst := range int32(c.NRanks) {
				if route := c.RouteOf(src, dst, 0, connect.P2PRoute); c.NodeOf[src] != c.NodeOf[dst] &&
					route.SrcProxy != src {
					relayed++
				}
			}
		}
		if relayed != want {
			t.Errorf("NCCL %s: %d pairs are relayed, want %d", release, relayed, want)
		}
	}
}

// TestNetsOfOwnHost: where channels are copies of others (NVLS raises them before 2.28.3), the
// graph's net of a channel can be on another host of the domain; the proxy then opens
// its own host's net of that number (search.cc:1289).
func TestNetsOfOwnHost(t *testing.T) {
	r, err := rules.For("2.27.7")
	if err != nil {
		t.Fatal(err)
	}
	c, err := ruled(t, r, func(p *comm.Params) { p.Connect.MaxNChannels = units.Some[int64](4) },
		member{"gb200-nvl72-2tray", 2})
	if err != nil {
		t.Fatal(err)
	}
	routes := 0
	for ch := range c.NChannels {
		for src, links := range c.Channels[ch].Ring {
			route := c.RouteOf(int32(src), links.Next, ch, connect.RingRoute)
			if route.Transport != connect.NET {
				continue
			}
			routes++
			s := c.Domains[c.NodeOf[src]].System
			gpu := s.Of(topo.GPU)[c.LocalRank[src]]
			if net := s.Of(topo.NET)[route.SrcNet]; s.Nodes[net].Ident>>56 != s.Nodes[gpu].Ident>>56 {
				t.Errorf("channel %d: %s sends by %s", ch, s.Name(gpu), s.Name(net))
			}
		}
	}
	if routes != 2*c.NChannels {
		t.Errorf("%d routes between nodes on %d channels", routes, c.NChannels)
	}
}

// TestRelaysWithGDR: from 2.30.3 on a GPU sends for another only over a net with which it has
// GPUDirect RDMA (2.29.7 graph/search.cc:1381, 2.30.3 graph/search.cc:1394).
func TestRelaysWithGDR(t *testing.T) {
	for release, want := range map[string]int{"2.29.7": 112, "2.30.3": 0} {
		r, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ruled(t, r, func(p *comm.Params) { p.Access.GDRLevel = units.Some(topo.PathLOC) },
			member{"dgx-h100", 2})
		if err != nil {
			t.Fatal(err)
		}
		relayed := 0
		for src := range int32(c.NRanks) {
			for dst := range int32(c.NRanks) {
				if route := c.RouteOf(src, dst, 0, connect.P2PRoute); c.NodeOf[src] != c.NodeOf[dst] &&
					route.SrcProxy != src {
					relayed++
				}
			}
		}
		if relayed != want {
			t.Errorf("NCCL %s: %d pairs are relayed, want %d", release, relayed, want)
		}
	}
}

// TestRegisteredGathers: from 2.29.2 on NCCL uses registered buffers of a gather only where it
// is captured in a CUDA graph (2.28.9 enqueue.cc:2591, 2.29.2 enqueue.cc:2946).
func TestRegisteredGathers(t *testing.T) {
	for release, want := range map[string]string{"2.28.9": "true true", "2.29.2": "false true"} {
		r, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ruled(t, r, nil, member{"dgx-h100", 1})
		if err != nil {
			t.Fatal(err)
		}
		var got []any
		for _, graph := range []bool{false, true} {
			q, _, err := c.Request(comm.Op{Func: coll.Gather, Count: 1 << 20, Type: coll.Float32,
				Buffers: comm.Registered, Graph: graph})
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, q.Direct)
		}
		if text := strings.TrimSpace(fmt.Sprintln(got...)); text != want {
			t.Errorf("NCCL %s: %s, want %s", release, text, want)
		}
	}
}

// TestOperationsOfHours: up to 2.28.9 NCCL finds no algorithm for an operation of over an hour.
func TestOperationsOfHours(t *testing.T) {
	for release, want := range map[string]bool{"2.28.9": true, "2.29.2": false} {
		r, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ruled(t, r, nil, member{"dgx-h100", 2})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Model.Choose(tuning.Op{Func: coll.Broadcast, Count: 1 << 60, Type: coll.Int8})
		if (err != nil) != want {
			t.Errorf("NCCL %s: %v", release, err)
		}
	}
}
