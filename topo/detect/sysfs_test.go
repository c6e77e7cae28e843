package detect

import (
	"fmt"
	"path"
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
