package search_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/refsys"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// paramsOf reads the settings of a reference's run that the search knows.
func paramsOf(t testing.TB, r *golden.Reference) search.Params {
	p := search.Params{Rules: rules.Default(), NVLS: r.Multicast}
	for _, name := range []string{"NCCL_CROSS_NIC", "NCCL_MNNVL_RAIL_PER_HOST",
		"NCCL_MNNVL_SCATTER_NETS_ENABLE", "NCCL_NVLS_ENABLE"} {
		text, ok := r.Env[name]
		if !ok {
			continue
		}
		v, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		switch name {
		case "NCCL_CROSS_NIC":
			p.CrossNIC = units.Some(v)
		case "NCCL_MNNVL_RAIL_PER_HOST":
			p.RailPerHost = units.Some(v != 0)
		case "NCCL_MNNVL_SCATTER_NETS_ENABLE":
			p.ScatterNets = units.Some(v != 0)
		case "NCCL_NVLS_ENABLE":
			p.NVLS = p.NVLS && v != 0
		}
	}
	return p
}

func near(a, b float32) bool {
	return math.Abs(float64(a)-float64(b)) <= 1e-5*math.Max(math.Abs(float64(a)), math.Abs(float64(b)))
}

// diffGraph names the first difference between a graph and NCCL's.
func diffGraph(t testing.TB, got *search.Graph, want *refsys.Graph) string {
	if got == nil {
		return "no graph"
	}
	for _, f := range []struct {
		name      string
		got, want int
	}{
		{"id", got.ID, want.ID}, {"pattern", int(got.Pattern), want.Pattern},
		{"nChannels", got.NChannels, want.NChannels},
		{"typeIntra", int(got.TypeIntra), int(refsys.PathKind(t, want.TypeIntra))},
		{"typeInter", int(got.TypeInter), int(refsys.PathKind(t, want.TypeInter))},
		{"sameChannels", got.SameChannels, want.SameChannels}, {"crossNic", got.CrossNIC, want.CrossNIC},
		{"nHops", got.NHops, want.NHops},
		{"minChannels", got.MinChannels, want.MinChannels}, {"maxChannels", got.MaxChannels,
			want.MaxChannels},
		{"channels", len(got.Intra), len(want.Channels)},
	} {
		if f.got != f.want {
			return fmt.Sprintf("%s %d, NCCL has %d", f.name, f.got, f.want)
		}
	}
	if got.Name != want.Name {
		return fmt.Sprintf("name %q, NCCL has %q", got.Name, want.Name)
	}
	if !near(float32(got.BWIntra), want.BWIntra) || !near(float32(got.BWInter), want.BWInter) ||
		!near(got.LatencyInter, want.LatencyInter) {
		return fmt.Sprintf("bandwidths %g/%g latency %g, NCCL has %g/%g %g", got.BWIntra, got.BWInter,
			got.LatencyInter, want.BWIntra, want.BWInter, want.LatencyInter)
	}
	for c, w := range want.Channels {
		if fmt.Sprint(got.Intra[c]) != fmt.Sprint(w.Intra) {
			return fmt.Sprintf("channel %d visits %v, NCCL %v", c, got.Intra[c], w.Intra)
		}
		for i := range w.Inter {
			id := uint64(0)
			if w.Inter[i] != "" {
				id = refsys.Ident(t, w.Inter[i])
			}
			if got.Inter[c][i] != id {
				return fmt.Sprintf("channel %d nets %#x, NCCL %v", c, got.Inter[c], w.Inter)
			}
		}
	}
	return ""
}

// diffSet names the first difference between all graphs and a reference.
func diffSet(t testing.TB, r *golden.Reference, sys *topo.System) string {
	set, err := search.All(sys, paramsOf(t, r))
	if err != nil {
		return err.Error()
	}
	var want []refsys.Graph
	r.Section(t, "graphs", &want)
	for i, id := range search.Order() {
		if d := diffGraph(t, set[id], &want[i]); d != "" {
			return want[i].Name + ": " + d
		}
	}
	return ""
}

// TestGraphsAreNCCLs compares every graph with NCCL 2.28.9 (graph/search.cc
// ncclTopoCompute) on the systems and paths of the references.
func TestGraphsAreNCCLs(t *testing.T) {
	refs := golden.All(t)
	equal := 0
	for i := range refs {
		r := &refs[i]
		r.Load(t)
		if d := diffSet(t, r, refsys.System(t, r)); d != "" {
			t.Errorf("%s: %s", r.Name, d)
		} else {
			equal++
		}
	}
	t.Logf("graphs equal: %d of %d", equal, len(refs))
}
