package preset_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/search/graphxml"
	"github.com/simccl/simccl/search/preset"
	"github.com/simccl/simccl/topo"
	topodoc "github.com/simccl/simccl/topo/show"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// decided is what RCCL decides of a host up to its graphs.
type decided struct {
	sys, after *topo.System
	found      *preset.Result
	set        search.Set
}

func decide(t testing.TB, r *golden.Reference) decided {
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
		t.Fatalf("%s: %v", r.Name, err)
	}
	d := decided{sys: h.System(0)}
	d.found = preset.Of(d.sys, preset.Host{Count: r.Nodes, Ranks: p.NRanks})
	d.sys = d.found.System(d.sys)
	if d.set, d.after, err = search.AllAndAfter(d.sys,
		d.found.Params(d.sys, search.Params{Rules: rs})); err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	return d
}

// wanted is a graph of a reference.
type wanted struct {
	NChannels, MinChannels, MaxChannels, NHops, NIntraChannels int
	BWIntra, BWInter                                           float64
	TypeIntra, TypeInter                                       string
	SameChannels, CrossNIC                                     int
	Channels                                                   []struct {
		Intra []int
		Inter []string
	}
}

func (d *decided) diff(t testing.TB, r *golden.Reference) string {
	t.Helper()
	var graphs []wanted
	r.Section(t, "graphs", &graphs)
	for id, w := range graphs {
		g := d.set[id]
		near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-5*max(a, b) }
		is := wanted{NChannels: g.NChannels, MinChannels: g.MinChannels, MaxChannels: g.MaxChannels,
			NHops:          g.NHops,
			NIntraChannels: g.NIntraChannels, BWIntra: w.BWIntra, BWInter: w.BWInter,
			TypeIntra: d.sys.PathName(g.TypeIntra), TypeInter: d.sys.PathName(g.TypeInter),
			SameChannels: g.SameChannels, CrossNIC: g.CrossNIC}
		list := w.Channels
		w.Channels = nil
		if fmt.Sprint(is) != fmt.Sprint(w) || !near(float64(g.BWIntra), w.BWIntra) ||
			!near(float64(g.BWInter), w.BWInter) {
			return fmt.Sprintf("graph %d: %+v %g/%g, want %+v", id, is, g.BWIntra, g.BWInter, w)
		}
		for c := range list {
			inter := []string{}
			if len(d.sys.Of(topo.NET)) > 0 {
				inter = append(inter, fmt.Sprintf("NET/0-%x", g.Inter[c][0]),
					fmt.Sprintf("NET/0-%x", g.Inter[c][1]))
			}
			if fmt.Sprint(g.Intra[c], inter) != fmt.Sprint(list[c].Intra, list[c].Inter) {
				return fmt.Sprintf("graph %d channel %d: %v %v, want %v", id, c, g.Intra[c], inter, list[c])
			}
		}
	}
	return ""
}

// TestGraphsAreRCCLs compares what RCCL decides of a host up to its graphs with every reference.
func TestGraphsAreRCCLs(t *testing.T) {
	for _, version := range []string{"2.30.4", "2.28.3"} {
		refs := golden.RCCL(t, version)
		same := map[string]int{}
		for i := range refs {
			r := &refs[i]
			r.Load(t)
			d := decide(t, r)
			check := func(what, diff string) {
				if diff == "" {
					same[what]++
				} else {
					t.Errorf("%s, %s: %s: %s", version, r.Name, what, diff)
				}
			}
			check("graphs", d.diff(t, r))
			var file string
			r.Section(t, "graphXml", &file)
			if text, err := graphxml.Write(d.sys, d.set); err != nil || string(text) != file {
				check("graphXml", fmt.Sprintf("differs (%v)", err))
			} else {
				check("graphXml", "")
			}
			var own struct{ TopoType, RomeTopoModelIdx int }
			r.Section(t, "rccl", &own)
			if k := int(d.found.Kinds); k != own.TopoType || own.RomeTopoModelIdx > -2 &&
				own.RomeTopoModelIdx != d.found.Model {
				check("model", fmt.Sprintf("%d of kind %d, want %+v", d.found.Model, k, own))
			} else {
				check("model", "")
			}
			var sys any
			r.Section(t, "system", &sys)
			check("system", systemDiff(t, sys, topodoc.System(d.after)))
			check("rivals", d.rivals())
			r.Doc = nil
		}
		t.Logf("RCCL %s of %d: %v", version, len(refs), same)
	}
}

// rivals reports whether each model of the release is the machine's, or has a reason why it is not, and none
// before the one that is taken fits as well.
func (d *decided) rivals() string {
	list, others := d.found.Rivals()
	n, want := len(list)+others, d.sys.Rules.Search.Presets
	if m := d.found.Model; m >= 0 && m < want {
		n++
		if d.found.Line == 0 || d.found.Matcher == "" {
			return fmt.Sprintf("model %d without line or matcher: %+v", m, d.found)
		}
	}
	for _, v := range list {
		if v.Line == 0 || v.Why == "" || d.found.Model < 0 && strings.Contains(v.Why, "fits") {
			return fmt.Sprintf("model %d, and of rival %s %q", d.found.Model, v.Name, v.Why)
		}
	}
	if n != want {
		return fmt.Sprintf("%d models have a reason, want %d", n, want)
	}
	return ""
}

// systemDiff compares the links of all nodes, whose speeds the searches leave changed.
func systemDiff(t testing.TB, want, doc any) string {
	t.Helper()
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	return differ("system", want, got)
}

func differ(at string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for k := range w { //lint:sorted any difference will do
			if d := differ(at+"."+k, w[k], g[k]); d != "" {
				return d
			}
		}
		return ""
	case []any:
		g, _ := got.([]any)
		if len(g) != len(w) {
			return fmt.Sprintf("%s: %d entries, want %d", at, len(g), len(w))
		}
		for i := range w {
			if d := differ(fmt.Sprintf("%s[%d]", at, i), w[i], g[i]); d != "" {
				return d
			}
		}
		return ""
	case float64:
		if g, ok := got.(float64); ok && math.Abs(g-w) <= 1e-5*max(math.Abs(g), math.Abs(w)) {
			return ""
		}
	}
	if want != got {
		return fmt.Sprintf("%s: %v, want %v", at, got, want)
	}
	return ""
}
