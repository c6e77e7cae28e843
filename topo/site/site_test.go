package site_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/topo/site"
)

const oversub, nets = 2, 4

// options are those of the network that the tests write and read.
var options = site.Options{Gbit: 400, Latency: 0.3, Nets: nets, Oversub: oversub}

// leafSpine is the network of simccl topo fabric.
func leafSpine(t testing.TB, hosts, perLeaf int) *fabric.Network {
	t.Helper()
	n, err := fabric.Generate(fabric.Layout{Kind: "leaf-spine", Hosts: hosts, Nets: nets, Gbit: 400,
		PerLeaf: perLeaf,
		Oversub: oversub, Latency: 0.3})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// wire is one cable by port numbers of switches.
type wire struct {
	a, b         string // device
	aPort, bPort string
	gbit         float64
	host         bool // a is one
}

// wires numbers the ports of a network.
func wires(n *fabric.Network) (out []wire) {
	used := map[string]int{}
	next := func(s string) string { used[s]++; return fmt.Sprint(used[s]) }
	for _, c := range n.Cables {
		for range c.Count {
			w := wire{a: c.A, b: c.B, gbit: c.Gbit, bPort: next(c.B)}
			if e, ok := fabric.ParseEnd(c.A); ok {
				w.a, w.aPort, w.host = fmt.Sprintf("node%d", e.Host), fmt.Sprintf("mlx5_%d", e.Net), true
			} else {
				w.aPort = next(c.A)
			}
			out = append(out, w)
		}
	}
	return out
}

// writeIB writes what ibnetdiscover prints of wires.
func writeIB(ws []wire) string {
	guid := map[string]string{}
	id := func(s string) string {
		if guid[s] == "" {
			guid[s] = fmt.Sprintf("b8599f03%08x", len(guid)+1)
		}
		return guid[s]
	}
	type port struct{ line string }
	ports, order := map[string][]port{}, []string{}
	put := func(dev, line string) {
		if ports[dev] == nil {
			order = append(order, dev)
		}
		ports[dev] = append(ports[dev], port{line})
	}
	for _, w := range ws {
		speed := map[float64]string{400: "4xNDR", 200: "4xHDR", 100: "4xEDR"}[w.gbit]
		a, kind, aPort := w.a, "S", w.aPort
		if w.host {
			a, kind, aPort = w.a+" "+w.aPort, "H", "1"
		}
		put(w.b, fmt.Sprintf("[%s]\t\"%s-%s\"[%s]%s \t\t# %q lid 7 %s", w.bPort, kind, id(a), aPort,
			map[bool]string{true: "(" + id(a) + ")", false: ""}[w.host], a, speed))
		put(a, fmt.Sprintf("[%s](%s) \t\"S-%s\"[%s]\t\t# lid 8 lmc 0 %q lid 9 %s", aPort, id(a), id(w.b),
			w.bPort, w.b, speed))
	}
	var b strings.Builder
	b.WriteString("#\n# Topology file: generated on Sun Nov 29 18:00:00 2026\n#\n" +
		"# Initiated from node b8599f0300000001\n\n")
	for _, d := range order {
		if strings.Contains(d, " ") {
			fmt.Fprintf(&b, "vendid=0x2c9\ndevid=0x1021\ncaguid=0x%s\nCa\t1 \"H-%s\"\t\t# %q\n", id(d), id(d),
				d)
		} else {
			fmt.Fprintf(&b, "vendid=0x2c9\ndevid=0xd2f2\nswitchguid=0x%s(%s)\n"+
				"Switch\t%d \"S-%s\"\t\t# \"MF0;%s:MQM9700/U1\" "+
				"enhanced port 0 lid 1 lmc 0\n", id(d), id(d), len(ports[d]), id(d), d)
		}
		for _, p := range ports[d] {
			b.WriteString(p.line + "\n")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func writeSlurm(n *fabric.Network) string {
	below := map[string][]string{}
	for _, c := range n.Cables {
		end := c.A
		if e, ok := fabric.ParseEnd(c.A); ok {
			end = fmt.Sprintf("node%d", e.Host)
		}
		if !slices.Contains(below[c.B], end) {
			below[c.B] = append(below[c.B], end)
		}
	}
	var b strings.Builder
	for _, s := range n.Switches {
		key := "Nodes"
		if strings.HasPrefix(s.Name, "spine") {
			key = "Switches"
		}
		// In the spines' lists leaves are below, whose cable is written from the leaf.
		fmt.Fprintf(&b, "SwitchName=%s %s=%s\n", s.Name, key, strings.Join(below[s.Name], ","))
	}
	return b.String()
}

func writeCSV(ws []wire) string {
	var b strings.Builder
	b.WriteString("a_device,a_port,b_device,b_port,speed\n")
	for _, w := range ws {
		fmt.Fprintf(&b, "%s,%s,%s,%s,%gG\n", w.a, w.aPort, w.b, w.bPort, w.gbit)
	}
	return b.String()
}

// writeLLDP writes what lldpcli prints on each device, under its name; json0 has lists of all.
func writeLLDP(ws []wire, json0 bool) string {
	var order []string
	seen := map[string][]string{}
	for _, w := range ws {
		if seen[w.a] == nil {
			order = append(order, w.a)
		}
		x := fmt.Sprintf("{%q: {\"via\": \"LLDP\", \"chassis\": {%q: {\"id\": {\"type\": \"mac\", "+
			"\"value\": \"02:00\"},\n"+
			"\"capability\": [{\"type\": \"Bridge\", \"enabled\": true}]}},\n"+
			"\"port\": {\"id\": {\"type\": \"ifname\", \"value\": "+
			"\"swp%s\"}, \"auto-negotiation\": {\"current\": \"%gGBaseCR4\"}}}}", w.aPort, w.b, w.bPort,
			w.gbit)
		if json0 {
			x = fmt.Sprintf("{\"name\": %q, \"via\": \"LLDP\", \"chassis\": [{\"name\": [{\"value\": %q}],\n"+
				"\"capability\": [{\"type\": \"Bridge\", \"enabled\": true}]}],\n"+
				"\"port\": [{\"id\": [{\"type\": \"ifname\", "+
				"\"value\": \"swp%s\"}], \"auto-negotiation\": [{\"current\": [{\"value\": "+
				"\"%gGBaseCR4\"}]}]}]}", w.aPort, w.b,
				w.bPort, w.gbit)
		}
		seen[w.a] = append(seen[w.a], x)
	}
	var b strings.Builder
	b.WriteString("{\n")
	for i, d := range order {
		if i > 0 {
			b.WriteString(",\n")
		}
		if json0 {
			fmt.Fprintf(&b, "%q: {\"lldp\": [{\"interface\": [%s]}]}", d, strings.Join(seen[d], ",\n"))
		} else {
			fmt.Fprintf(&b, "%q: {\"lldp\": {\"interface\": [%s]}}", d, strings.Join(seen[d], ",\n"))
		}
	}
	b.WriteString("\n}\n")
	return b.String()
}

// formats are writers and readers of the same network.
func formats(n *fabric.Network) map[string][2]any {
	ws := wires(n)
	type read = func(string) (*site.Plan, error)
	return map[string][2]any{
		"ibnetdiscover": {writeIB(ws), read(func(s string) (*site.Plan, error) {
			return site.InfiniBand([]byte(s), "ib.txt", options)
		})},
		"slurm": {writeSlurm(n), read(func(s string) (*site.Plan, error) {
			return site.Slurm([]byte(s), "topology.conf", options)
		})},
		"csv": {writeCSV(ws),
			read(func(s string) (*site.Plan, error) { return site.Cables([]byte(s), "cables.csv") })},
		"lldp": {writeLLDP(ws, false),
			read(func(s string) (*site.Plan, error) { return site.LLDP([]byte(s), "lldp.json") })},
		"lldp0": {writeLLDP(ws, true),
			read(func(s string) (*site.Plan, error) { return site.LLDP([]byte(s), "lldp.json") })},
	}
}

// network reads a text.
func network(t testing.TB, f [2]any, text string) (*fabric.Network, error) {
	t.Helper()
	p, err := f[1].(func(string) (*site.Plan, error))(text)
	if err != nil {
		return nil, err
	}
	n, _, err := p.Network(options)
	return n, err
}

// plain is what decides times: switches, and cables in an order of their own.
func plain(n *fabric.Network) (switches []string, cables []fabric.Cable) {
	for _, s := range n.Switches {
		switches = append(switches, s.Name)
	}
	slices.SortFunc(switches, site.Natural)
	for _, c := range n.Cables {
		c := fabric.Cable{A: c.A, B: c.B, Gbit: c.Gbit, Latency: c.Latency, Count: c.Count}
		if _, ok := fabric.ParseEnd(c.A); !ok && c.A > c.B {
			c.A, c.B = c.B, c.A
		}
		cables = append(cables, c)
	}
	slices.SortFunc(cables, func(a, b fabric.Cable) int {
		return strings.Compare(a.A+" "+a.B, b.A+" "+b.B)
	})
	return switches, cables
}

// TestFormatsGiveTheSameFabric: a leaf-spine of 512 hosts, written in each format, is read as it was.
func TestFormatsGiveTheSameFabric(t *testing.T) {
	n := leafSpine(t, 512, 32)
	wantSwitches, wantCables := plain(n)
	for name, f := range formats(n) { //lint:sorted each by itself
		got, err := network(t, f, f[0].(string))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		switches, cables := plain(got)
		if !reflect.DeepEqual(switches, wantSwitches) || !reflect.DeepEqual(cables, wantCables) {
			t.Errorf("%s: %d switches and %d cables, want %d and %d", name, len(switches), len(cables),
				len(wantSwitches),
				len(wantCables))
			for i := range min(len(cables), len(wantCables)) {
				if cables[i] != wantCables[i] {
					t.Fatalf("%s: %+v, want %+v", name, cables[i], wantCables[i])
				}
			}
		}
		if odd := got.Oddities(); len(odd) > 0 {
			t.Errorf("%s: %s", name, odd)
		}
		if len(got.Hosts) != 512 || got.Hosts[17].Name != "node17" {
			t.Errorf("%s: %d hosts", name, len(got.Hosts))
		}
		if again, err := fabric.ParseNetwork(got.Format(), name); err != nil ||
			!reflect.DeepEqual(again.Hosts, got.Hosts) {
			t.Errorf("%s: its own file: %v", name, err)
		}
	}
}

// TestFormatsGiveTheSameTimes: a job on eight hosts of the network, spread over leaves.
func TestFormatsGiveTheSameTimes(t *testing.T) {
	n := leafSpine(t, 512, 32)
	files := fstest.MapFS{"hosts": {Data: []byte("node[3,40,99,100,301,302,303,511]\n")}}
	run := func(n *fabric.Network) string {
		files["net.json"] = &fstest.MapFile{Data: n.Format()}
		r, err := scenario.Run(context.Background(), scenario.Spec{Seed: 1,
			Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "gb200-nvl72", Count: 8}},
				NVLinkDomain: 1},
			Network:  scenario.Network{Fabric: "net.json", Hosts: "hosts"},
			Workload: scenario.Workload{Op: "all_reduce", Sizes: []string{"1M", "16M"}}},
			scenario.Options{Files: files})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(r.Rows[0].Out.Time, r.Rows[1].Out.Time, r.Rows[1].Facts.Limit)
	}
	want := run(n)
	for name, f := range formats(n) { //lint:sorted each by itself
		got, err := network(t, f, f[0].(string))
		if err != nil {
			t.Fatal(err)
		}
		if s := run(got); s != want {
			t.Errorf("%s: %s, want %s", name, s, want)
		}
	}
}

// TestDamagedFilesAreRefusedOrTheirDifferenceNamed: lines are lost, doubled, cut, swapped or garbled; the
// reader gives an error with file, line and column, or the network has an oddity, or it is the same.
func TestDamagedFilesAreRefusedOrTheirDifferenceNamed(t *testing.T) {
	n := leafSpine(t, 32, 8)
	_, want := plain(n)
	for name, f := range formats(n) { //lint:sorted each by itself
		whole := strings.Split(f[0].(string), "\n")
		for seed := range 20 {
			rnd := rand.New(rand.NewPCG(uint64(seed), 1))
			lines := slices.Clone(whole)
			i := rnd.IntN(len(lines))
			for strings.TrimSpace(lines[i]) == "" {
				i = rnd.IntN(len(lines))
			}
			switch seed % 5 {
			case 0:
				lines = slices.Delete(lines, i, i+1)
			case 1:
				lines = slices.Insert(lines, i, lines[i])
			case 2:
				lines[i] = lines[i][:len(lines[i])/2]
			case 3:
				lines[i] = strings.Replace(lines[i], "leaf0", "leaf3", 1)
			default:
				b := []byte(lines[i])
				b[rnd.IntN(len(b))] = '~'
				lines[i] = string(b)
			}
			got, err := network(t, f, strings.Join(lines, "\n"))
			var place *fail.FileError
			if err != nil {
				if !errors.As(err, &place) || place.Line < 1 || place.Col < 1 {
					t.Errorf("%s, damage %d of line %d: no place: %v", name, seed, i+1, err)
				}
				continue
			}
			if _, cables := plain(got); !reflect.DeepEqual(cables, want) && len(got.Oddities()) == 0 {
				t.Errorf("%s, damage %d of line %d %q: another network, and nothing is said", name, seed, i+1,
					lines[min(i, len(lines)-1)])
			}
		}
	}
}

// TestOdditiesNameThePort: a port on the wrong leaf, a missing cable and a slow one.
func TestOdditiesNameThePort(t *testing.T) {
	for _, x := range []struct {
		change func(n *fabric.Network)
		want   string
	}{
		{func(n *fabric.Network) { n.Cables[9].B = "leaf2" },
			"host node2: port 1 is on leaf2, its 7 peers leaf0"},
		{func(n *fabric.Network) { n.Cables = slices.Delete(n.Cables, 9, 10) },
			"host node2: port 1 is on no cable, its 7 peers leaf0"},
		{func(n *fabric.Network) { n.Cables[9].Gbit = 200 },
			"cable node2/1 to leaf0 has 200 Gbit/s, 127 of 128 of its kind have 400"},
		{func(n *fabric.Network) { n.Cables[len(n.Cables)-1].Count = 2 },
			"leaf3 has 2 cables to spine15, its 3 peers 1 cable to spine15"},
		{func(n *fabric.Network) { n.Switches[6].Name = "spine99" }, "switch spine99 has no cable"},
		{func(n *fabric.Network) { n.Cables = n.Cables[:len(n.Cables)-1] },
			"leaf3 has no cables to spine15, its 3 peers 1 cable to spine15"},
	} {
		n := leafSpine(t, 32, 8)
		x.change(n)
		odd := strings.Join(n.Oddities(), "\n")
		if !strings.Contains(odd, x.want) {
			t.Errorf("%q, want %q", odd, x.want)
		}
	}
}

// TestHostLists: of three schedulers, in their order.
func TestHostLists(t *testing.T) {
	for text, want := range map[string]string{ //lint:sorted each by itself
		"node[08-11,3],login1\n":                     "node08 node09 node10 node11 node3 login1",
		"rack[1-2]gpu[1-2]":                          "rack1gpu1 rack1gpu2 rack2gpu1 rack2gpu2",
		"# mine\nn3 slots=8 max_slots=8\nn1 slots=8": "n3 n1",
		"n1:8\nn1:8\nn2:8\n":                         "n1 n2",
		`{"kind":"List","items":[{"kind":"Node","metadata":{"name":"b"}},{"kind":"Node","metadata":{"name":"a"}}]}`: "b a",
		`{"kind":"PodList","items":[{"kind":"Pod","metadata":{"name":"p-0"},"spec":{"nodeName":"w2"}}]}`:            "w2",
	} {
		got, err := site.Hosts([]byte(text), "hosts")
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "node[1-", "node[3-1]", "node[1-9999999999]", "n1 8", "{",
		`{"items":[]}`, "a,,b",
		"n[1]]"} {
		var place *fail.FileError
		if got, err := site.Hosts([]byte(text), "hosts"); !errors.As(err, &place) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// TestBlocksAndYAML: Slurm's other forms.
func TestBlocksAndYAML(t *testing.T) {
	for _, x := range []struct {
		text string
		yaml bool
	}{
		{"BlockName=b0 Nodes=node[0-3]\nBlockName=b1 Nodes=node[4-7]\nBlockSizes=4\n", false},
		{"---\n- topology: t\n  cluster_default: true\n  block:\n    block_sizes:\n      - 4\n" +
			"    blocks:\n      - block: b0\n" +
			"        nodes: node[0-3]\n      - block: b1\n        nodes: node[4-7]\n", true},
		{"- topology: t\n  tree:\n    switches:\n      - switch: s\n        children: b[0-1]\n" +
			"      - switch: b0\n" +
			"        nodes: node[0-3]\n      - switch: b1\n        nodes: node[4-7]\n", true},
	} {
		read := site.Slurm
		if x.yaml {
			read = site.SlurmYAML
		}
		p, err := read([]byte(x.text), "topology", options)
		if err != nil {
			t.Errorf("%s: %v", x.text, err)
			continue
		}
		n, assumed, err := p.Network(options)
		if err != nil || len(n.Hosts) != 8 || len(assumed) < 3 {
			t.Errorf("%s: %+v, %q, %v", x.text, n, assumed, err)
			continue
		}
		if l := n.Leaves(); l[0][0] != "b0" || l[7][nets-1] != "b1" {
			t.Errorf("%s: leaves %q", x.text, l)
		}
	}
}

// TestAdaptersGoByGUIDWhereTheirDescriptionNamesNoHost.
func TestAdaptersGoByGUIDWhereTheirDescriptionNamesNoHost(t *testing.T) {
	text := strings.ReplaceAll(writeIB(wires(leafSpine(t, 2, 2))), "node1 mlx5_2",
		"MT4129 ConnectX7 Mellanox Technologies")
	o := options
	guid := ""
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "Ca") && strings.Contains(line, "MT4129") {
			guid = line[strings.Index(line, "H-")+2:][:16]
		}
	}
	var g uint64
	if _, err := fmt.Sscanf(guid, "%x", &g); err != nil {
		t.Fatal(err)
	}
	o.GUIDs = map[uint64]site.NIC{g: {Host: "node1", Net: "mlx5_2"}}
	for _, x := range []struct {
		o     site.Options
		hosts int
	}{{options, 3}, {o, 2}} {
		p, err := site.InfiniBand([]byte(text), "ib", x.o)
		if err != nil {
			t.Fatal(err)
		}
		if n, _, err := p.Network(x.o); err != nil || len(n.Hosts) != x.hosts {
			t.Errorf("%d hosts, %v, want %d", len(n.Hosts), err, x.hosts)
		}
	}
}

// FuzzSite: no reader panics, and what is read is a fabric file.
func FuzzSite(f *testing.F) {
	for _, x := range formats(leafSpine(f, 2, 1)) {
		f.Add([]byte(x[0].(string)))
	}
	f.Add([]byte("- topology: t\n  block:\n    blocks:\n      - block: b0\n        nodes: node[0-3]\n"))
	f.Add([]byte("node[1-4]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for i, read := range []func() (*site.Plan, error){
			func() (*site.Plan, error) { return site.InfiniBand(data, "f", options) },
			func() (*site.Plan, error) { return site.Slurm(data, "f", options) },
			func() (*site.Plan, error) { return site.SlurmYAML(data, "f", options) },
			func() (*site.Plan, error) { return site.LLDP(data, "f") },
			func() (*site.Plan, error) { return site.Cables(data, "f") },
		} {
			p, err := read()
			if err != nil {
				continue
			}
			n, _, err := p.Network(options)
			if err != nil {
				continue
			}
			n.Oddities()
			n.Drawn()
			if len(n.Hosts) > 4096 {
				continue
			}
			if _, err := fabric.ParseNetwork(n.Format(), "f"); err != nil && i != 4 {
				t.Fatalf("reader %d: %v\n%s", i, err, n.Format())
			}
		}
		_, _ = site.Hosts(data, "f")
	})
}
