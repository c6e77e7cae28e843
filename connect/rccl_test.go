package connect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/search/preset"
	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// rcclLayout joins the nodes of a reference of RCCL.
func rcclLayout(t testing.TB, r *golden.Reference) *connect.Layout {
	t.Helper()
	data, err := os.ReadFile(r.Topo)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := topoxml.Parse(data, filepath.Base(r.Topo))
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rules.For(r.Version)
	if err != nil {
		t.Fatal(err)
	}
	p := topo.ParamsOf(rs)
	r.Section(t, "nRanks", &p.NRanks)
	h, err := topo.Build(spec, p)
	if err != nil {
		t.Fatal(err)
	}
	var in connect.Input
	for n := range r.Nodes {
		sys := h.System(0)
		known := preset.Of(sys, preset.Host{Index: n, Count: r.Nodes, Ranks: p.NRanks})
		sys = known.System(sys)
		set, err := search.All(sys, known.Params(sys, search.Params{Rules: rs}))
		if err != nil {
			t.Fatal(err)
		}
		in.Domains = append(in.Domains, connect.Domain{System: sys, Graphs: set, First: int32(n * h.NRanks()),
			Host: int32(n), Preset: known})
	}
	l, err := connect.Join(in, connect.Params{Rules: rs})
	if err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	return l
}

// TestChannelsAreRCCLs compares channels, rings, trees, send/recv and buffers with every reference.
func TestChannelsAreRCCLs(t *testing.T) {
	for _, version := range []string{"2.30.4", "2.28.3"} {
		refs := golden.Few(golden.RCCL(t, version), 5)
		equal, total := 0, 0
		for i := range refs {
			r := &refs[i]
			r.Load(t)
			var w struct {
				NChannels, P2PNChannels, P2PNChannelsPerPeer, P2PChunkSize, NNodes, IsAllNvlink,
				MaxTreePattern int
				BuffSizes []int
				RingOrder [][]int32
				Ranks     []struct{ Ch [][]int32 }
			}
			if !r.Section(t, "channels", &w) {
				continue
			}
			total++
			if d := channelsDiffer(rcclLayout(t, r), w.NChannels, []int{w.P2PNChannels, w.P2PNChannelsPerPeer,
				w.P2PChunkSize, w.NNodes, w.IsAllNvlink, w.MaxTreePattern}, w.BuffSizes, w.RingOrder,
				func(c, rank int) []int32 {
					return w.Ranks[rank].Ch[c]
				}); d != "" {
				t.Errorf("%s, %s: %s", version, r.Name, d)
			} else {
				equal++
			}
			r.Doc = nil
		}
		t.Logf("RCCL %s: channels %d/%d", version, equal, total)
	}
}

// contradicts reports whether the ring of a reference's channel is none: the references were made by one
// process, whose ranks exchanged the rings of odd nodes one after the other in the same place
// (graph/connect.cc:1091), so that every other rank has them as if they were not exchanged.
func contradicts(c, ranks int, at func(c, rank int) []int32) bool {
	for r := range ranks {
		if next := at(c, r)[1]; at(c, int(next))[0] != int32(r) {
			return true
		}
	}
	return false
}

func channelsDiffer(l *connect.Layout, n int, counts, buffers []int, order [][]int32,
	at func(c, rank int) []int32) string {
	all, perPeer := l.PeersOfExpl(&connect.Params{Rules: l.Rules})
	is := []int{all, perPeer, int(l.P2PChunkSize), l.NNodes, ofBool(l.IsAllNVLink),
		int(l.TreePattern)}
	if l.NChannels != n || !slices.Equal(is, counts) {
		return fmt.Sprintf("%d channels, send/recv %v, want %d, %v", l.NChannels, is, n, counts)
	}
	if fmt.Sprint(l.BuffSizes) != fmt.Sprint(buffers) {
		return fmt.Sprintf("buffers %v, want %v", l.BuffSizes, buffers)
	}
	for c := range n {
		swapped := contradicts(c, l.NRanks, at)
		for r := range l.NRanks {
			ring, tree := l.Channels[c].Ring[r], l.Channels[c].Tree[r]
			is := []int32{ring.Prev, ring.Next, tree.Up, tree.Down[0], tree.Down[1], tree.Down[2]}
			want := at(c, r)
			if swapped { // of its rings the order of rank 0 alone counts
				i, o := slices.Index(order[c], int32(r)), order[c]
				want = append([]int32{o[(i+len(o)-1)%len(o)], o[(i+1)%len(o)]}, want[2:]...)
			}
			if !slices.Equal(is, want) {
				return fmt.Sprintf("channel %d rank %d: %v, want %v", c, r, is, want)
			}
		}
	}
	return ""
}
