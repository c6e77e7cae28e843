package detect

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// captured is a file tree out of a txtar archive, whose member "links" says
// what symbolic links resolve to.
type captured struct {
	fstest.MapFS
	links map[string]string
}

func (c captured) RealPath(p string) (string, error) {
	if r, ok := c.links[p]; ok {
		return r, nil
	}
	return "", &fs.PathError{Op: "readlink", Path: p, Err: fs.ErrNotExist}
}

func open(t *testing.T, file string) captured {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := captured{fstest.MapFS{}, map[string]string{}}
	for _, f := range a.Files {
		if f.Name != "links" && f.Name != "devices" && f.Name != "hcas" {
			c.MapFS[f.Name] = &fstest.MapFile{Data: f.Data}
			continue
		}
		for line := range strings.Lines(string(f.Data)) {
			words := strings.Fields(line)
			switch {
			case len(words) == 0 || words[0] == "#":
			case f.Name == "devices":
				c.device(words)
			case f.Name == "hcas":
				c.hca(words)
			default:
				c.links[words[0]] = words[1]
			}
		}
	}
	return c
}

func (c captured) file(name, text string) { c.MapFS[name] = &fstest.MapFile{Data: []byte(text + "\n")} }

// device adds a PCI device: path, class, vendor:device, NUMA node, speed, width.
func (c captured) device(w []string) {
	dir := "sys/devices/" + w[0]
	vendor, device, _ := strings.Cut(w[2], ":")
	for name, text := range map[string]string{"class": w[1], "vendor": vendor, "device": device,
		"subsystem_vendor": vendor,
		"subsystem_device": "0x0001", "numa_node": w[3], "max_link_speed": w[4] + " GT/s PCIe",
		"max_link_width": w[5]} {
		c.file(dir+"/"+name, text)
	}
	c.links["sys/bus/pci/devices/"+path.Base(w[0])] = dir
}

// hca adds an RDMA device: name, path, GUID, and port:state:rate:layer of each
// port.
func (c captured) hca(w []string) {
	dir := "sys/class/infiniband/" + w[0]
	c.file(dir+"/sys_image_guid", w[2])
	if w[1] != "-" {
		c.links[dir+"/device"] = "sys/devices/" + w[1]
	}
	for _, p := range w[3:] {
		f := strings.Split(p, ":")
		at := dir + "/ports/" + f[0]
		c.file(at+"/state", f[1]+": "+map[string]string{"1": "DOWN", "4": "ACTIVE",
			"5": "ACTIVE_DEFER"}[f[1]])
		c.file(at+"/rate", f[2]+" Gb/sec (4X)")
		c.file(at+"/link_layer", f[3])
	}
}

var hash = regexp.MustCompile(`host_hash="[^"]*"`)

func dump(s *topo.Spec) string {
	return hash.ReplaceAllString(string(topoxml.Write(s.Root)), `host_hash="0x0"`)
}

func h200(n int) func() ([]GPU, error) {
	return func() ([]GPU, error) {
		var out []GPU
		for i := range n {
			g := GPU{Index: i, BusID: fmt.Sprintf("0000:00:%02x.0", 6+i), SM: 90, GDR: true,
				Name: "NVIDIA H200"}
			for range 18 {
				g.Links = append(g.Links, "fffffff:ff:ff.0")
			}
			out = append(out, g)
		}
		return out, nil
	}
}

func eth0() ([]Interface, error) {
	return []Interface{{Name: "lo", V4: true}, {Name: "eth0", V4: true}}, nil
}

// TestCapturedMachineEqualsNCCLsDump: what NCCL_TOPO_DUMP_FILE held on the
// same machine, on 1, 2 and 4 of its GPUs (NCCL 2.28.9).
func TestCapturedMachineEqualsNCCLsDump(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		m := &Host{Tree: open(t, "testdata/h200x4.txtar"), GPUs: h200(n), Interfaces: eth0, Hostname: "vm",
			Arch: "amd64"}
		s, err := Detect(m, Params{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(fmt.Sprintf("testdata/h200x4-%d.dump.xml", n))
		if err != nil {
			t.Fatal(err)
		}
		if got := dump(s); got != string(want) {
			t.Errorf("%d GPUs: got\n%s\nwant\n%s", n, got, want)
		}
	}
}

// TestServerWithSwitchesAndInfiniBand: two-socket server, a GPU and a
// two-port NIC under one PCIe switch, an RDMA NIC beside.
func TestServerWithSwitchesAndInfiniBand(t *testing.T) {
	m := &Host{Tree: open(t, "testdata/server.txtar"), Interfaces: eth0, Hostname: "srv", Arch: "amd64",
		GPUs: func() ([]GPU, error) {
			return []GPU{{Index: 0, BusID: "0000:3d:00.0", SM: 80, GDR: true, Links: []string{"0000:c4:00.0",
				"0000:c4:00.0"}}}, nil
		}}
	s, err := Detect(m, Params{MergeVFs: true})
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/server.want.xml")
	if err != nil {
		t.Fatal(err)
	}
	if got := dump(s); got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestHCAListChoosesPorts(t *testing.T) {
	m := &Host{Tree: open(t, "testdata/server.txtar"), Interfaces: eth0, GPUs: h200(1), Arch: "amd64"}
	for list, want := range map[string]int{"": 2, "mlx5_1": 1, "^mlx5_1": 1, "=mlx5": 1, "mlx5_0:2": 1} {
		nets, err := m.nets(Params{IBHCA: list})
		if err != nil {
			t.Fatal(err)
		}
		// A list that matches nothing leaves the sockets.
		if len(nets) != want || (list == "=mlx5" || list == "mlx5_0:2") != (nets[0].name == "eth0") {
			t.Errorf("NCCL_IB_HCA=%s: %+v", list, nets)
		}
	}
}

func TestSocketInterfaces(t *testing.T) {
	m := &Host{Tree: open(t, "testdata/h200x4.txtar"), Interfaces: func() ([]Interface, error) {
		return []Interface{{"lo", true, true}, {"docker0", true, false}, {"ens3", false, true},
			{"ens1", true, true}, {"virbr0", true, false}, {"ens2", true, false}}, nil
	}}
	for list, want := range map[string]string{"": "ens1 ens2 ens3", "ens2": "ens2", "=lo": "lo", "lo": "lo",
		"^ens": "lo docker0 virbr0", "ens1:1": "ens1", "l": "ens1 ens2 ens3"} { // a letter is no list
		nets, err := m.socketPorts(Params{SocketIfname: list})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, n := range nets {
			names = append(names, n.name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("NCCL_SOCKET_IFNAME=%s: %s, want %s", list, got, want)
		}
	}
	for _, list := range []string{"bond9", "b9"} {
		if _, err := m.socketPorts(Params{SocketIfname: list}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("no such interface: %v", err)
		}
	}
	fails := errors.New("no interfaces")
	for _, given := range []error{nil, fails} {
		m.Interfaces = func() ([]Interface, error) { return nil, given }
		if nets, err := m.socketPorts(Params{SocketIfname: "b"}); nets != nil || !errors.Is(err, given) {
			t.Errorf("without interfaces (%v): %v, %v", given, nets, err)
		}
	}
}

// capturedMachines are machines whose sysfs is kept in testdata, and the nets that NCCL finds there.
var capturedMachines = []struct {
	name, tree string
	gpus       []GPU
	verbs      []HCA
	p          Params
	want       []string
}{
	{name: "InfiniBand and RoCE, functions of a card are its ports, down ports left out, mlx5_2 before " +
		"mlx5_10", tree: "nics",
		p: Params{MergeVFs: true}, want: []string{
			"mlx5_0 dev 0 port 1 400000 0x1000000039b0398 gdr 0 < 0000:14:00.0 < 0000:11:00.0 < cpu 0",
			"mlx5_1 dev 1 port 1 100000 0x200000003f6ceb8 gdr 0 < 0000:81:00.0 < cpu 1",
			"mlx5_2 dev 2 port 2 100000 0x200000003f6ceb8 gdr 0 < 0000:81:00.0 < cpu 1",
			"mlx5_10 dev 3 port 1 400000 0x10000000039b0398 gdr 0 < 0000:82:00.0 < cpu 1",
			"rxe0 dev 4 port 1 2500 0x10000feff005450 gdr 0 < cpu 0"}},
	{name: "a list of devices, one with its port", tree: "nics",
		p: Params{MergeVFs: true, IBHCA: "=mlx5_10:1,mlx5_0,mlx5_2:2"},
		want: []string{
			"mlx5_0 dev 0 port 1 400000 0x1000000039b0398 gdr 0 < 0000:14:00.0 < 0000:11:00.0 < cpu 0",
			"mlx5_10 dev 1 port 1 400000 0x10000000039b0398 gdr 0 < 0000:82:00.0 < cpu 1"}},
	{name: "all but some: ports of a card are counted among those that are left", tree: "nics",
		p:    Params{MergeVFs: true, IBHCA: "^mlx5_1,rxe,mlx5_0"},
		want: []string{"mlx5_2 dev 0 port 1 100000 0x200000003f6ceb8 gdr 0 < 0000:81:00.0 < cpu 1"}},
	{name: "libibverbs' order and limits, DMA-BUF on a GPU that has it", tree: "nics",
		p:     Params{MergeVFs: true, IBHCA: "mlx5_0,mlx5_1:1"},
		gpus:  []GPU{{BusID: "0000:13:00.0", SM: 90, DMABuf: true}},
		verbs: []HCA{{"mlx5_10", 262144, false}, {"mlx5_0", 131072, true}},
		want: []string{"mlx5_10 dev 0 port 1 400000 0x10000000039b0398 gdr 0 < 0000:82:00.0 < cpu 1",
			"mlx5_0 dev 1 port 1 400000 0x1000000039b0398 gdr 1 < 0000:14:00.0 < 0000:11:00.0 < cpu 0"}},
	{name: "the same with NCCL_DMABUF_ENABLE=0", tree: "nics", p: Params{MergeVFs: true, IBHCA: "mlx5_0",
		NoDMABuf: true},
		gpus:  []GPU{{BusID: "0000:13:00.0", SM: 90, DMABuf: true}},
		verbs: []HCA{{"mlx5_0", 131072, true}},
		want: []string{
			"mlx5_0 dev 0 port 1 400000 0x1000000039b0398 gdr 0 < 0000:14:00.0 < 0000:11:00.0 < cpu 0"}},
	{name: "virtual functions without their card go to the first CPU; two ports of one device are one " +
		"net", tree: "vm", p: Params{MergeVFs: true},
		want: []string{"mlx4_0 dev 1 port 1 40000 0x100000003c90200 gdr 0 < cpu -1",
			"mlx5_ib0 dev 2 port 1 200000 0x8877665544332211 gdr 0 < cpu -1",
			"mlx5_ib1 dev 3 port 1 200000 0x8877665544332211 gdr 0 < cpu -1"}},
	{name: "and to themselves where functions are kept apart", tree: "vm", p: Params{IBHCA: "mlx5"},
		want: []string{"mlx5_ib0 dev 0 port 1 200000 0x8877665544332211 gdr 0 < 0001:00:02.0 < cpu -1",
			"mlx5_ib1 dev 1 port 1 200000 0x8877665544332211 gdr 0 < cpu -1"}},
	{name: "no InfiniBand wanted: sockets, virtio by its PCI device, others at the CPU with 10 Gbit/s",
		tree: "vm", p: Params{IBDisable: true},
		want: []string{"eth0 dev 0 port 0 25000 0x0 gdr 0 < 0000:00:03.0 < cpu -1",
			"eth1 dev 1 port 0 10000 0x1 gdr 0 < cpu -1"}},
	{name: "a list that leaves no HCA: sockets", tree: "vm",
		p:    Params{IBHCA: "bnxt", SocketFamily: "AF_INET6"},
		want: []string{"eth1 dev 0 port 0 10000 0x0 gdr 0 < cpu -1"}},
}

// TestNetsOfCapturedMachines: which ports NCCL takes of a machine's RDMA
// devices, in which order, with which number on the card, and where it hangs
// them (name dev port speed guid gdr, below).
func TestNetsOfCapturedMachines(t *testing.T) {
	for _, c := range capturedMachines {
		m := &Host{Tree: open(t, "testdata/"+c.tree+".txtar"), Hostname: "h", Arch: "amd64",
			Interfaces: func() ([]Interface, error) {
				return []Interface{{"lo", true, false}, {"eth1", false, true}, {"eth0", true, false},
					{"docker0", true, false}}, nil
			},
			GPUs: func() ([]GPU, error) {
				if c.gpus != nil {
					return c.gpus, nil
				}
				return []GPU{{BusID: map[string]string{"nics": "0000:13:00.0", "vm": "0000:00:05.0"}[c.tree],
					SM: 90}}, nil
			}}
		if c.verbs != nil {
			m.Verbs = func() ([]HCA, error) { return c.verbs, nil }
		}
		s, err := Detect(m, c.p)
		if err != nil {
			t.Fatal(err)
		}
		if got := nets(s); !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, strings.Join(got, "\n     "),
				strings.Join(c.want, "\n     "))
		}
	}
}

// nets lists every net of a Spec, in the order of their numbers, and what it
// hangs on.
func nets(s *topo.Spec) []string {
	byDev := map[int]string{}
	s.Root.Walk(func(e *topo.Element, above []*topo.Element) {
		if e.Name != "net" {
			return
		}
		get := func(e *topo.Element, k string) string { v, _ := e.Get(k); return v }
		line := fmt.Sprintf("%s dev %s port %s %s %s gdr %s", get(e, "name"), get(e, "dev"), get(e, "port"),
			get(e, "speed"), get(e, "guid"), get(e, "gdr"))
		for _, x := range slices.Backward(above) {
			switch x.Name {
			case "pci":
				line += " < " + get(x, "busid")
			case "cpu":
				line += " < cpu " + get(x, "numaid")
			}
		}
		byDev[atoi(get(e, "dev"))] = line
	})
	var out []string
	for _, dev := range slices.Sorted(maps.Keys(byDev)) {
		out = append(out, byDev[dev])
	}
	return out
}

// TestNoVerbsNoInfiniBand: where libibverbs does not answer, NCCL goes by
// sockets, whatever sysfs shows.
func TestNoVerbsNoInfiniBand(t *testing.T) {
	m := &Host{Tree: open(t, "testdata/nics.txtar"), Interfaces: eth0, GPUs: h200(1), Arch: "amd64",
		Verbs: func() ([]HCA, error) { return nil, &AbsentError{"libibverbs", "none"} }}
	got, err := m.nets(Params{})
	if err != nil || len(got) != 1 || got[0].name != "eth0" {
		t.Errorf("%+v, %v; want eth0", got, err)
	}
}

func TestWithoutADriverTheErrorIsTyped(t *testing.T) {
	if _, err := NVML(); err == nil {
		t.Skip("this machine has NVML")
	} else if !errors.Is(err, ErrUnsupported) {
		t.Errorf("got %v, want it to match ErrUnsupported", err)
	}
}

func TestAMDFamiliesAreNCCLs(t *testing.T) {
	tree := captured{
		fstest.MapFS{
			"proc/cpuinfo": {Data: []byte("vendor_id\t: AuthenticAMD\ncpu family\t: 23\nmodel\t\t: 49\n" +
				"\nvendor_id\t: Other\ncpu family\t: 1\nmodel\t\t: 1\n")}}, // the first processor counts
		nil}
	b := &builder{m: &Host{Tree: tree, Arch: "amd64"}, root: element("system")}
	c := b.cpu("0")
	if f, _ := c.Get("familyid"); f != "143" {
		t.Errorf("Zen 2 is family %s, NCCL writes 143", f)
	}
}

// TestWhatAVirtualMachineIsTold: a file that NCCL reads before it reads the
// machine overrides what sysfs shows; what is in it and not here is left out.
func TestWhatAVirtualMachineIsTold(t *testing.T) {
	text, err := os.ReadFile("testdata/vm.begin.xml")
	if err != nil {
		t.Fatal(err)
	}
	begin, err := topoxml.Parse(text, "vm.begin.xml")
	if err != nil {
		t.Fatal(err)
	}
	gpu := func(i int, id string) GPU {
		return GPU{Index: i, BusID: id, SM: 80, Links: []string{"fffffff:ff:ff.0", "fffffff:ff:ff.0"}}
	}
	m := &Host{Tree: open(t, "testdata/vm.txtar"), Interfaces: eth0, Hostname: "vm", Arch: "amd64",
		GPUs: func() ([]GPU, error) {
			return []GPU{gpu(0, "0000:00:05.0"), gpu(1, "0000:00:06.0")}, nil
		}}
	before := dump(begin)
	s, err := Detect(m, Params{IBHCA: "mlx5", Begin: begin.Root})
	if err != nil {
		t.Fatal(err)
	}
	golden.Text(t, "testdata/vm.want.xml", dump(s))
	if dump(begin) != before {
		t.Error("the file that was begun with has changed")
	}
	hashes := map[string]bool{}
	for _, h := range hash.FindAllString(string(topoxml.Write(s.Root)), -1) {
		hashes[h] = true
	}
	if len(hashes) != 1 || hashes[`host_hash="0x77"`] {
		t.Errorf("CPUs are of hosts %v, want this one for all", hashes)
	}
}
