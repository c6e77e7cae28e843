package machine

import (
	"slices"
	"strings"
	"testing"
)

// limit is a change of a Spec and the member that is named then; nothing where it is taken.
type limit struct {
	of   string
	set  func(*Spec)
	path string
}

func (l *limit) check(t *testing.T) {
	t.Helper()
	s, err := Parse([]byte(small), "x.json")
	if err != nil {
		t.Fatal(err)
	}
	l.set(s)
	path := ""
	if p := s.check(); p != nil {
		path = p.path
		if p.text == "" || p.hint == "" {
			t.Errorf("%s: %+v", l.of, *p)
		}
	}
	if path != l.path {
		t.Errorf("%s: %q is named, want %q", l.of, path, l.path)
	}
}

// nic and group make changes of these members.
func nic(f func(*NIC)) func(*Spec)     { return func(s *Spec) { f(&s.NIC) } }
func group(f func(*Group)) func(*Spec) { return func(s *Spec) { f(&s.Groups[0]) } }
func nvlink(f func(*NVLink)) func(*Spec) {
	return func(s *Spec) {
		s.NVLink = NVLink{Switch: true}
		f(&s.NVLink)
	}
}

// TestNICsHaveLimits: each number to its limit is taken, and beyond it the member is named; names and numbers
// are as many as ports, of which the two NICs of a group have one each.
func TestNICsHaveLimits(t *testing.T) {
	for _, l := range []limit{
		{"nothing", nic(func(*NIC) {}), ""},
		{"another kind", nic(func(n *NIC) { n.Kind = "x" }), "nic.kind"},
		{"a PCIe link", nic(func(n *NIC) { n.PCIe = "5x16" }), ""},
		{"an unknown one", nic(func(n *NIC) { n.PCIe = "unknown" }), ""},
		{"none", nic(func(n *NIC) { n.PCIe = "16" }), "nic.pcie"},
		{"4 ports", nic(func(n *NIC) { n.Ports = 4 }), ""},
		{"5 ports", nic(func(n *NIC) { n.Ports = 5 }), "nic.ports"},
		{"-1 ports", nic(func(n *NIC) { n.Ports = -1 }), "nic.ports"},
		{"64 of no PCI function", nic(func(n *NIC) { n.Ports, n.Virtual = 64, true }), ""},
		{"65 of no PCI function", nic(func(n *NIC) { n.Ports, n.Virtual = 65, true }), "nic.ports"},
		{"the first is 65536", nic(func(n *NIC) { n.First = 65536 }), ""},
		{"the first is 65537", nic(func(n *NIC) { n.First = 65537 }), "nic.first"},
		{"the first is -1", nic(func(n *NIC) { n.First = -1 }), "nic.first"},
		{"two names", nic(func(n *NIC) { n.Names = []string{"a", "b"} }), ""},
		{"three names", nic(func(n *NIC) { n.Names = []string{"a", "b", "c"} }), "nic.names"},
		{"a name", nic(func(n *NIC) { n.Names = []string{"a"} }), "nic.names"},
		{"two numbers", nic(func(n *NIC) { n.Devs = []int{0, 65536} }), ""},
		{"a number of 65537", nic(func(n *NIC) { n.Devs = []int{0, 65537} }), "nic.devs"},
		{"a number of -1", nic(func(n *NIC) { n.Devs = []int{0, -1} }), "nic.devs"},
		{"one number", nic(func(n *NIC) { n.Devs = []int{0} }), "nic.devs"},
		{"numbers and the first", nic(func(n *NIC) { n.Devs, n.First = []int{0, 1}, 1 }), "nic.devs"},
		{"a number twice", nic(func(n *NIC) { n.Devs = []int{3, 3} }), "nic.first"},
		{"10 Tb/s", nic(func(n *NIC) { n.Speed = 10_000_000 }), ""},
		{"more", nic(func(n *NIC) { n.Speed = 10_000_001 }), "nic.speed"},
		{"-1 Mb/s", nic(func(n *NIC) { n.Speed = -1 }), "nic.speed"},
		{"a second", nic(func(n *NIC) { n.Latency = 1e6 }), ""},
		{"more than a second", nic(func(n *NIC) { n.Latency = 1e6 + 1 }), "nic.latency"},
		{"-1 us", nic(func(n *NIC) { n.Latency = -1 }), "nic.latency"},
		{"a pattern", nic(func(n *NIC) { n.Name = "mlx5_%d" }), ""},
		{"a pattern of two", nic(func(n *NIC) { n.Name = "mlx%d_%d" }), "nic.name"},
	} {
		l.check(t)
	}
	(&limit{"a group's own kind", group(func(g *Group) { g.NIC = &NIC{Kind: "connectx-6", Speed: -1} }),
		"groups[0].nic.speed"}).check(t)
	(&limit{"a kind below", func(s *Spec) {
		s.Groups[0].Below = []Group{{NICs: 1, NIC: &NIC{Kind: "x"}}}
	}, "groups[0].below[0].nic.kind"}).check(t)
	(&limit{"numbers of two kinds", func(s *Spec) {
		s.NIC.First = 4
		s.Groups[0].Below = []Group{{NICs: 1, NIC: &NIC{Kind: "connectx-6", First: 5}}}
	}, "nic.first"}).check(t)
	(&limit{"numbers side by side", func(s *Spec) {
		s.NIC.First = 4
		s.Groups[0].Below = []Group{{NICs: 1, NIC: &NIC{Kind: "connectx-6", First: 6}}}
	}, ""}).check(t)
}

// TestNVLinksHaveLimits: one kind of NVLinks, at most 64 of them and 32 NVSwitches, and lists that fit the
// two GPUs.
func TestNVLinksHaveLimits(t *testing.T) {
	for _, l := range []limit{
		{"a switch", nvlink(func(*NVLink) {}), ""},
		{"a switch and pairs", nvlink(func(l *NVLink) { l.Pairs = [][3]int{{0, 1, 1}} }), "nvlink"},
		{"a mesh of 64", nvlink(func(l *NVLink) { *l = NVLink{Mesh: 64} }), ""},
		{"a mesh of 65", nvlink(func(l *NVLink) { *l = NVLink{Mesh: 65} }), "nvlink"},
		{"a mesh of -1", nvlink(func(l *NVLink) { *l = NVLink{Mesh: -1} }), "nvlink"},
		{"64 links", nvlink(func(l *NVLink) { l.Links = 64 }), ""},
		{"65 links", nvlink(func(l *NVLink) { l.Links = 65 }), "nvlink"},
		{"-1 links", nvlink(func(l *NVLink) { l.Links = -1 }), "nvlink"},
		{"32 switches", nvlink(func(l *NVLink) { l.Counts = slices.Repeat([]int{1}, 32) }), ""},
		{"33 switches", nvlink(func(l *NVLink) { l.Counts = slices.Repeat([]int{1}, 33) }), "nvlink.counts"},
		{"counts without a switch", nvlink(func(l *NVLink) { *l = NVLink{Counts: []int{1}} }),
			"nvlink.counts"},
		{"each 0 and 64", nvlink(func(l *NVLink) { l.Each = []int{0, 64} }), ""},
		{"one of 65", nvlink(func(l *NVLink) { l.Each = []int{0, 65} }), "nvlink.each"},
		{"one of -1", nvlink(func(l *NVLink) { l.Each = []int{0, -1} }), "nvlink.each"},
		{"three", nvlink(func(l *NVLink) { l.Each = []int{1, 1, 1} }), "nvlink.each"},
		{"each and links", nvlink(func(l *NVLink) { l.Each, l.Links = []int{1, 1}, 1 }), "nvlink.each"},
		{"each and counts", nvlink(func(l *NVLink) { l.Each, l.Counts = []int{1, 1}, []int{1} }),
			"nvlink.each"},
		{"each without a switch", nvlink(func(l *NVLink) { *l = NVLink{Each: []int{1, 1}} }), "nvlink.each"},
		{"a bus id a switch", nvlink(func(l *NVLink) {
			l.Counts, l.Bus = []int{1}, []string{"0000:cf:00.0"}
		}), ""},
		{"a bus id of none", nvlink(func(l *NVLink) { l.Bus = []string{"0000:cf:00.0"} }), "nvlink.bus"},
		{"a pair", nvlink(func(l *NVLink) { *l = NVLink{Pairs: [][3]int{{0, 1, 1}, {1, 0, 64}}} }), ""},
		{"a pair of no link", nvlink(func(l *NVLink) { *l = NVLink{Pairs: [][3]int{{0, 1, 0}}} }),
			"nvlink.pairs[0]"},
		{"a pair of 65", nvlink(func(l *NVLink) { *l = NVLink{Pairs: [][3]int{{0, 1, 1}, {0, 1, 65}}} }),
			"nvlink.pairs[1]"},
		{"a pair with itself", nvlink(func(l *NVLink) { *l = NVLink{Pairs: [][3]int{{1, 1, 1}}} }),
			"nvlink.pairs[0]"},
		{"a first GPU of -1", nvlink(func(l *NVLink) { *l = NVLink{Pairs: [][3]int{{-1, 1, 1}}} }),
			"nvlink.pairs[0]"},
		{"a second GPU of -1", nvlink(func(l *NVLink) { *l = NVLink{Pairs: [][3]int{{0, -1, 1}}} }),
			"nvlink.pairs[0]"},
		{"a first GPU of 2", nvlink(func(l *NVLink) { *l = NVLink{Pairs: [][3]int{{2, 1, 1}}} }),
			"nvlink.pairs[0]"},
		{"a second GPU of 2", nvlink(func(l *NVLink) { *l = NVLink{Pairs: [][3]int{{0, 2, 1}}} }),
			"nvlink.pairs[0]"},
	} {
		l.check(t)
	}
}

// nested is a group with so many below it, the last with a GPU.
func nested(deep int) Group {
	if deep == 0 {
		return Group{GPUs: 1}
	}
	return Group{Below: []Group{nested(deep - 1)}}
}

// TestGroupsHaveLimits of what a host can be: GPUs, NICs, switches, copies, depth, bus ids, NUMA nodes.
func TestGroupsHaveLimits(t *testing.T) {
	gen4 := func(n int) []string { return slices.Repeat([]string{"broadcom-gen4"}, n) }
	for _, l := range []limit{
		{"64 GPUs and NICs", group(func(g *Group) { g.GPUs, g.NICs, g.Times = 64, 64, 1 }), ""},
		{"65 GPUs", group(func(g *Group) { g.GPUs = 65 }), "groups[0]"},
		{"65 NICs", group(func(g *Group) { g.NICs = 65 }), "groups[0]"},
		{"-1 GPUs", group(func(g *Group) { g.GPUs = -1 }), "groups[0]"},
		{"-1 times", group(func(g *Group) { g.Times = -1 }), "groups[0]"},
		{"513 times", group(func(g *Group) { g.Times = 513 }), "groups[0]"},
		{"512 times", group(func(g *Group) { g.Times = 512 }), ""},
		{"512 times two", group(func(g *Group) { g.Times, g.Below = 256, []Group{{NICs: 0}} }), ""},
		{"513 groups", group(func(g *Group) { g.Times, g.Below = 257, []Group{{NICs: 0}} }), "groups"},
		{"576 GPUs", group(func(g *Group) { g.GPUs, g.Times = 64, 9 }), ""},
		{"577 GPUs", func(s *Spec) {
			s.Groups[0].GPUs, s.Groups[0].Times = 64, 9
			s.Groups = append(s.Groups, Group{GPUs: 1})
		}, "groups"},
		{"8 switches", group(func(g *Group) { g.Switches = gen4(8) }), ""},
		{"9 switches", group(func(g *Group) { g.Switches = gen4(9) }), "groups[0]"},
		{"another switch", group(func(g *Group) { g.Switches = append(gen4(1), "x") }),
			"groups[0].switches[1]"},
		{"bridge 255", group(func(g *Group) { g.Bridge = 255 }), ""},
		{"bridge 256", group(func(g *Group) { g.Bridge = 256 }), "groups[0].bridge"},
		{"bridge -1", group(func(g *Group) { g.Bridge = -1 }), "groups[0].bridge"},
		{"8 below", group(func(g *Group) { *g = nested(8) }), ""},
		{"9 below", group(func(g *Group) { *g = nested(9) }),
			"groups[0]" + strings.Repeat(".below[0]", 8) + ".below"},
		{"NUMA below", group(func(g *Group) { g.Below = []Group{{NUMA: 1}} }), "groups[0].below[0]"},
		{"a bus below", group(func(g *Group) { g.Below = []Group{{Bus: []string{"x"}}} }),
			"groups[0].below[0]"},
		{"apart without a switch", group(func(g *Group) { g.Apart, g.Switches = true, nil }),
			"groups[0].apart"},
		{"apart", group(func(g *Group) { g.Apart = true }), ""},
		{"GPUs in order", func(s *Spec) { s.GPU.Devs = []int{1, 0} }, ""},
		{"a GPU twice", func(s *Spec) { s.GPU.Devs = []int{0, 0} }, "gpu.devs"},
		{"three of two GPUs", func(s *Spec) { s.GPU.Devs = []int{0, 1, 2} }, "gpu.devs"},
		{"64 NUMA nodes", func(s *Spec) {
			for i := range 63 {
				s.NUMA = append(s.NUMA, NUMA{ID: i + 1})
			}
		}, ""},
		{"65 NUMA nodes", func(s *Spec) {
			for i := range 64 {
				s.NUMA = append(s.NUMA, NUMA{ID: i + 1})
			}
		}, "numa"},
		{"no NUMA node", func(s *Spec) { s.NUMA = nil }, "numa"},
		{"NUMA node -1", func(s *Spec) { s.NUMA[0].ID, s.Groups[0].NUMA = -1, -1 }, ""},
		{"NUMA node -2", func(s *Spec) { s.NUMA[0].ID, s.Groups[0].NUMA = -2, -2 }, "numa[0].id"},
		{"1152 hosts", func(s *Spec) { s.Domain = 1152 }, ""},
		{"1153 hosts", func(s *Spec) { s.Domain = 1153 }, "domain"},
		{"-1 hosts", func(s *Spec) { s.Domain = -1 }, "domain"},
		{"-1 rails", func(s *Spec) { s.Network.Rails = -1 }, "network"},
		{"-1 ports", func(s *Spec) { s.Network.Radix = -1 }, "network"},
		{"-1 to 1", func(s *Spec) { s.Network.Oversub = -1 }, "network"},
		{"another CPU", func(s *Spec) { s.CPU = "x" }, "cpu"},
		{"another GPU", func(s *Spec) { s.GPU.Kind = "x" }, "gpu.kind"},
		{"another network", func(s *Spec) { s.Network.Kind = "x" }, "network.kind"},
		{"an unknown PCIe link", func(s *Spec) { s.GPU.PCIe = "unknown" }, ""},
		{"no PCIe link", func(s *Spec) { s.GPU.PCIe = "x" }, "gpu.pcie"},
	} {
		l.check(t)
	}
}

// TestBusIDsAreOfFunctions: one for every switch, GPU and NIC of all copies, well-formed and its own; NICs
// without a PCI function have none.
func TestBusIDsAreOfFunctions(t *testing.T) {
	ids := []string{"0000:01:00.0", "0000:02:00.0", "0000:03:00.0", "0000:04:00.0",
		"0000:05:00.0", "00ff:1b:1f.7"}
	with := func(f func(*Spec)) func(*Spec) {
		return func(s *Spec) {
			s.Groups[0].Bus = slices.Clone(ids)
			f(s)
		}
	}
	for _, l := range []limit{
		{"six of two copies", with(func(*Spec) {}), ""},
		{"five", with(func(s *Spec) { s.Groups[0].Bus = ids[:5] }), "groups[0].bus"},
		{"four of virtual NICs", with(func(s *Spec) { s.NIC.Virtual, s.Groups[0].Bus = true, ids[:4] }), ""},
		{"one twice", with(func(s *Spec) { s.Groups[0].Bus[5] = ids[1] }), "groups[0].bus[5]"},
		{"a short one", with(func(s *Spec) { s.Groups[0].Bus[2] = "0000:3:00.0" }), "groups[0].bus[2]"},
		{"a long one", with(func(s *Spec) { s.Groups[0].Bus[2] = "0000:03:00.00" }), "groups[0].bus[2]"},
		{"no number", with(func(s *Spec) { s.Groups[0].Bus[2] = "0000:0x:00.0" }), "groups[0].bus[2]"},
	} {
		l.check(t)
	}
}
