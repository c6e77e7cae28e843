package comm_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/tuning"
)

// ruled makes a communicator by given rules, set on its Params by change.
func ruled(t *testing.T, r *rules.Ruleset, change func(*comm.Params), members ...member) (*comm.Comm, error) {
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
	cl, err := fabric.New(list, tp)
	if err != nil {
		t.Fatal(err)
	}
	p := comm.Params{Rules: r, Access: tp.Access}
	if change != nil {
		change(&p)
	}
	return comm.New(cl, p)
}

// rule is a field of rules and what asks it: on a machine, is gives was by the
// default's rules, and to by those that change makes of them.
type rule struct {
	name    string
	on      []member
	change  func(*rules.Ruleset)
	is      func(*comm.Comm) any
	was, to string
}

// topoRules are those of topo and search.
func topoRules() []rule {
	h100, gh, l40s := member{"dgx-h100", 2}, member{"gh200", 2}, member{"pcie-l40s-8", 2}
	return []rule{
		{"MaxChannels", []member{h100}, func(r *rules.Ruleset) { r.MaxChannels = 8 }, func(c *comm.Comm) any {
			return c.NChannels
		}, "16", "8"},
		{"NVLinkBW", []member{h100}, func(r *rules.Ruleset) {
			r.Topo.NVLinkBW = []rules.SMRow{{SM: 0, BW: 10}}
		}, func(c *comm.Comm) any {
			s := c.Domains[0].System
			return s.Path(s.Of(topo.GPU)[0], s.Of(topo.GPU)[1]).BW
		}, "370.8", "180"},
		{"IntelBW", []member{{"pcie-a100-4", 1}}, func(r *rules.Ruleset) {
			r.Topo.IntelSKL, r.Topo.IntelSRP, r.Topo.IntelERP = 3, 3, 3
		}, sysLink, "10", "3"},
		{"P2PLevel", []member{l40s}, func(r *rules.Ruleset) { r.Topo.P2PLevel = rules.SYS }, refusals("P2P"),
			"48", "0"},
		{"C2CLinks", []member{gh}, func(r *rules.Ruleset) { r.Topo.C2CLinks = false }, gpuCPU, "C2C", "NVL"},
		{"P2CPaths", []member{gh}, func(r *rules.Ruleset) { r.Topo.P2CPaths, r.Topo.PXNC2C = false, false },
			gpuNet, "[P2C]", "[PHB]"},
		{"GDRLevel", []member{gh}, func(r *rules.Ruleset) { r.Topo.P2CAsC2C = false }, refusals("GDR"), "0",
			"1"},
		{"GDRLevelC2C", []member{gh}, func(r *rules.Ruleset) { r.Topo.GDRLevelC2C = rules.NVL },
			refusals("GDR"), "0", "1"},
		{"PXNC2C", []member{{"gh200-4-alps", 2}}, func(r *rules.Ruleset) { r.Topo.PXNC2C = false },
			refusals("PXN"), "0", "12"},
		{"Speeds", []member{h100}, func(r *rules.Ruleset) {
			r.Search.Speeds[1].Inter = []float32{10}
			r.Search.Speeds[1].Intra = []float32{10}
		}, ring, "8 48 NVL PIX 34", "32 10 NVL PXN 32"},
		{"KindsOfSystem", []member{l40s}, func(r *rules.Ruleset) { r.Search.KindsOfSystem = false }, ring,
			"1 20 SYS SYS 508", "1 20 SYS SYS 940"},
		{"MaxNVLSHeads", []member{{"dgx-h100", 1}}, func(r *rules.Ruleset) { r.Search.MaxNVLSHeads = 4 },
			func(c *comm.Comm) any { return c.Final[search.NVLSID].NChannels }, "8", "4"},
	}
}

// connectRules are those of connect, and of P2P between GPUs behind AMD's CPUs.
func connectRules() []rule {
	h100, a100 := member{"dgx-h100", 2}, member{"dgx-a100", 2}
	return []rule{
		{"MixedCPUs", []member{h100, a100}, func(r *rules.Ruleset) { r.Connect.MixedCPUs = false },
			func(c *comm.Comm) any { return c.CPUVendor }, "4", "1"},
		{"OwnTreePattern", []member{a100, h100}, func(r *rules.Ruleset) { r.Connect.OwnTreePattern = true },
			func(c *comm.Comm) any { return c.TreePattern }, "3", "1"},
		{"NVLSSM90", []member{h100}, func(r *rules.Ruleset) { r.Connect.NVLSSM90 = 12 },
			func(c *comm.Comm) any { return c.NVLSChannels }, "16", "12"},
		{"NVLSRaises", []member{h100}, func(r *rules.Ruleset) {
			r.Connect.NVLSSM90, r.Connect.NVLSRaises = 24, true
		}, func(c *comm.Comm) any { return c.NChannels }, "16", "24"},
		{"NVLSApart", []member{h100}, func(r *rules.Ruleset) {
			r.Connect.NVLSSM90, r.Connect.NVLSRaises, r.Connect.NVLSApart = 24, true, true
		}, func(c *comm.Comm) any { // 64 bytes a channel and rank are 16 KiB of 16 channels, 24 KiB of 24
			op := tuning.Op{Func: coll.AllReduce, Count: 20000, Type: coll.Int8}
			choice, err := c.Model.Choose(tuning.Op{Func: coll.Broadcast, Count: 1 << 26, Type: coll.Int8})
			return fmt.Sprint(c.Model.Terms(op, coll.Ring, coll.Simple).Plateau, choice.MaxChannels, err)
		}, "1.4 16 <nil>", "1 16 <nil>"},
		{"NVLSMinGPUs", []member{{"dgx-h100", 1}}, func(r *rules.Ruleset) { r.Connect.NVLSMinGPUs = 9 },
			func(c *comm.Comm) any { return c.NVLSSupport }, "true", "false"},
		{"Buffers", []member{h100}, func(r *rules.Ruleset) { r.Connect.Buffers[coll.Simple] = 1 << 20 },
			func(c *comm.Comm) any { return c.BuffSizes }, "[524288 4915200 4194304]",
			"[524288 4915200 1048576]"},
		{"PeersAgree", []member{{"gb200-nvl72-tray", 1}, {"pcie-a100-4", 1}}, func(r *rules.Ruleset) {
			r.Connect.PeersAgree = true
		}, func(c *comm.Comm) any { return c.PeerChannels }, "[2 1]", "[1 1]"},
		{"PeerChannels", []member{h100}, func(r *rules.Ruleset) {
			r.Connect.PeerChannels = func(rules.Peer) int { return 1 }
		}, func(c *comm.Comm) any { return c.P2PChannelsPerPeer }, "2", "1"},
		{"NVLSSM100", []member{{"dgx-b200", 2}}, func(r *rules.Ruleset) { r.Connect.NVLSSM100 = 20 },
			func(c *comm.Comm) any { return c.NVLSChannels }, "32", "20"},
		{"NVLSSM100OneDomain", []member{{"dgx-b200", 1}}, func(r *rules.Ruleset) {
			r.Connect.NVLSSM100OneDomain = 20
		}, func(c *comm.Comm) any { return c.NVLSChannels }, "24", "20"},
		{"NVLSChunk", []member{h100}, func(r *rules.Ruleset) { r.Connect.NVLSChunk = 64 << 10 },
			func(c *comm.Comm) any { return c.NVLSChunkSize }, "131072", "65536"},
		{"P2PChunk between nodes", []member{h100}, func(r *rules.Ruleset) { r.Connect.P2PChunk = 64 << 10 },
			func(c *comm.Comm) any { return c.P2PChunkSize }, "131072", "65536"},
		{"P2PChunk over PCI", []member{{"pcie-l40s-8", 1}}, func(r *rules.Ruleset) {
			r.Connect.P2PChunk = 64 << 10
		}, func(c *comm.Comm) any { return c.P2PChunkSize }, "131072", "65536"},
		{"P2PNVLChunk", []member{{"dgx-h100", 1}}, func(r *rules.Ruleset) {
			r.Connect.P2PNVLChunk = 64 << 10
		}, func(c *comm.Comm) any { return c.P2PChunkSize }, "524288", "65536"},
		{"P2PGroup", []member{h100}, func(r *rules.Ruleset) { r.Connect.P2PGroup = 4 },
			func(c *comm.Comm) any { return c.P2PGroupSize }, "8", "4"},
		{"P2PAMDGPUs", []member{{"pcie-rtx4090-8", 1}}, func(r *rules.Ruleset) { r.Topo.P2PAMDGPUs = 8 },
			refusals("P2P"), "56", "0"},
	}
}

// choiceRules are those of tuning.
func choiceRules() []rule {
	bw, lat := bandwidthOf, latencyOf
	h100, a100, gh, b200 := member{"dgx-h100", 2}, member{"dgx-a100", 2}, member{"gh200", 2},
		member{"dgx-b200", 2}
	return []rule{
		{"PATEff", []member{gh}, func(r *rules.Ruleset) { r.Tuning.PATEff = .85 },
			bw(coll.AllGather, coll.PAT, coll.Simple), "72", "81.6"},
		{"PAT", []member{gh}, func(r *rules.Ruleset) { r.Tuning.PAT = false }, bw(coll.AllGather, coll.PAT,
			coll.Simple), "72", "0"},
		{"RingLL128Sparse", []member{gh}, func(r *rules.Ruleset) { r.Tuning.RingLL128Sparse = .7 },
			bw(coll.AllReduce, coll.Ring, coll.LL128), "44.16", "33.6"},
		{"NetLatOfTree", []member{gh}, func(r *rules.Ruleset) { r.Tuning.NetLatOfTree = false },
			lat(coll.AllReduce, coll.Ring, coll.LL), "16.6", "12"},
		{"NetRoundTrip", []member{h100}, func(r *rules.Ruleset) { r.Tuning.NetRoundTrip = true },
			lat(coll.AllReduce, coll.Ring, coll.LL), "40", "43.399998"},
		{"LLMixedAsAMD", []member{h100, a100}, func(r *rules.Ruleset) { r.Tuning.LLMixedAsAMD = false },
			bw(coll.AllReduce, coll.Ring, coll.LL), "9.806452", "10.529032"},
		{"LL128SMs", []member{{"dgx-b200", 1}}, func(r *rules.Ruleset) {
			r.Tuning.LL128SMs = []int{70, 80, 90}
		}, bw(coll.AllReduce, coll.Ring, coll.LL128), "378.5143", "0"},
		{"LL128MinSM", []member{a100}, func(r *rules.Ruleset) { r.Tuning.LL128MinSM = 90 },
			bw(coll.AllReduce, coll.Ring, coll.LL128), "85.333336", "0"},
		{"LL128MixedSM", []member{h100, b200}, func(r *rules.Ruleset) { r.Tuning.LL128MixedSM = 90 },
			bw(coll.AllReduce, coll.Ring, coll.LL128), "0", "151.53548"},
		{"NVLSEff", []member{h100}, func(r *rules.Ruleset) { r.Tuning.NVLSEff[2] = .1 },
			bw(coll.AllReduce, coll.NVLSTree, coll.Simple), "246.18668", "29.866669"},
		{"NVLSBandwidth", []member{h100}, func(r *rules.Ruleset) {
			r.Tuning.NVLSBandwidth = func(*rules.Tuning, rules.NVLS) float32 { return 1 }
		}, bw(coll.AllReduce, coll.NVLSTree, coll.Simple), "246.18668", "4.266667"},
		{"NVLSGathersInter", []member{h100}, func(r *rules.Ruleset) { r.Tuning.NVLSGathersInter = false },
			overCollNet(func(m *tuning.Model) any {
				return m.Force(tuning.Op{Func: coll.AllGather, Count: 1 << 20}, coll.NVLS,
					coll.Simple).Times[coll.NVLS][coll.Simple] != tuning.Off
			}), "true", "false"},
		{"NVLSFewest", []member{{"dgx-b200", 2}}, func(r *rules.Ruleset) { r.Tuning.NVLSFewest = false },
			overCollNet(func(m *tuning.Model) any {
				return m.Force(tuning.Op{Func: coll.AllReduce, Count: 1 << 26, Type: coll.Float32}, coll.NVLS,
					coll.Simple).MaxChannels
			}), "16", "32"},
	}
}

// planRules are those of plan, and of corrections.
func planRules() []rule {
	split := func(p coll.Protocol, a coll.Algorithm, count int64) func(*comm.Comm) any {
		return func(c *comm.Comm) any {
			s, err := build.Split(c.Layout, plan.Request{Func: coll.AllReduce, Type: coll.Float32, Algo: a,
				Proto: p, Count: count, Channels: 16, Warps: 16})
			return fmt.Sprint(s.NChannels, s.Lo.Count, s.Lo.ChunkSize, err)
		}
	}
	h100 := member{"dgx-h100", 2}
	one, four := []member{{"dgx-h100", 1}}, []member{{"dgx-h100", 4}}
	return []rule{
		{"SlowNVLSChunk", []member{h100}, func(r *rules.Ruleset) { r.Plan.SlowNVLSChunk = 64 << 10 },
			func(c *comm.Comm) any {
				in := *c.Layout
				in.CollNet.Enabled = true
				s, err := build.Split(&in, plan.Request{Func: coll.AllReduce, Type: coll.Float32,
					Algo:  coll.NVLS,
					Count: 1 << 28, Channels: 16, Warps: 16, SlowNVLS: true, Proto: coll.Simple})
				return fmt.Sprint(s.Lo.ChunkSize, err)
			}, "32768 <nil>", "65536 <nil>"},
		{"SlowNVLS", []member{h100}, func(r *rules.Ruleset) { r.Plan.SlowNVLS = 0 }, slow, "true <nil>",
			"false <nil>"},
		{"CorrectAllTrees", []member{h100}, func(r *rules.Ruleset) { r.Tuning.CorrectAllTrees = true },
			func(c *comm.Comm) any {
				return c.Model.Terms(tuning.Op{Func: coll.Broadcast, Count: 1 << 20}, coll.Tree,
					coll.Simple).Correction
			}, "1", "0.5"},
		{"TreeCorrection", []member{h100}, func(r *rules.Ruleset) {
			r.Tuning.TreeCorrection[coll.Simple] = [24]float32{14: .25}
		}, func(c *comm.Comm) any {
			return c.Model.Terms(tuning.Op{Func: coll.AllReduce, Count: 1 << 20, Type: coll.Int8}, coll.Tree,
				coll.Simple).Correction
		}, "0.5", "0.25"},
		{"NVLSGatherRanks", []member{{"dgx-h100", 1}}, func(r *rules.Ruleset) {
			r.Tuning.NVLSGatherRanks = 7
		}, gathers, "true", "false"},
		{"MinTraffic", one, func(r *rules.Ruleset) { r.Plan.MinTraffic = 32 << 10 },
			split(coll.Simple, coll.Ring, 1<<14), "8 2048 2097152 <nil>", "4 4096 2097152 <nil>"},
		{"LLTraffic", one, func(r *rules.Ruleset) { r.Plan.LLTraffic = 1 }, split(coll.LL, coll.Ring, 5000),
			"10 512 32768 <nil>", "3 2048 32768 <nil>"},
		{"NVLSTreeNodes", four, func(r *rules.Ruleset) { r.Plan.NVLSTreeNodes = 5 },
			split(coll.Simple, coll.NVLSTree, 1<<28), "16 16777216 65536 <nil>", "16 16777216 131072 <nil>"},
		{"NVLSTreeChunk", four, func(r *rules.Ruleset) { r.Plan.NVLSTreeChunk = 32 << 10 },
			split(coll.Simple, coll.NVLSTree, 1<<28), "16 16777216 65536 <nil>", "16 16777216 32768 <nil>"},
	}
}

// TestRulesDecide: every switch and constant that some release has otherwise
// is asked, and does what rules says of it.
func TestRulesDecide(t *testing.T) {
	for _, x := range slices.Concat(topoRules(), connectRules(), choiceRules(), planRules()) {
		var got [2]string
		for i, change := range []func(*rules.Ruleset){func(*rules.Ruleset) {}, x.change} {
			r := rules.Default()
			change(r)
			c, err := ruled(t, r, nil, x.on...)
			if err != nil {
				t.Fatalf("%s: %v", x.name, err)
			}
			got[i] = fmt.Sprint(x.is(c))
		}
		if got != [2]string{x.was, x.to} {
			t.Errorf("%s: %q and with other rules %q, want %q and %q", x.name, got[0], got[1], x.was, x.to)
		}
	}
}

// sysLink is the bandwidth between sockets.
func sysLink(c *comm.Comm) any {
	for _, l := range c.Domains[0].System.Links {
		if l.Kind == topo.LinkSYS {
			return l.BW
		}
	}
	return "none"
}

// refusals counts the verdicts of a kind.
func refusals(what string) func(*comm.Comm) any {
	return func(c *comm.Comm) any {
		n := 0
		for _, v := range c.Domains[0].System.Verdicts {
			if v.What == what {
				n++
			}
		}
		return n
	}
}

func gpuCPU(c *comm.Comm) any {
	s := c.Domains[0].System
	return s.Path(s.Of(topo.GPU)[0], s.Of(topo.CPU)[0]).Kind
}

func gpuNet(c *comm.Comm) any {
	s := c.Domains[0].System
	var kinds []topo.PathKind
	for _, n := range s.Of(topo.NET) {
		kinds = append(kinds, s.Path(s.Of(topo.GPU)[0], n).Kind)
	}
	return kinds
}

func ring(c *comm.Comm) any {
	g := c.Final[search.RingID]
	return fmt.Sprint(g.NChannels, g.BWIntra, g.TypeIntra, g.TypeInter,
		len(c.Domains[0].Graphs[search.RingID].Attempts))
}

// overCollNet asks the cost model of a communicator whose network reduces.
func overCollNet(ask func(*tuning.Model) any) func(*comm.Comm) any {
	return func(c *comm.Comm) any {
		in := c.Model.In
		in.CollNet = tuning.CollNet{Enabled: true, Heads: 8, DirectHeads: 8, AllGather: true,
			ReduceScatter: true, Reduces: tuning.SHARPReduces}
		m, err := tuning.New(in, tuning.Params{Rules: c.Rules})
		if err != nil {
			return err
		}
		return ask(m)
	}
}

func slow(c *comm.Comm) any {
	r, _, err := c.Request(comm.Op{Func: coll.AllReduce, Count: 1024, Type: coll.Float32})
	return fmt.Sprint(r.SlowNVLS, err)
}

func gathers(c *comm.Comm) any {
	choice := c.Model.Force(tuning.Op{Func: coll.AllGather, Count: 1 << 20}, coll.NVLS, coll.Simple)
	return choice.Times[coll.NVLS][coll.Simple] != tuning.Off
}

// TestRulesAreWanted: no stage runs without rules, or by others than what it is
// given was made by.
func TestRulesAreWanted(t *testing.T) {
	var missing *rules.MissingError
	if _, err := ruled(t, rules.Default(), func(p *comm.Params) { p.Rules = nil },
		member{"dgx-h100", 1}); !errors.As(err, &missing) {
		t.Errorf("comm without rules: %v", err)
	}
	other := rules.Default()
	other.Release.Patch++
	var mixed *rules.MixedError
	if _, err := ruled(t, rules.Default(), func(p *comm.Params) { p.Rules = other },
		member{"dgx-h100", 1}); !errors.As(err, &mixed) {
		t.Errorf("rules of another release: %v", err)
	}
}
