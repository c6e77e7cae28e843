package scenario_test

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/topo/decl"
)

// trays are the files of a rack: tray.xml, and sick0.xml to sick3.xml without the NVLinks of one GPU.
func trays(t *testing.T) (fstest.MapFS, [5]string) {
	t.Helper()
	var texts [5]string
	texts[4] = string(builtin.Lookup("gb200-nvl72").XML())
	files := fstest.MapFS{"tray.xml": {Data: []byte(texts[4])}}
	links := regexp.MustCompile(`(?s)(<gpu dev="(\d)"[^>]*>)\s*<nvlink[^>]*>`)
	for gpu := range 4 {
		texts[gpu] = links.ReplaceAllStringFunc(texts[4], func(s string) string {
			if m := links.FindStringSubmatch(s); m[2] == fmt.Sprint(gpu) {
				return m[1]
			}
			return s
		})
		if len(texts[gpu]) == len(texts[4]) {
			t.Fatalf("GPU %d has no NVLinks", gpu)
		}
		files[fmt.Sprintf("sick%d.xml", gpu)] = &fstest.MapFile{Data: []byte(texts[gpu])}
	}
	return files, texts
}

// rackWithout is a rack of 18 trays, one GPU of which has no NVLinks.
func rackWithout(rank int) scenario.Spec {
	var s scenario.Spec
	for _, n := range []scenario.Nodes{{Topo: "tray.xml", Count: rank / 4}, {Topo: fmt.Sprintf("sick%d.xml", rank%4),
		Count: 1}, {Topo: "tray.xml", Count: 17 - rank/4}} {
		if n.Count > 0 {
			s.Machine.Nodes = append(s.Machine.Nodes, n)
		}
	}
	s.Machine.NVLinkDomain = 18
	return s
}

// TestOneDeadGPUOfARackIsNamed: at each of 72 places explain names the GPU without NVLinks, and of
// three places the decisions are those of one file that lists the 18 trays.
func TestOneDeadGPUOfARackIsNamed(t *testing.T) {
	files, texts := trays(t)
	hosts := regexp.MustCompile(`<cpu( host_hash="[^"]*")?`)
	for rank := range 72 {
		if testing.Short() && rank%13 != 0 {
			continue
		}
		spec := rackWithout(rank)
		site, err := scenario.Load(&spec, scenario.Options{Files: files})
		if err != nil {
			t.Fatal(err)
		}
		r, err := explain.New(explain.Input{Comm: site.Comm, Access: site.Config.Topo.Access,
			Op: comm.Op{Func: coll.AllReduce, Count: 1 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("rank %d (GPU %d of host %d of the NVLink domain", rank, rank%4, rank/4)
		if n := strings.Count(r.Text(), name); n < 2 {
			t.Errorf("%s is named %d times, want with the ring and with NVLS", name, n)
		}
		if rank != 0 && rank != 39 && rank != 71 {
			continue
		}
		fused := `<system version="1">`
		for i := range 18 {
			text := texts[4]
			if i == rank/4 {
				text = texts[rank%4]
			}
			text = text[strings.Index(text, "<cpu"):strings.LastIndex(text, "</system>")]
			fused += hosts.ReplaceAllString(text, fmt.Sprintf(`<cpu host_hash="0x%x"`, i+100))
		}
		files["fused.xml"] = &fstest.MapFile{Data: []byte(fused + "</system>")}
		whole, err := scenario.Load(&scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "fused.xml"}}}},
			scenario.Options{Files: files})
		if err != nil {
			t.Fatal(err)
		}
		a, b := site.Comm, whole.Comm
		if !reflect.DeepEqual(a.Channels, b.Channels) || !reflect.DeepEqual(a.Final, b.Final) ||
			a.NVLSChannels != b.NVLSChannels || a.P2PChannels != b.P2PChannels ||
			a.P2PChannelsPerPeer != b.P2PChannelsPerPeer || !reflect.DeepEqual(a.Model.Bandwidth, b.Model.Bandwidth) {
			t.Errorf("rank %d dead: other decisions than of the fused file", rank)
		}
	}
}

// TestLastDomainHasTheHostsThatAreLeft: over all entries, with faults that make hosts unequal, and where a
// built-in machine has the domain.
func TestLastDomainHasTheHostsThatAreLeft(t *testing.T) {
	files, _ := trays(t)
	for _, x := range []struct {
		spec scenario.Spec
		want string
	}{
		{scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "gb200-nvl72", Count: 20}}}}, "72 8"},
		{scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "gb200-nvl72", Count: 19}}}}, "72 4"},
		{scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "gb200-nvl72", Count: 38}}}}, "72 72 8"},
		{scenario.Spec{Machine: scenario.Machine{NVLinkDomain: 2, Nodes: []scenario.Nodes{{Topo: "tray.xml"},
			{Topo: "sick1.xml"}, {Topo: "tray.xml", Count: 3}}}}, "8 8 4"},
		{scenario.Spec{Machine: scenario.Machine{NVLinkDomain: 4, Nodes: []scenario.Nodes{{Topo: "tray.xml", Count: 3},
			{Topo: "sick1.xml"}, {Topo: "tray.xml", Count: 10}}}}, "16 16 16 8"},
		{scenario.Spec{Machine: scenario.Machine{NVLinkDomain: 4, Nodes: []scenario.Nodes{{Topo: "tray.xml", Count: 4},
			{Topo: "dgx-h100"}, {Topo: "tray.xml"}}}}, "16 12"},
		{scenario.Spec{Machine: scenario.Machine{NVLinkDomain: 3, Nodes: []scenario.Nodes{{Topo: "tray.xml"}}}}, "12"},
		{scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "gb200-nvl72", Count: 20}}},
			Network: scenario.Network{Faults: []string{"gpu=node19/3:absent"}}}, "72 7"},
	} {
		site, err := scenario.Layout(&x.spec, scenario.Options{Files: files})
		if err != nil {
			t.Errorf("%+v: %v", x.spec.Machine, err)
			continue
		}
		var got []string
		for h := range site.Cluster.NHosts() {
			if site.Cluster.NoFabric != "" {
				t.Errorf("%+v: %s has no fabric", x.spec.Machine, site.Cluster.NoFabric)
			}
			got = append(got, fmt.Sprint(site.Cluster.Host(h).NRanks()))
		}
		if s := strings.Join(got, " "); s != x.want {
			t.Errorf("%+v: domains of %s ranks, want %s", x.spec.Machine, s, x.want)
		}
	}
}

// TestEqualDomainsAreBuiltOnce: 4 racks are one class.
func TestEqualDomainsAreBuiltOnce(t *testing.T) {
	spec := scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "gb200-nvl72", Count: 74}}}}
	site, err := scenario.Layout(&spec, scenario.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(site.Cluster.Classes); n != 2 || site.Cluster.Classes[0].Count != 4 {
		t.Errorf("%d classes", n)
	}
	if h := decl.Hosts(site.Cluster.Classes[0].Spec); len(h) != 18 {
		t.Errorf("%d hosts", len(h))
	}
}
