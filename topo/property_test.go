package topo_test

import (
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/show"
	topoxml "github.com/simccl/simccl/topo/xml"
)

func ownMachines(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(golden.Root(t, "testdata", "topos", "*.xml"))
	if err != nil || len(files) == 0 {
		t.Fatal("no topologies", err)
	}
	var out []string
	for _, f := range files {
		out = append(out, strings.TrimSuffix(filepath.Base(f), ".xml"))
	}
	return out
}

// figures lists every path of a System by the names of its ends, with kind and
// bandwidth, in an order that does not depend on the System's.
func figures(s *topo.System) []string {
	name := func(n topo.NodeID) string {
		if g := s.Nodes[n].GPU; g != nil {
			return fmt.Sprintf("GPU %d/%s", g.Host, g.BusID)
		}
		if net := s.Nodes[n].Net; net != nil {
			return fmt.Sprintf("NET %d/%s", net.Host, net.Name)
		}
		return s.Name(n)
	}
	var out []string
	var ends []topo.NodeID
	for _, k := range []topo.NodeKind{topo.GPU, topo.NET, topo.CPU, topo.NVS} {
		ends = append(ends, s.Of(k)...)
	}
	for _, a := range ends {
		for _, b := range ends {
			p := s.Path(a, b)
			out = append(out, fmt.Sprintf("%s > %s: %s %g GB/s %d hops", name(a), name(b), p.Kind,
				float32(p.BW), len(p.Links)))
		}
	}
	sort.Strings(out)
	return append(out, fmt.Sprintf("maxBw %g totalBw %g", float32(s.MaxBW), float32(s.TotalBW)))
}

// buildPlain builds without PXN, which goes by the order of nets.
func buildPlain(t *rapid.T, spec *topo.Spec) *topo.System {
	p := topo.DefaultParams()
	p.PXNDisable = true
	p.NRanks = 1 << 12
	h, err := topo.Build(spec, p)
	if err != nil {
		t.Fatal(err)
	}
	return h.Systems[0]
}

// shuffle puts the children of every element in another order, except links
// of one GPU, which add up in order.
func shuffle(t *rapid.T, e *topo.Element) {
	if len(e.Children) > 1 {
		e.Children = rapid.Permutation(e.Children).Draw(t, "order")
	}
	for _, c := range e.Children {
		shuffle(t, c)
	}
}

// TestOrderOfSiblingsDoesNotMatter: the order of siblings in the file changes
// indices, never what a path can carry.
func TestOrderOfSiblingsDoesNotMatter(t *testing.T) {
	machines := ownMachines(t)
	specs := map[string]*topo.Spec{}
	for _, m := range machines {
		specs[m] = ownSpec(t, m)
	}
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(machines).Draw(t, "machine")
		want := figures(buildPlain(t, specs[m]))
		other := *specs[m]
		other.Root = specs[m].Root.Clone()
		shuffle(t, other.Root)
		if d := cmp.Diff(want, figures(buildPlain(t, &other))); d != "" {
			t.Fatalf("%s: %s", m, d)
		}
	})
}

// TestAddressesDoNotMatter: moving all devices to another PCI domain changes
// names alone.
func TestAddressesDoNotMatter(t *testing.T) {
	for _, m := range ownMachines(t) {
		spec := ownSpec(t, m)
		moved := *spec
		moved.Root = spec.Root.Clone()
		moved.Root.Walk(func(e *topo.Element, _ []*topo.Element) {
			for _, a := range []string{"busid", "target"} {
				if v, ok := e.Get(a); ok && strings.Index(v, ":") == 4 {
					e.Set(a, "a"+v[1:])
				}
			}
		})
		p := topo.DefaultParams()
		p.NRanks = 1 << 12
		a, err := topo.Build(spec, p)
		if err != nil {
			t.Fatal(err)
		}
		b, err := topo.Build(&moved, p)
		if err != nil {
			t.Fatal(err)
		}
		strip := func(s *topo.System) show.PathsSection {
			d := show.Paths(s)
			for _, m := range [][][]show.PathEntry{d.GPUGPU, d.GPUNet, d.NetGPU, d.GPUCPU, d.GPUNVS,
				d.NetCPU} {
				for _, row := range m {
					for i := range row {
						row[i].Via = nil
					}
				}
			}
			return d
		}
		for i := range a.Systems {
			if d := cmp.Diff(strip(a.Systems[i]), strip(b.Systems[i])); d != "" {
				t.Errorf("%s: %s", m, d)
			}
		}
	}
}

// TestPathsHold: every path starts and ends where it says, its links follow
// each other, and none carries less than the path claims.
func TestPathsHold(t *testing.T) {
	for _, m := range ownMachines(t) {
		p := topo.DefaultParams()
		p.NRanks = 1 << 12
		h, err := topo.Build(ownSpec(t, m), p)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range h.Systems {
			for _, k := range []topo.NodeKind{topo.GPU, topo.NET, topo.CPU, topo.NVS} {
				for _, to := range s.Of(k) {
					for _, fk := range []topo.NodeKind{topo.GPU, topo.NET, topo.CPU} {
						for _, from := range s.Of(fk) {
							holds(t, m, s, from, to)
						}
					}
				}
			}
		}
	}
}

func holds(t *testing.T, machine string, s *topo.System, from, to topo.NodeID) {
	path := s.Path(from, to)
	at := from
	for _, l := range path.Links {
		link := s.Links[l]
		if link.From != at || link.BW < path.BW {
			t.Errorf("%s: %s > %s: link %s > %s of %g GB/s in a path of %g GB/s", machine, s.Name(from),
				s.Name(to),
				s.Name(link.From), s.Name(link.To), float32(link.BW), float32(path.BW))
		}
		at = link.To
	}
	if len(path.Links) > 0 && at != to {
		t.Errorf("%s: the path from %s to %s ends at %s", machine, s.Name(from), s.Name(to), s.Name(at))
	}
}

// TestBuildTwiceIsTheSame: a Spec is not changed by what is built of it.
func TestBuildTwiceIsTheSame(t *testing.T) {
	for _, m := range ownMachines(t) {
		spec := ownSpec(t, m)
		before := string(topoxml.Write(spec.Root))
		p := topo.DefaultParams()
		p.NRanks = 1 << 12
		a, err := topo.Build(spec, p)
		if err != nil {
			t.Fatal(err)
		}
		b, err := topo.Build(spec, p)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(show.System(a.Systems[0]), show.System(b.Systems[0])); d != "" {
			t.Errorf("%s: %s", m, d)
		}
		if after := string(topoxml.Write(spec.Root)); after != before {
			t.Errorf("%s: building changed the Spec: %s", m, cmp.Diff(before, after))
		}
	}
}
