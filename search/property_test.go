package search_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/refsys"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

func drawParams(t *rapid.T) search.Params {
	p := search.Params{Rules: rules.Default(), NVLS: rapid.Bool().Draw(t, "nvls"),
		CollNet: rapid.Bool().Draw(t, "collnet")}
	if c := rapid.IntRange(-1, 2).Draw(t, "cross"); c >= 0 {
		p.CrossNIC = units.Some(c)
	}
	return p
}

// forgetRepeats drops the only thing in which a search with shortcuts may
// differ from one without.
func forgetRepeats(s search.Set) search.Set {
	for _, g := range s {
		for i := range g.Attempts {
			g.Attempts[i].Repeated = false
		}
	}
	return s
}

// TestShortcutsChangeNothing: counting in thousandths, leaving spent searches
// early and not repeating equal attempts give the same graphs as NCCL,
// after the same number of steps at every attempt.
func TestShortcutsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sys, p := drawSystem(t, 4), drawParams(t)
		quick, err := search.All(sys, p)
		if err != nil {
			t.Fatal(err)
		}
		slow, err := search.AllToTheLetter(sys, p)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(forgetRepeats(slow), forgetRepeats(quick)); d != "" {
			t.Fatalf("to the letter (-) and with shortcuts (+):\n%s", d)
		}
	})
}

// TestShortcutsChangeNothingOnMachines is the same on real machines.
func TestShortcutsChangeNothingOnMachines(t *testing.T) {
	for _, r := range golden.Own(t) {
		if len(r.Env) > 0 || r.Nodes > 2 || testing.Short() && r.Machine != "dgx-a100" {
			continue
		}
		r.Load(t)
		sys, p := refsys.System(t, &r), paramsOf(t, &r)
		p.CollNet = true
		quick, err := search.All(sys, p)
		if err != nil {
			t.Fatal(err)
		}
		slow, err := search.AllToTheLetter(sys, p)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(forgetRepeats(slow), forgetRepeats(quick)); d != "" {
			t.Errorf("%s: to the letter (-) and with shortcuts (+):\n%s", r.Name, d)
		}
	}
}

// TestChannelsVisitEveryGPUOnce: rings and trees order all ranks, nets exist,
// and a search on its own agrees with the ring of All.
func TestChannelsVisitEveryGPUOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sys, p := drawSystem(t, 6), drawParams(t)
		set, err := search.All(sys, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range set {
			if g.NChannels != len(g.Intra) || g.NChannels != len(g.Inter) {
				t.Fatalf("%s: %d channels, %d orders, %d nets", g.Name, g.NChannels, len(g.Intra),
					len(g.Inter))
			}
			for c, order := range g.Intra {
				checkOrder(t, sys, g, c, order)
			}
		}
		alone, err := search.Compute(sys, search.Want{ID: search.RingID, Pattern: search.RingPattern,
			MinChannels: 1, MaxChannels: 32}, p)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(set[search.RingID], alone); d != "" {
			t.Fatal(d)
		}
	})
}

func checkOrder(t *rapid.T, sys *topo.System, g *search.Graph, c int, order []int) {
	want := counted(len(sys.Of(topo.GPU)))
	if sorted := slices.Sorted(slices.Values(order)); g.ID != search.NVLSID && !slices.Equal(sorted, want) {
		t.Fatalf("%s channel %d visits %v", g.Name, c, order)
	}
	if g.ID == search.NVLSID && (len(order) != 1 || order[0] >= len(want)) {
		t.Fatalf("%s channel %d has heads %v", g.Name, c, order)
	}
	for _, id := range g.Inter[c] {
		if id != 0 && !slices.ContainsFunc(sys.Of(topo.NET), func(n topo.NodeID) bool {
			return sys.Nodes[n].Ident == id
		}) {
			t.Fatalf("%s channel %d uses net %#x, which does not exist", g.Name, c, id)
		}
	}
}

// scaled returns the system with every speed multiplied.
func scaled(s *topo.System, by units.GBps) *topo.System {
	nodes, links := slices.Clone(s.Nodes), slices.Clone(s.Links)
	for i := range links {
		links[i].BW *= by
	}
	for i := range nodes {
		if nodes[i].Kind == topo.NET {
			info := *nodes[i].Net
			info.BW *= by
			nodes[i].Net = &info
		}
	}
	out := topo.Assemble(rules.Default(), nodes, links, func(from, base topo.NodeID) topo.Path {
		p := s.Path(from, base)
		p.BW *= by
		return p
	})
	out.Inter, out.NHosts, out.NetDevs = s.Inter, s.NHosts, s.NetDevs
	out.MaxBW, out.TotalBW = s.MaxBW*by, s.TotalBW*by
	return out
}

// TestFasterMachinesRingFaster: a machine with all links faster has rings that
// carry at least as much.
func TestFasterMachinesRingFaster(t *testing.T) {
	for _, r := range golden.Own(t) {
		if len(r.Env) > 0 || r.Multicast || r.Nodes > 2 {
			continue
		}
		r.Load(t)
		sys := refsys.System(t, &r)
		last := float32(0)
		for _, by := range golden.Few([]units.GBps{1, 1.25, 1.5, 2, 4}, 2) {
			set, err := search.All(scaled(sys, by), search.Params{Rules: rules.Default()})
			if err != nil {
				t.Fatal(err)
			}
			g := set[search.RingID]
			total := float32(g.NChannels) * float32(g.BWIntra)
			if total < last*.999 {
				t.Errorf("%s: %g times faster, but its rings carry %g instead of %g GB/s", r.Name, by, total,
					last)
			}
			last = total
		}
	}
}

// relabelled gives rank r of every GPU the name of another, keeping all else.
func relabelled(s *topo.System, ranks []int) *topo.System {
	nodes := slices.Clone(s.Nodes)
	for i, id := range s.Of(topo.GPU) {
		info := *nodes[id].GPU
		info.Rank = ranks[i]
		nodes[id].GPU = &info
	}
	out := topo.Assemble(rules.Default(), nodes, s.Links, s.Path)
	out.Inter, out.NHosts, out.NetDevs, out.MaxBW, out.TotalBW = s.Inter, s.NHosts, s.NetDevs, s.MaxBW,
		s.TotalBW
	return out
}

// TestRanksAreNames: a search goes by the machine, not by rank numbers; other
// numbers give the same graphs with those numbers.
func TestRanksAreNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sys, p := drawSystem(t, 5), drawParams(t)
		gpus := sys.Of(topo.GPU)
		ranks := rapid.Permutation(counted(len(gpus))).Draw(t, "new ranks")
		rename := make([]int, len(gpus))
		for i, id := range gpus {
			rename[sys.Nodes[id].GPU.Rank] = ranks[i]
		}
		was, err := search.All(sys, p)
		if err != nil {
			t.Fatal(err)
		}
		now, err := search.All(relabelled(sys, ranks), p)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range was {
			for _, order := range g.Intra {
				for i, r := range order {
					order[i] = rename[r]
				}
			}
		}
		if d := cmp.Diff(was, now); d != "" {
			t.Fatal(d)
		}
	})
}

// TestGivenGraphsReplaceTheSearch: a graph from NCCL_GRAPH_FILE comes back as it
// is; one that does not fit the host is an error.
func TestGivenGraphsReplaceTheSearch(t *testing.T) {
	r := golden.Own(t)[0]
	r.Load(t)
	sys := refsys.System(t, &r)
	set, err := search.All(sys, search.Params{Rules: rules.Default()})
	if err != nil {
		t.Fatal(err)
	}
	mine := *set[search.RingID]
	mine.NChannels, mine.Intra, mine.Inter = 1, mine.Intra[:1], mine.Inter[:1]
	mine.BWIntra, mine.BWInter = 7, 7
	again, err := search.All(sys, search.Params{Rules: rules.Default(), Given: []*search.Graph{&mine}})
	if err != nil {
		t.Fatal(err)
	}
	got := again[search.RingID]
	if got.NChannels != 1 || got.BWIntra != 7 || fmt.Sprint(got.Intra) != fmt.Sprint(mine.Intra) {
		t.Errorf("given %+v, got %+v", mine, got)
	}
	if tree := again[search.TreeID]; tree.MaxChannels != 1 {
		t.Errorf("the tree may have %d channels; the given ring has 1", tree.MaxChannels)
	}
	bad := mine
	bad.Intra = [][]int{{99}}
	if _, err := search.All(sys, search.Params{Rules: rules.Default(), Given: []*search.Graph{&bad}}); err ==
		nil {
		t.Error("a given graph with rank 99 was accepted")
	}
	crossing := mine
	crossing.CrossNIC = 1
	again, err = search.All(sys, search.Params{Rules: rules.Default(), Given: []*search.Graph{&crossing},
		CrossNIC: units.Some(0)})
	if err != nil {
		t.Fatal(err)
	}
	if again[search.RingID].BWIntra == 7 {
		t.Error("a given graph that crosses nets was used although NCCL_CROSS_NIC=0 forbids it")
	}
}

// FuzzSearch looks for machines on which a search fails or panics.
func FuzzSearch(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		sys, p := drawSystem(t, 5), drawParams(t)
		set, err := search.All(sys, p)
		if err != nil {
			t.Fatal(err)
		}
		if g := set[search.RingID]; g.NChannels < 1 || math.IsNaN(float64(g.BWIntra)) || g.BWIntra <= 0 {
			t.Fatalf("no ring: %+v", g)
		}
	}))
}

// TestComputeWantsOneRelease: a search by the rules of another release than the machine's is refused.
func TestComputeWantsOneRelease(t *testing.T) {
	r := golden.Own(t)[0]
	r.Load(t)
	sys := refsys.System(t, &r)
	old, err := rules.For("2.21.5")
	if err != nil {
		t.Fatal(err)
	}
	want := search.Want{ID: search.RingID, Pattern: search.RingPattern, MinChannels: 1, MaxChannels: 1}
	for _, p := range []search.Params{{Rules: old}, {Rules: rules.Default()}} {
		g, err := search.Compute(sys, want, p)
		if (err == nil) != (p.Rules != old) || (g == nil) != (err != nil) {
			t.Errorf("%s: %v, %v", p.Rules.Version(), g, err)
		}
	}
}
