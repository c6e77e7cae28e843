package show_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/decision"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/show"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// files are the project's topologies, and those beside the checkout.
func files(t *testing.T) []string {
	var out []string
	for _, dir := range []string{golden.Root(t, "testdata", "topos"), golden.Root(t, "..", "shared", "topos",
		"nvidia"), golden.Root(t, "..", "shared", "topos", "odd")} {
		list, err := filepath.Glob(filepath.Join(dir, "*.xml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			if !strings.HasSuffix(f, ".graph.xml") {
				out = append(out, f)
			}
		}
	}
	return out
}

// decide returns the sections that name no device, or the error.
func decide(text []byte, nodes int) map[string]string {
	s := scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "a.xml", Count: nodes}}}}
	site, err := scenario.Load(&s, scenario.Options{Files: fstest.MapFS{"a.xml": {Data: text}}})
	if err != nil {
		return map[string]string{"error": "no communicator"}
	}
	doc, _, err := decision.Of(site.Comm, site.Cluster, nil)
	if err != nil {
		return map[string]string{"error": "no decision"}
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(doc, &whole); err != nil {
		return map[string]string{"error": err.Error()}
	}
	out := map[string]string{}
	for _, key := range []string{"nRanks", "graphs", "graphXml", "graphsFinal", "channels", "tuning",
		"selection"} {
		out[key] = string(whole[key])
	}
	return out
}

// TestDecisionsStay: NCCL decides the same without the names.
func TestDecisionsStay(t *testing.T) {
	for _, file := range files(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := topoxml.Parse(text, file)
		if err != nil {
			continue // odd files that are refused
		}
		hidden := topoxml.Write(show.Nameless(spec.Root))
		for _, nodes := range []int{1, 2} {
			want, got := decide(text, nodes), decide(hidden, nodes)
			for key := range want {
				if want[key] != got[key] {
					t.Errorf("%s, %d nodes: %s differs", filepath.Base(file), nodes, key)
				}
			}
		}
	}
}

// numbered are names that the driver gives on every host.
var numbered = regexp.MustCompile(`^mlx5_\d+(\+mlx5_\d+)*$`)

// TestNamesAreGone: no original host hash, GUID, bus id or name is left; attributes
// and elements that NCCL does not know are left out.
func TestNamesAreGone(t *testing.T) {
	for _, file := range files(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := topoxml.Parse(text, file)
		if err != nil {
			continue
		}
		old := map[string]bool{}
		spec.Root.Walk(func(e *decl.Element, _ []*decl.Element) {
			for _, attr := range []string{"name", "guid", "host_hash"} {
				v, ok := e.Get(attr)
				if n, err := strconv.ParseUint(v, 0, 64); err == nil && n < 1<<16 || numbered.MatchString(v) {
					continue // a placeholder, or a name that the driver gives
				}
				if ok {
					old[attr+`="`+v+`"`] = true
				}
			}
		})
		hidden := string(topoxml.Write(show.Nameless(spec.Root)))
		for v := range old {
			if strings.Contains(hidden, v) {
				t.Errorf("%s: %s is still there", filepath.Base(file), v)
			}
		}
	}
	root := &decl.Element{Name: "system", Attrs: []decl.Attr{{Name: "version", Value: "1"},
		{Name: "site", Value: "secret"}}}
	root.Append(&decl.Element{Name: "rack", Attrs: []decl.Attr{{Name: "name", Value: "r17"}}})
	if got := string(topoxml.Write(show.Nameless(root))); strings.Contains(got, "secret") ||
		strings.Contains(got, "r17") {
		t.Errorf("unknown parts are left:\n%s", got)
	}
}

// TestBusIDsKeepTheirOrder: devices stay in order, functions of one device together,
// and the virtual NVSwitch is none.
func TestBusIDsKeepTheirOrder(t *testing.T) {
	root := &decl.Element{Name: "system"}
	for _, id := range []string{"0000:c1:00.1", "0000:c1:00.0", "0000:05:00.0", "0001:01:00.0"} {
		root.Append(&decl.Element{Name: "pci", Attrs: []decl.Attr{{Name: "busid", Value: id}}})
	}
	root.Append(&decl.Element{Name: "nvlink", Attrs: []decl.Attr{{Name: "target", Value: "fffffff:ff:ff.0"}}})
	var got []string
	for _, c := range show.Nameless(root).Children {
		for _, a := range c.Attrs {
			got = append(got, a.Value)
		}
	}
	if want := "0000:02:00.1 0000:02:00.0 0000:01:00.0 0000:03:00.0 fffffff:ff:ff.0"; strings.Join(got,
		" ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
