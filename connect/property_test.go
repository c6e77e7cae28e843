package connect_test

import (
	"fmt"
	"testing"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"pgregory.net/rapid"
)

// anyDomain draws a host of n GPUs with graphs that visit them in any order.
func anyDomain(t *rapid.T, gpus, channels int) connect.Domain {
	var nodes []topo.Node
	order := make([]int, gpus)
	for i := range gpus {
		order[i] = i
		nodes = append(nodes, topo.Node{Kind: topo.GPU, GPU: &topo.GPUInfo{Dev: i, Rank: i, SM: 90}})
	}
	nodes = append(nodes, topo.Node{Kind: topo.CPU, CPU: &topo.CPUInfo{Arch: topo.ArchX86,
		Vendor: topo.VendorIntel}})
	sys := topo.Assemble(rules.Default(), nodes, nil, func(a, b topo.NodeID) topo.Path {
		return topo.Path{Kind: topo.PathNVL, BW: 100}
	})
	d := connect.Domain{System: sys}
	for id := range d.Graphs {
		d.Graphs[id] = &search.Graph{ID: id}
	}
	patterns := []search.Pattern{search.BalancedTree, search.SplitTree, search.TreePattern}
	if gpus == 1 {
		patterns = patterns[2:] // what NCCL makes of one GPU (search.cc:1009)
	}
	for _, id := range []int{search.RingID, search.TreeID} {
		g := d.Graphs[id]
		g.NChannels, g.Pattern, g.BWIntra = channels, search.RingPattern, 40
		if id == search.TreeID {
			g.Pattern = rapid.SampledFrom(patterns).Draw(t, "pattern")
		} else {
			g.CrossNIC = rapid.IntRange(0, 2).Draw(t, "crossNIC")
		}
		for range channels {
			g.Intra = append(g.Intra, rapid.Permutation(order).Draw(t, "order"))
			g.Inter = append(g.Inter, [2]uint64{})
		}
	}
	return d
}

// TestJoinedShapes: whatever the hosts' graphs, every ring is one cycle over
// all ranks, every tree is one tree over all ranks whose links agree, and an
// inner node of one double tree is a leaf of the other.
func TestJoinedShapes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in connect.Input
		first := 0
		for range rapid.IntRange(1, 9).Draw(t, "nodes") {
			d := anyDomain(t, rapid.IntRange(1, 5).Draw(t, "gpus"), rapid.IntRange(1, 4).Draw(t, "channels"))
			d.First, d.Host = int32(first), int32(len(in.Domains))
			first += len(d.System.Of(topo.GPU))
			in.Domains = append(in.Domains, d)
		}
		c, err := connect.Join(in, connect.Params{Rules: rules.Default()})
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Channels {
			checkRing(t, &c.Channels[i])
			checkTree(t, c.Channels[i].Tree)
		}
	})
}

func checkRing(t *rapid.T, ch *connect.Channel) {
	for r := range ch.Ring {
		next := ch.Ring[r].Next
		if ch.Ring[next].Prev != int32(r) || int(ch.Pos[next]) != (int(ch.Pos[r])+1)%len(ch.Ring) {
			t.Fatalf("rank %d sends to %d, which receives from %d", r, next, ch.Ring[next].Prev)
		}
	}
}

func checkTree(t *rapid.T, tree []connect.TreeLinks) {
	roots := 0
	for r := range tree {
		up := tree[r].Up
		if up < 0 {
			roots++
			continue
		}
		found := 0
		for _, d := range tree[up].Down {
			if int(d) == r {
				found++
			}
		}
		if found != 1 {
			t.Fatalf("rank %d has parent %d, whose children are %v", r, up, tree[up].Down)
		}
		for at, steps := up, 0; at >= 0; at = tree[at].Up {
			if steps++; steps > len(tree) {
				t.Fatalf("rank %d never reaches a root", r)
			}
		}
	}
	if roots != 1 {
		t.Fatalf("%d roots", roots)
	}
}

// TestJoinRefuses says what is wrong with domains that make no communicator.
func TestJoinRefuses(t *testing.T) {
	ok := build(t, "dgx-a100", 2)
	twice := []connect.Domain{ok.Domains[0], ok.Domains[0]}
	if _, err := connect.Join(connect.Input{Domains: twice}, connect.Params{Rules: rules.Default()}); err ==
		nil {
		t.Error("two domains of the same ranks were taken")
	}
	short := ok.Domains[0]
	ring := *short.Graphs[search.RingID]
	ring.Intra = append([][]int(nil), ring.Intra...)
	ring.Intra[0] = []int{0, 1, 2}
	short.Graphs[search.RingID] = &ring
	if _, err := connect.Join(connect.Input{Domains: []connect.Domain{short}},
		connect.Params{Rules: rules.Default()}); err == nil {
		t.Error("a ring over three of eight GPUs was taken")
	}
	if _, err := connect.Join(connect.Input{}, connect.Params{Rules: rules.Default()}); err == nil {
		t.Error("a communicator without ranks was made")
	}
}

// BenchmarkJoin joins 12,800 DGX H100, 102,400 ranks.
func BenchmarkJoin(b *testing.B) {
	c := build(b, "dgx-h100", 2)
	for _, nodes := range []int{1, 64, 2048, 12800} {
		in := connect.Input{}
		for n := range nodes {
			d := c.Domains[0]
			d.First, d.Host = int32(8*n), int32(n)
			in.Domains = append(in.Domains, d)
		}
		b.Run(fmt.Sprintf("ranks=%d", 8*nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := connect.Join(in, connect.Params{Rules: rules.Default()}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
