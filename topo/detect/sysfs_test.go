package detect

import (
	"fmt"
	"path"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/topo"
)

// TestBusIDOfNVML: NVML's domain has eight digits, sysfs's four or more (nvmlwrap.h:77).
func TestBusIDOfNVML(t *testing.T) {
	for nvml, want := range map[string]string{"00000000:1B:00.0": "0000:1b:00.0",
		"00010000:1B:00.0": "10000:1b:00.0", "0000:1B:00.0": "0000:1b:00.0",
		"fffffff:ff:ff.0": "fffffff:ff:ff.0", "": "", "GPU": "gpu"} {
		if got := busID(nvml); got != want {
			t.Errorf("%q: %q, want %q", nvml, got, want)
		}
	}
}

// TestWhatIsABusID: the name of a device's directory in sysfs has digits in its places and nothing else
// (xml.cc:556).
func TestWhatIsABusID(t *testing.T) {
	const id = "0000:1b:00.0"
	if !isBusID(id) || !isBusID("FFFF:AB:CD.9") {
		t.Errorf("%s is none", id)
	}
	for i, c := range id {
		other := "g"
		if strings.ContainsRune(":.", c) {
			other = "0"
		}
		if s := id[:i] + other + id[i+1:]; isBusID(s) {
			t.Errorf("%s is one", s)
		}
	}
	for _, s := range []string{"", id[1:], id + "0", "pci0000:00"} {
		if isBusID(s) {
			t.Errorf("%q is one", s)
		}
	}
}

// tree is a file system with directories of devices, by their places in sysfs.
func tree(devices ...string) captured {
	c := captured{fstest.MapFS{}, map[string]string{}}
	for _, d := range devices {
		c.device([]string{d, "0x060400", "0x1000:0xc030", "0", "16.0", "16"})
	}
	return c
}

// TestLinksBetweenVirtualSwitches: virtual switches of one chip name each other in sysfs (xml.cc:431); other
// names, and those of no device, are no links.
func TestLinksBetweenVirtualSwitches(t *testing.T) {
	c := tree("pci0000:10/0000:10:00.0", "pci0000:20/0000:20:00.0", "pci0000:30/0000:30:00.0")
	const dir = "sys/kernel/pci_switch_link/virtual_switch_links/0000:1a:00.0/"
	for _, name := range []string{"0000:10:00.0", "0000:20:00.0", "0000:40:00.0", "0000:20:00.00", "note"} {
		c.file(dir+name, "")
	}
	b := &builder{m: &Host{Tree: c}}
	e := element("pci", "busid", "0000:1A:00.0")
	e.Children = []*topo.Element{element("pcilink", "target", "0000:10:00.0"),
		element("nvlink", "target", "0000:20:00.0")}
	b.broadcomLinks(e, "0000:1A:00.0")
	var got []string
	for _, l := range e.Children {
		target, _ := l.Get("target")
		got = append(got, l.Name+" "+target)
	}
	want := "pcilink 0000:10:00.0, nvlink 0000:20:00.0, pcilink 0000:20:00.0"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("%s, want %s", s, want)
	}
	alone := element("pci")
	if b.broadcomLinks(alone, "0000:30:00.0"); len(alone.Children) != 0 {
		t.Errorf("a device without links has %d", len(alone.Children))
	}
}

// TestSlowestOfDeviceAndPort: a device's speed is at most its port's (xml.cc:601).
func TestSlowestOfDeviceAndPort(t *testing.T) {
	const port, device = "sys/devices/a", "sys/devices/a/b"
	for _, c := range [][3]string{{"16.0 GT/s PCIe", "32.0 GT/s PCIe", "16.0 GT/s PCIe"},
		{"32.0 GT/s PCIe", "16.0 GT/s PCIe", "16.0 GT/s PCIe"},
		{"32.0 GT/s", "32.0 GT/s PCIe", "32.0 GT/s PCIe"}, {"Unknown", "8.0 GT/s PCIe", "8.0 GT/s PCIe"}} {
		at := tree()
		at.file(port+"/max_link_speed", c[0])
		at.file(device+"/max_link_speed", c[1])
		if got := (&Host{Tree: at}).linkSpeed(device); got != c[2] {
			t.Errorf("port %s, device %s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

// TestDevicesThatSysfsHas: a device is there where its link leads to something (xml.cc:414).
func TestDevicesThatSysfsHas(t *testing.T) {
	c := tree("pci0000:10/0000:1a:00.0")
	c.links["sys/bus/pci/devices/0000:20:00.0"] = "sys/devices/gone"
	c.links["sys/bus/pci/devices/0000:10"] = "sys/devices/pci0000:10"
	m := &Host{Tree: c}
	for id, want := range map[string]string{"0000:1A:00.0": "sys/devices/pci0000:10/0000:1a:00.0",
		"0000:20:00.0": "", "0000:30:00.0": "", "0000:10": ""} {
		if got := m.pciPath(id); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}

// TestFunctionsOfACard: the ports of a card are the functions of one device, and with NCCL_IB_MERGE_VFS those
// of its virtual functions, too (net_ib.cc, ncclIbGetPciPath).
func TestFunctionsOfACard(t *testing.T) {
	for _, c := range []struct {
		path string
		vfs  bool
		want string
	}{{"a/0000:1b:00.1", false, "a/0000:1b:00.0"}, {"a/0000:1b:02.3", false, "a/0000:1b:02.0"},
		{"a/0000:1b:12.3", true, "a/0000:1b:00.0"}, {"02.1", true, "00.0"}, {"2.1", true, "2.1"},
		{"", false, ""}} {
		if got := mergedFunction(c.path, c.vfs); got != c.want {
			t.Errorf("%s, virtual functions %t: %s, want %s", c.path, c.vfs, got, c.want)
		}
	}
}

// TestMostPorts: the InfiniBand plugin has at most 32 ports (net_ib.cc:102), the socket plugin 16 interfaces
// (socket.h:18).
func TestMostPorts(t *testing.T) {
	c := tree()
	var all []Interface
	for i := range 40 {
		name := fmt.Sprintf("mlx5_%02d", i)
		c.hca([]string{name, fmt.Sprintf("0000:%02x:00.0", i), "0000:0000:0000:0001", "1:4:400:InfiniBand"})
		all = append(all, Interface{Name: fmt.Sprintf("eth%02d", i), V4: true})
	}
	m := &Host{Tree: c, Interfaces: func() ([]Interface, error) { return all, nil }}
	ports := m.ibPorts(Params{})
	if len(ports) != 32 || path.Base(ports[31].path) != "0000:1f:00.0" {
		t.Errorf("%d ports", len(ports))
	}
	nets, err := m.socketPorts(Params{})
	if err != nil || len(nets) != 16 || nets[15].name != "eth15" {
		t.Errorf("%d interfaces, %v", len(nets), err)
	}
}

// TestPortsOfAnHCAComeByNumber: 2 before 10 (transport/net_ib.cc:711).
func TestPortsOfAnHCAComeByNumber(t *testing.T) {
	c := tree()
	hca := []string{"mlx5_0", "pci0000:10/0000:1a:00.0", "0000:0000:0000:0001"}
	want := ""
	for port := 1; port <= 12; port++ {
		hca = append(hca, fmt.Sprintf("%d:4:%d:InfiniBand", port, 10*port))
		want += fmt.Sprintf(" %d", 10000*port)
	}
	c.hca(hca)
	got := ""
	for _, p := range (&Host{Tree: c}).ibPorts(Params{}) {
		got += fmt.Sprintf(" %d", p.speed)
	}
	if got != want {
		t.Errorf("speeds%s, want%s", got, want)
	}
}

// TestSpeedOfAnInterface: the driver's, and 10 Gb/s where it says none (net_socket.cc:80); its place is that
// of a PCI device.
func TestSpeedOfAnInterface(t *testing.T) {
	c := tree("pci0000:10/0000:1a:00.0")
	for name, speed := range map[string]string{"card": "25000", "slow": "1", "zero": "0", "down": "-1"} {
		c.file("sys/class/net/"+name+"/speed", speed)
	}
	c.links["sys/class/net/card/device"] = "sys/devices/pci0000:10/0000:1a:00.0"
	c.links["sys/class/net/zero/device"] = "sys/devices/virtio0"
	m := &Host{Tree: c}
	for name, want := range map[string]int{"card": 25000, "slow": 1, "zero": 10000, "down": 10000,
		"none": 10000} {
		n := m.socketPort(name, 3)
		if n.speed != want || n.guid != 3 || (n.path != "") != (name == "card") {
			t.Errorf("%s: %+v, want speed %d", name, n, want)
		}
	}
}

// TestFamilyOfProcessors: an x86's extended family counts sixteen-fold, as NCCL takes it from CPUID
// (xml.cc:527); other processors have neither vendor nor model. Without a name of the architecture it is this
// program's.
func TestFamilyOfProcessors(t *testing.T) {
	attributes := func(arch, family string) string {
		c := tree()
		c.file("proc/cpuinfo", "vendor_id\t: GenuineIntel\ncpu family\t: "+family+"\nmodel\t\t: 143\n")
		e := element("cpu")
		(&builder{m: &Host{Tree: c, Arch: arch}}).processor(e)
		var out []string
		for _, a := range e.Attrs {
			out = append(out, a.Value)
		}
		return strings.Join(out, " ")
	}
	for family, want := range map[string]string{"6": "6", "15": "15", "16": "31", "23": "143", "25": "175"} {
		if got := attributes("amd64", family); got != "x86_64 GenuineIntel "+want+" 143" {
			t.Errorf("family %s: %s", family, got)
		}
	}
	if got := attributes("arm64", "6"); got != "arm64" {
		t.Errorf("arm64: %s", got)
	}
	if got := attributes("", "6"); got != attributes(runtime.GOARCH, "6") {
		t.Errorf("no architecture: %s", got)
	}
}

// TestPlacesOfPCIDevices: one that is not in the file comes below its switch, and without a place in sysfs
// below a CPU of no number; one that is there stays, and what is above it gets what it lacks (xml.cc:571). A
// class is only set where one is asked for.
func TestPlacesOfPCIDevices(t *testing.T) {
	c := tree("pci0000:10/0000:11:00.0", "pci0000:10/0000:11:00.0/0000:12:00.0",
		"pci0000:10/0000:11:00.0/0000:12:00.0/0000:13:00.0")
	b := newBuilder(&Host{Tree: c, Arch: "arm64"}, nil)
	b.pci("0000:13:00.0", "0x03")
	b.pci("0000:ff:00.0", "")
	inner := element("pci", "busid", "0000:2b:00.0")
	outer := element("pci", "busid", "0000:2a:00.0")
	outer.Children = append(outer.Children, inner)
	cpu := element("cpu", "numaid", "7")
	cpu.Children = append(cpu.Children, outer)
	b.root.Children = append(b.root.Children, cpu)
	b.pci("0000:2b:00.0", "0x02")
	var got []string
	b.root.Walk(func(e *topo.Element, above []*topo.Element) {
		line := fmt.Sprint(len(above), " ", e.Name)
		for _, name := range []string{"numaid", "busid", "class", "link_width", "arch"} {
			if v, ok := e.Get(name); ok {
				line += fmt.Sprintf(" %s=%q", name, v)
			}
		}
		got = append(got, line)
	})
	want := `0 system
1 cpu numaid="0" arch="arm64"
2 pci busid="0000:11:00.0" class="0x060400" link_width="0"
3 pci busid="0000:13:00.0" class="0x060400" link_width="16"
1 cpu numaid="-1" arch="arm64"
2 pci busid="0000:ff:00.0" link_width=""
1 cpu numaid="7" arch="arm64"
2 pci busid="0000:2a:00.0" link_width=""
3 pci busid="0000:2b:00.0" class="0x02" link_width=""`
	if g := strings.Join(got, "\n"); g != want {
		t.Errorf("%s\nwant\n%s", g, want)
	}
}

// TestC2COfAGPU: links between a GPU and its CPU are counted where it has some, and those of the file stay
// (xml.cc:884).
func TestC2COfAGPU(t *testing.T) {
	b := newBuilder(&Host{Tree: tree(), Arch: "arm64"}, nil)
	given := GPU{BusID: "0000:01:00.0", SM: 90, C2CMBps: 44712, C2CCount: 1}
	for range 2 {
		b.gpu(&given, 0)
		given.C2CCount = 5
	}
	b.gpu(&GPU{BusID: "0000:02:00.0", SM: 90}, 1)
	one, _ := b.find("pci", "busid", "0000:01:00.0")
	two, _ := b.find("pci", "busid", "0000:02:00.0")
	c := one.Child("gpu").Child("c2c")
	if n := len(two.Child("gpu").Children); n != 0 || c == nil || len(one.Child("gpu").Children) != 1 {
		t.Fatalf("%v; %d children of a GPU without links", c, n)
	}
	speed, _ := c.Get("bw")
	count, _ := c.Get("count")
	if speed != "44712" || count != "1" {
		t.Errorf("%s MB/s, %s links", speed, count)
	}
}
