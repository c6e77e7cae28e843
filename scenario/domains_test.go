package scenario_test

import (
	"context"
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
	"github.com/simccl/simccl/topo/fabric"
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
	for _, n := range []scenario.Nodes{{Topo: "tray.xml", Count: rank / 4},
		{Topo: fmt.Sprintf("sick%d.xml", rank%4),
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
		whole, err := scenario.Load(&scenario.Spec{
			Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "fused.xml"}}}},
			scenario.Options{Files: files})
		if err != nil {
			t.Fatal(err)
		}
		a, b := site.Comm, whole.Comm
		if !reflect.DeepEqual(a.Channels, b.Channels) || !reflect.DeepEqual(a.Final, b.Final) ||
			a.NVLSChannels != b.NVLSChannels || a.P2PChannels != b.P2PChannels ||
			a.P2PChannelsPerPeer != b.P2PChannelsPerPeer || !reflect.DeepEqual(a.Model.Bandwidth,
			b.Model.Bandwidth) {
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
		{scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "gb200-nvl72", Count: 20}}}},
			"72 8"},
		{scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "gb200-nvl72", Count: 19}}}},
			"72 4"},
		{scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "gb200-nvl72", Count: 38}}}},
			"72 72 8"},
		{scenario.Spec{Machine: scenario.Machine{NVLinkDomain: 2, Nodes: []scenario.Nodes{{Topo: "tray.xml"},
			{Topo: "sick1.xml"}, {Topo: "tray.xml", Count: 3}}}}, "8 8 4"},
		{scenario.Spec{Machine: scenario.Machine{NVLinkDomain: 4, Nodes: []scenario.Nodes{
			{Topo: "tray.xml", Count: 3},
			{Topo: "sick1.xml"}, {Topo: "tray.xml", Count: 10}}}}, "16 16 16 8"},
		{scenario.Spec{Machine: scenario.Machine{NVLinkDomain: 4, Nodes: []scenario.Nodes{
			{Topo: "tray.xml", Count: 4},
			{Topo: "dgx-h100"}, {Topo: "tray.xml"}}}}, "16 12"},
		{scenario.Spec{Machine: scenario.Machine{NVLinkDomain: 3, Nodes: []scenario.Nodes{
			{Topo: "tray.xml"}}}}, "12"},
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
	spec := scenario.Spec{
		Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "gb200-nvl72", Count: 74}}}}
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

// permuted are four GPUs behind NVSwitches whose CUDA numbers are not in the machine's order.
func permuted() string {
	gpu := func(bus string, dev int) string {
		return fmt.Sprintf(
			`<pci busid="0000:%s:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">`+
				`<gpu dev="%d" sm="90" gdr="1"><nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/></gpu></pci>`, bus, dev)
	}
	return `<system version="1"><cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="17">` +
		gpu("30", 3) + gpu("50", 0) +
		`</cpu><cpu numaid="1" affinity="ff00" arch="x86_64" vendor="AuthenticAMD" ` +
		`familyid="175" modelid="17">` + gpu("70", 1) + gpu("90", 2) + `</cpu></system>`
}

// TestNVLSWithPermutedDevicesIsWrongAsInNCCL: without registered buffers blocks of all_gather and
// reduce_scatter are where NCCL puts them, their elements count as wrong, and a warning says so; all_reduce
// is right.
func TestNVLSWithPermutedDevicesIsWrongAsInNCCL(t *testing.T) {
	files := fstest.MapFS{"p.xml": {Data: []byte(permuted())}}
	for _, x := range []struct {
		op, buffers, fold string
		wrong             int64 // blocks of 4096 elements
		warns             bool
	}{
		{"all_gather", "", "", 12, true}, {"all_gather", "", "off", 12, true}, {"all_gather", "registered",
			"", 0, true},
		{"reduce_scatter", "", "", 3, true}, {"reduce_scatter", "registered", "", 0, true},
		{"all_reduce", "", "", 0, false},
	} {
		var warned []string
		r, err := scenario.Run(context.Background(), scenario.Spec{
			Machine:  scenario.Machine{Nodes: []scenario.Nodes{{Topo: "p.xml"}}},
			NCCL:     scenario.NCCL{Env: map[string]string{"NCCL_ALGO": "NVLS"}},
			Engine:   scenario.Engine{Fold: x.fold},
			Workload: scenario.Workload{Op: x.op, Sizes: []string{"64K"}, Buffers: x.buffers}},
			scenario.Options{Files: files, Warn: func(err error) { warned = append(warned, err.Error()) }})
		if err != nil {
			t.Errorf("%+v: %v", x, err)
			continue
		}
		m := r.Rows[0].Out
		if !m.Checked || m.Wrong != x.wrong*4096 || m.Time <= 0 {
			t.Errorf("%+v: %+v", x, m)
		}
		if got := strings.Contains(strings.Join(warned, "\n"), "NVLS heads are ranks 0,3,1,2"); got !=
			x.warns {
			t.Errorf("%+v: warnings %q", x, warned)
		}
	}
}

// TestHostsOfDomainsAreNotPlaced: a list names hosts, and a node of the network is a whole domain.
func TestHostsOfDomainsAreNotPlaced(t *testing.T) {
	files := fstest.MapFS{"net.json": {Data: []byte("{}")}, "hosts.txt": {Data: []byte("n[1-2]\n")}}
	spec := &scenario.Spec{Workload: scenario.Workload{Op: "all_reduce"},
		Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "gb200-nvl72", Count: 2}}},
		Network: scenario.Network{Fabric: "net.json", Hosts: "hosts.txt"}}
	_, err := scenario.Load(spec, scenario.Options{Files: files})
	if err == nil || !strings.Contains(err.Error(),
		"NVLink domains of 18 hosts, which a list does not place") {
		t.Errorf("%v", err)
	}
}

// TestAListSaysHowManyHosts: as many as network.hosts lists where the machine's one kind of node has no
// number; a number has to be that of the list.
func TestAListSaysHowManyHosts(t *testing.T) {
	n, err := fabric.Generate(fabric.Layout{Kind: "leaf-spine", Hosts: 4, Nets: 8, Gbit: 400, PerLeaf: 2})
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"net.json": {Data: n.Format()},
		"hosts.txt": {Data: []byte(n.HostName(3) + "\n" + n.HostName(0) + "\n" + n.HostName(2) + "\n")}}
	for _, x := range []struct {
		nodes []scenario.Nodes
		want  string
	}{{nil, ""}, {[]scenario.Nodes{{Topo: "dgx-h100"}}, ""},
		{[]scenario.Nodes{{Topo: "dgx-h100", Count: 3}}, ""},
		{[]scenario.Nodes{{Topo: "dgx-h100", Count: 2}}, "3 hosts are listed and the machine has 2"},
		{[]scenario.Nodes{{Topo: "dgx-h100", Count: 1}, {Topo: "dgx-a100", Count: 1}},
			"3 hosts are listed and the machine has 2"}} {
		site, err := scenario.Load(&scenario.Spec{Workload: scenario.Workload{Op: "all_reduce"},
			Machine: scenario.Machine{Nodes: x.nodes}, Network: scenario.Network{Fabric: "net.json",
				Hosts: "hosts.txt"}}, scenario.Options{Files: files})
		switch {
		case x.want != "":
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%+v: %v, want %s", x.nodes, err, x.want)
			}
		case err != nil:
			t.Errorf("%+v: %v", x.nodes, err)
		case site.Comm.NNodes != 3:
			t.Errorf("%+v: %d nodes, want 3", x.nodes, site.Comm.NNodes)
		}
	}
}
