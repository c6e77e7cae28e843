package lstopo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// host is what hwloc 2 writes of two sockets; each has switches of one upstream port and one
// downstream port a device, with a GPU and a NIC each.
func host(gpu string, gpus int) string {
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n" +
		"<topology version=\"2.0\">\n <object type=\"Machine\" os_index=\"0\">\n")
	for s := range 2 {
		fmt.Fprintf(&b, "  <object type=\"Package\" os_index=\"%d\"><info name=\"CPUVendor\" "+
			"value=\"AuthenticAMD\"/><info name=\"CPUFamilyNumber\" value=\"23\"/><info "+
			"name=\"CPUModelNumber\" value=\"49\"/>\n", s)
		fmt.Fprintf(&b, "   <object type=\"NUMANode\" os_index=\"%d\" cpuset=\"%s\"/>\n", s,
			[]string{"0x0000ffff", "0xffff0000,0x0"}[s])
		for i := range gpus / 2 {
			n := 16*(s*gpus/2+i) + 16
			bridge := func(bus, ids string) {
				fmt.Fprintf(&b, "   <object type=\"Bridge\" bridge_type=\"1-1\" pci_busid=\"0000:%s\" "+
					"pci_type=\"0604 [%s] [%s] b0\" pci_link_speed=\"31.507692\">\n", bus, ids, ids)
			}
			fmt.Fprintf(&b,
				"   <object type=\"Bridge\" bridge_type=\"0-1\" bridge_pci=\"0000:[%02x-%02x]\">\n", n, n+15)
			bridge(fmt.Sprintf("%02x:01.0", n), "1022:1483") // root port
			bridge(fmt.Sprintf("%02x:00.0", n+1), "1000:c010")
			bridge(fmt.Sprintf("%02x:00.0", n+2), "1000:c010")
			fmt.Fprintf(&b, "    <object type=\"PCIDev\" pci_busid=\"0000:%02x:00.0\" pci_type=\"0302 "+
				"[10de:%s] [10de:134f] a1\" pci_link_speed=\"31.507692\"/></object>\n", n+3, gpu)
			bridge(fmt.Sprintf("%02x:01.0", n+2), "1000:c010")
			fmt.Fprintf(&b, "    <object type=\"PCIDev\" pci_busid=\"0000:%02x:00.0\" pci_type=\"0207 "+
				"[15b3:101b] [15b3:0007] 00\" pci_link_speed=\"31.507692\"><object type=\"OSDev\" "+
				"name=\"mlx5_%d\" osdev_type=\"3\"><info name=\"NodeGUID\" "+
				"value=\"0c42:a103:0012:34%02x\"/></object></object></object>\n", n+4, s*gpus/2+i, n)
			b.WriteString("   </object></object></object>\n")
		}
		b.WriteString("  </object>\n")
	}
	b.WriteString(" </object>\n</topology>\n")
	return b.String()
}

// TestTree: ports of a switch become one element, root ports none, and what NCCL decides on
// has paths as on such a host.
func TestTree(t *testing.T) {
	text := host("20b0", 8)
	if !Is(text) || Is("<system version=\"1\"/>") {
		t.Error("lstopo's XML is not known from NCCL's")
	}
	root, notes, err := Tree([]byte(text), "h.xml", Given{})
	if err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(notes, "\n"); !strings.Contains(said, "GPUs are a100-sxm") ||
		!strings.Contains(said, "12 NVLinks of each GPU are assumed to lead to NVSwitches") ||
		!strings.Contains(said, "connectx-6 are taken for 200000 Mb/s") {
		t.Errorf("notes %q", notes)
	}
	if n := len(root.All("pci")); n != 8*3 {
		t.Errorf("%d PCI functions: of a switch the upstream port stays", n)
	}
	spec, err := topoxml.Parse(topoxml.Write(root), "h.xml")
	if err != nil {
		t.Fatal(err)
	}
	h, err := topo.Build(spec, topo.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	if len(h.GPUs) != 8 || len(h.Nets) != 8 || h.Nets[7] != "mlx5_7" {
		t.Errorf("%d GPUs, NICs %v", len(h.GPUs), h.Nets)
	}
}

// TestMissing: what the file does not say is an error with what to give, unless given.
func TestMissing(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{host("20b0", 2), "NVLinks of 2 a100-sxm lead to is not in the file; give the output of nvidia-smi " +
			"topo -m of that host with --nvlink"},
		{host("dead", 8),
			"0000:13:00.0: the kind of GPU of device 0xdead is not known; name the nearest with --gpu-kind"},
		{strings.ReplaceAll(host("20b0", 8), "15b3:101b", "15b3:9999"), "--nic-kind"},
		{strings.ReplaceAll(host("20b0", 8), "CPUVendor", "x"),
			"h.xml:6:4: no CPUVendor of this NUMA node; name the CPUs with --cpu-kind"},
		{strings.ReplaceAll(host("20b0", 8), "0302 [10de", "0302 [10df"), "no NVIDIA GPU"},
		{strings.ReplaceAll(host("20b0", 8), "0604 [1000:c010]", "0604 1000:c010"),
			"hwloc writes class, vendor and device"},
		{host("20b0", 8)[:3000], "h.xml:"},
		{strings.Repeat("<object>", 1000), "more than 200 deep"},
		{"<topology><object type=\"Machine\"></object></topology>", "no CPUVendor"},
	} {
		_, _, err := Tree([]byte(c.text), "h.xml", Given{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	g := Given{}
	g.GPU, g.CPU = "h100-sxm", "milan"
	if _, _, err := Tree([]byte(strings.ReplaceAll(host("dead", 8), "CPUVendor", "x")), "h.xml", g); err !=
		nil {
		t.Error(err)
	}
}

// FuzzTree: whatever is read either is refused or makes a tree that a topology file can hold.
func FuzzTree(f *testing.F) {
	f.Add([]byte(host("20b0", 2)))
	f.Add([]byte(withLinks(2, "PCIDev:a PCIDev:c", "1000000 50000 50000 1000000")))
	f.Add([]byte("<topology><object type=\"Machine\"><object type=\"PCIDev\" pci_busid=\"0000:03:00.0\" " +
		"pci_type=\"0302 [10de:2237] [10de:152f] a1\"/></object></topology>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		root, _, err := Tree(data, "f.xml", Given{})
		if err != nil {
			return
		}
		if len(root.All("gpu")) == 0 {
			t.Error("a tree without GPUs")
		}
		if _, err := topoxml.Parse(topoxml.Write(root), "f.xml"); err != nil {
			t.Errorf("read, but not as a topology: %v", err)
		}
	})
}
