package connect_test

import (
	"fmt"
	"reflect"
	"strconv"
	"testing"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/refsys"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// refChannels is a reference's `channels` section.
type refChannels struct {
	NChannels, CollChannels, NVLSChannels, NVLSChunkSize int
	P2PNChannels, P2PNChannelsPerPeer, P2PChunkSize      int
	NNodes, IsAllNVLink, CPUArch, CPUVendor              int
	MaxTreePattern                                       int
	BuffSizes                                            [3]int
	RingOrder                                            [][]int32
	Ranks                                                []struct {
		Rank, Node, NChannels int
		Ch                    [][6]int32
		NVLS                  []struct {
			HeadRank, NHeads, TreeUp int32
			TreeDown                 [3]int32
		}
	}
}

type refDomain struct {
	Ranks  []int
	Graphs []refsys.Graph
}

// part is a System that has only what Join asks of a node other than rank 0's.
func part(ranks []int, like *topo.System) *topo.System {
	var nodes []topo.Node
	for _, r := range ranks {
		gpu := *like.Nodes[like.Of(topo.GPU)[0]].GPU
		gpu.Rank = r
		nodes = append(nodes, topo.Node{Kind: topo.GPU, GPU: &gpu})
	}
	nodes = append(nodes, like.Nodes[like.Of(topo.CPU)[0]])
	nodes[len(nodes)-1].Links = nil
	return topo.Assemble(rules.Default(), nodes, nil, func(a, b topo.NodeID) topo.Path {
		return topo.Path{Kind: topo.PathDIS}
	})
}

// inputOf gives Join what NCCL's search found on every node.
func inputOf(t testing.TB, r *golden.Reference) connect.Input {
	sys := refsys.System(t, r)
	var graphs []refsys.Graph
	r.Section(t, "graphs", &graphs)
	host := []connect.Domain{{System: sys, Graphs: refsys.Set(t, graphs)}}
	var split []refDomain
	if r.Section(t, "domains", &split) && len(split) > 1 {
		for _, d := range split[1:] {
			host = append(host, connect.Domain{System: part(d.Ranks, sys), Graphs: refsys.Set(t, d.Graphs)})
		}
		for i := range host { // the section holds ring and tree only
			for id, g := range host[0].Graphs {
				if host[i].Graphs[id] == nil {
					host[i].Graphs[id] = g
				}
			}
		}
	}
	var perNode int
	r.Section(t, "gpusPerNode", &perNode)
	in := connect.Input{Multicast: r.Multicast}
	for n := range r.Nodes {
		for _, d := range host {
			d.First, d.Host = int32(n*perNode), int32(n*max(sys.NHosts, 1))
			in.Domains = append(in.Domains, d)
		}
	}
	return in
}

func paramsOf(t testing.TB, r *golden.Reference) connect.Params {
	p := connect.Params{Rules: rules.Default()}
	fields := map[string]*units.Opt[int64]{
		"NCCL_MIN_NCHANNELS": &p.MinNChannels, "NCCL_MAX_NCHANNELS": &p.MaxNChannels,
		"NCCL_BUFFSIZE":               &p.BuffSize,
		"NCCL_NCHANNELS_PER_NET_PEER": &p.NChannelsPerNetPeer, "NCCL_NVLS_ENABLE": &p.NVLSEnable,
	}
	for name, field := range fields {
		if text, ok := r.Env[name]; ok {
			v, err := strconv.ParseInt(text, 0, 64)
			if err != nil {
				t.Fatal(err)
			}
			*field = units.Some(v)
		}
	}
	return p
}

func ofBool(b bool) int {
	if b {
		return 1
	}
	return 0
}

// diffChannels names the first difference to a reference.
func diffChannels(c *connect.Layout, w *refChannels) string {
	for _, f := range []struct {
		name      string
		got, want int
	}{
		{"nNodes", c.NNodes, w.NNodes}, {"nChannels", c.NChannels, w.NChannels},
		{"collChannels", c.CollChannels, w.CollChannels},
		{"nvlsChannels", c.NVLSChannels, w.NVLSChannels}, {"nvlsChunkSize", int(c.NVLSChunkSize),
			w.NVLSChunkSize},
		{"p2pnChannels", c.P2PChannels, w.P2PNChannels}, {"p2pnChannelsPerPeer", c.P2PChannelsPerPeer,
			w.P2PNChannelsPerPeer},
		{"p2pChunkSize", int(c.P2PChunkSize), w.P2PChunkSize}, {"isAllNvlink", ofBool(c.IsAllNVLink),
			w.IsAllNVLink},
		{"cpuArch", int(c.CPUArch), w.CPUArch}, {"cpuVendor", int(c.CPUVendor), w.CPUVendor},
		{"maxTreePattern", int(c.TreePattern), w.MaxTreePattern}, {"ranks", c.NRanks, len(w.Ranks)},
		{"channels", len(c.Channels), len(w.RingOrder)},
		{"LL buffer", int(c.BuffSizes[0]), w.BuffSizes[0]}, {"LL128 buffer", int(c.BuffSizes[1]),
			w.BuffSizes[1]}, {"Simple buffer", int(c.BuffSizes[2]), w.BuffSizes[2]},
	} {
		if f.got != f.want {
			return fmt.Sprintf("%s %d, NCCL has %d", f.name, f.got, f.want)
		}
	}
	for i, ch := range c.Channels {
		if !reflect.DeepEqual(ch.Order, w.RingOrder[i]) {
			return fmt.Sprintf("ring %d: %v, NCCL has %v", i, ch.Order, w.RingOrder[i])
		}
	}
	for r, want := range w.Ranks {
		if int(c.NodeOf[r]) != want.Node {
			return fmt.Sprintf("rank %d on node %d, NCCL has %d", r, c.NodeOf[r], want.Node)
		}
		for i, ch := range c.Channels {
			ring, tree := ch.Ring[r], ch.Tree[r]
			got := [6]int32{ring.Prev, ring.Next, tree.Up, tree.Down[0], tree.Down[1], tree.Down[2]}
			if got != want.Ch[i] {
				return fmt.Sprintf("rank %d channel %d: %v, NCCL has %v", r, i, got, want.Ch[i])
			}
		}
		if len(want.NVLS) != len(c.NVLS) {
			return fmt.Sprintf("%d NVLS channels, NCCL has %d", len(c.NVLS), len(want.NVLS))
		}
		for i, w := range want.NVLS {
			v := &c.NVLS[i]
			if v.HeadIndex[r] != w.HeadRank || len(v.Heads) != int(w.NHeads) || v.TreeUp[r] != w.TreeUp ||
				v.TreeDown[r] != w.TreeDown {
				return fmt.Sprintf("rank %d NVLS channel %d: head %d of %d, tree %d %v, NCCL has %+v", r, i,
					v.HeadIndex[r], len(v.Heads), v.TreeUp[r], v.TreeDown[r], w)
			}
		}
	}
	return ""
}

// TestChannelsAreNCCLs joins the graphs that NCCL 2.28.9 found and compares
// the channels with those it made (graph/connect.cc, init.cc).
func TestChannelsAreNCCLs(t *testing.T) {
	refs := golden.Few(golden.All(t), 3)
	equal := 0
	for i := range refs {
		r := &refs[i]
		r.Load(t)
		var want refChannels
		var final []refsys.Graph
		r.Section(t, "channels", &want)
		r.Section(t, "graphsFinal", &final)
		c, err := connect.Join(inputOf(t, r), paramsOf(t, r))
		if err != nil {
			t.Errorf("%s: %v", r.Name, err)
			continue
		}
		d := diffChannels(c, &want)
		for i, id := range search.Order() {
			w := final[i].Search(t)
			g := *c.Final[id]
			g.Intra, g.Inter, g.CollNet = nil, nil, w.CollNet
			if d == "" && !reflect.DeepEqual(&g, w) {
				d = fmt.Sprintf("final graph %s: %+v, NCCL has %+v", g.Name, g, *w)
			}
		}
		if d != "" {
			t.Errorf("%s: %s", r.Name, d)
		} else {
			equal++
		}
		r.Doc = nil
	}
	t.Logf("channels equal: %d of %d", equal, len(refs))
}
