package view

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/cnum"
	"github.com/simccl/simccl/internal/iflist"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo/decl"
)

// Port is the merge level of NICs that are ports of one card; NCCL gives it
// NVL's number (topo.h:100).
const Port = rules.NVL

// unrelated is further than any merge level: NCCL's PATH_DIS (topo.h).
const unrelated rules.Level = 11

// maxPerVNIC is the largest number of ports of a virtual NIC (net.h NCCL_NET_MAX_DEVS_PER_NIC).
const maxPerVNIC = 4

// MergeError reports that NCCL_NET_FORCE_MERGE or NCCL_NET_MERGE_LEVEL cannot be followed;
// NCCL's init fails on it.
type MergeError struct{ Group, Problem string }

// Error names the group of NICs.
func (e *MergeError) Error() string {
	by := "NCCL_NET_FORCE_MERGE group"
	if strings.Contains(e.Group, "+") { // a virtual NIC, whichever variable asks for it
		by = "virtual NIC"
	}
	return fmt.Sprintf("%s %q: %s", by, e.Group, e.Problem)
}

// fuseNICs merges nearby ports into virtual NICs, as NCCL does with the IB plugin: first the groups of
// NCCL_NET_FORCE_MERGE, then each port with the ports at most the merge level away (topo.cc:1261). Merged
// ports are removed from the topology.
func (v *Host) fuseNICs(nets []*decl.Element, s *Settings) error {
	placed := make([]bool, len(nets))
	groups, err := forcedGroups(nets, placed, s)
	if err != nil {
		return err
	}
	groups = append(groups, nearGroups(nets, placed, s)...)
	dev := len(nets)
	for _, g := range groups {
		if len(g) < 2 {
			if s.Rules.Topo.FuseAlone && len(g) == 1 {
				v.renumber(nets[g[0]], dev)
				dev++
			}
			continue
		}
		for _, d := range g {
			replacePort(nets[d], &s.Rules.Topo)
		}
		if err := v.addVNIC(nets, g, dev, s); err != nil {
			return err
		}
		dev++
	}
	return nil
}

// renumber turns a port into a virtual NIC of one port: it changes the port's number to the one that the
// plugin gives the virtual NIC (graph/topo.cc:972 of v2.26.6).
func (v *Host) renumber(port *decl.Element, dev int) {
	name, _ := port.Get("name")
	port.Set("dev", strconv.Itoa(dev))
	v.Nets = append(v.Nets, name)
}

// replacePort removes a port that its virtual NIC replaces, or keeps it as a non-net if GPUs use it directly
// for GIN or collectives (graph/topo.cc:1694 of v2.30.7).
func replacePort(n *decl.Element, r *rules.Topo) {
	if r.GINPorts && (n.Int("gin", 0) != 0 || n.Int("coll", 0) != 0) {
		n.Set("net", "0")
		return
	}
	n.Set("keep", "0")
}

// forcedGroups parses NCCL_NET_FORCE_MERGE into groups of net indices and marks these nets as placed
// (topo.cc:1021).
func forcedGroups(nets []*decl.Element, placed []bool, s *Settings) ([][]int, error) {
	var groups [][]int
	for _, part := range strings.Split(s.ForceMerge, ";") {
		if part == "" {
			continue
		}
		ifs := iflist.Parse(part)
		ifs = ifs[:min(len(ifs), maxPerVNIC)] // NCCL reads no further (topo.cc:1045)
		var g []int
		for d, n := range nets {
			name, _ := n.Get("name")
			if len(ifs) > 0 && iflist.Match(name, n.Int("port", -1), ifs, true) {
				g = append(g, d)
			}
		}
		switch {
		case len(g) != len(ifs):
			return nil, &MergeError{part, fmt.Sprintf("matches %d nets, names %d", len(g), len(ifs))}
		case len(g) > 1 && s.MergeNICsDisabled:
			return nil, &MergeError{part, "NCCL_IB_MERGE_NICS=0 forbids merging"}
		}
		for _, d := range g {
			placed[d] = true
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// nearGroups gathers, port by port, the ports within the merge level
// (topo.cc:1076). With NCCL_IB_MERGE_NICS=0 every merge fails in the plugin and
// NCCL continues with single ports.
func nearGroups(nets []*decl.Element, placed []bool, s *Settings) [][]int {
	level := s.MergeLevel.Or(Port)
	switch {
	case s.MergeNICsDisabled && s.Rules.Topo.FuseAlone:
		level = rules.LOC // no two ports are one place
	case s.MergeNICsDisabled:
		return nil
	case level == rules.P2C && !s.Rules.Topo.P2CPaths:
		level = rules.LOC // no name of a level there
	}
	var groups [][]int
	for i := range nets {
		if placed[i] {
			continue
		}
		placed[i] = true
		g := []int{i}
		for j := range nets {
			if j != i && !placed[j] {
				if kind, _ := netPath([]*decl.Element{nets[i], nets[j]}); kind <= level {
					g = append(g, j)
					placed[j] = true
				}
			}
			if len(g) == maxPerVNIC {
				break
			}
		}
		groups = append(groups, g)
	}
	return groups
}

// netPath reports how far nets are apart and under which element they meet, or
// the <pci> above that (topo.cc:831).
func netPath(nets []*decl.Element) (rules.Level, *decl.Element) {
	chains := make([][]*decl.Element, len(nets))
	for i, n := range nets {
		chains[i] = n.Chain()
	}
	var common *decl.Element
	for depth := 0; depth < len(chains[0]); depth++ {
		here := chains[0][depth]
		same := true
		for _, c := range chains[1:] {
			same = same && depth < len(c) && c[depth] == here
		}
		if !same {
			if sameCard(chains, depth) {
				return Port, pciAbove(common)
			}
			break
		}
		common = here
	}
	return meetKind(common, nets), pciAbove(common)
}

// sameCard reports whether the places where the chains part are functions of one
// PCI device: bus ids that differ in the last character only.
func sameCard(chains [][]*decl.Element, depth int) bool {
	first, ok := chains[0][depth].Get("busid")
	if !ok {
		return false
	}
	for _, c := range chains[1:] {
		if depth >= len(c) {
			continue
		}
		id, ok := c[depth].Get("busid")
		if !ok || len(id) != len(first) || id == "" || id[:len(id)-1] != first[:len(id)-1] {
			return false
		}
	}
	return true
}

func meetKind(common *decl.Element, nets []*decl.Element) rules.Level {
	if common == nil {
		return unrelated
	}
	switch common.Name {
	case "system":
		return rules.SYS
	case "cpu":
		return rules.PHB
	case "nic", "net":
		return Port
	}
	for _, n := range nets {
		nic := n.Parent()
		if nic != nil && nic.Name == "nic" && nic.Parent() != nil && nic.Parent().Name == "pci" &&
			nic.Parent().Parent() != common {
			return rules.PXB
		}
	}
	return rules.PIX
}

// pciAbove climbs to the nearest <pci>; below a CPU it stays where it is.
func pciAbove(e *decl.Element) *decl.Element {
	for p := e; p != nil && p.Name != "system"; p = p.Parent() {
		if p.Name == "pci" {
			return p
		}
	}
	return e
}

// addVNIC inserts the virtual NIC of a group into the tree (topo.cc:1212, topo.cc:1298). If the ports meet at
// a switch or a CPU the virtual NIC gets its own PCI device there, and releases
// that widen links set the PCI links above the ports to the ports' widths together.
func (v *Host) addVNIC(nets []*decl.Element, group []int, dev int, s *Settings) error {
	ports := make([]*decl.Element, len(group))
	names := make([]string, len(group))
	speed, each := 0, make([]int, len(group))
	for i, d := range group {
		ports[i] = nets[d]
		names[i], _ = nets[d].Get("name")
		mbps := nets[d].Int("speed", 0)
		speed, each[i] = speed+mbps, mbps
	}
	name := strings.Join(names, "+")
	if v.root.Find("net", func(e *decl.Element) bool { n, _ := e.Get("name"); return n == name }) != nil {
		return nil // already there, as in a file that holds virtual NICs
	}
	kind, parent := netPath(ports)
	if s.Rules.Topo.FuseOneCPU && parent != nil && parent.Name == "system" {
		return &MergeError{name, "the ports are on different CPUs, and NCCL " + s.Rules.Version() +
			" fails on them" +
			s.Rules.Aside(rules.AtPortCPUs) + "; write NCCL_NET_MERGE_LEVEL=PHB, or groups of one CPU"}
	}
	meet, width := parent, 0
	if s.Rules.Topo.WidenFused && (kind == rules.PHB || kind == rules.PXB || kind == rules.PIX) {
		if err := v.widths(parent); err != nil {
			return err
		}
		width = widthOf(ports, parent)
		if s.Rules.Topo.WidenPorts {
			widenLinks(ports, parent, width)
		}
	}
	if parent == nil {
		return &MergeError{name, "the ports have nothing in common"}
	}
	class, _ := parent.Get("class")
	if parent.Name == "cpu" && s.Rules.Topo.FusedDevice ||
		parent.Name == "pci" && (class == decl.PCIBridgeClass || s.Rules.Topo.FusedBelowCards) {
		made, err := v.ownPCI(parent, ports[0])
		if err != nil {
			return err
		}
		parent = made
	}
	for _, e := range []*decl.Element{parent, meet} { // graph/topo.cc:1587 of v2.30.7
		if width > 0 && !s.Rules.Topo.WidenPorts && e.Name == "pci" {
			e.Set("link_width", strconv.Itoa(width))
		}
	}
	nic := parent.Child("nic")
	if nic == nil {
		nic = &decl.Element{Name: "nic", Origin: ports[0].Origin}
		parent.Append(nic)
	}
	net := &decl.Element{Name: "net", Origin: ports[0].Origin, Ports: each}
	nic.Append(net)
	net.Set("name", name)
	net.Set("keep", "1")
	net.Set("dev", strconv.Itoa(dev))
	for _, a := range []string{"latency", "speed", "port", "guid", "maxconn", "gdr"} {
		if val, ok := ports[0].Get(a); ok {
			net.Set(a, val)
		}
	}
	net.Set("speed", strconv.Itoa(speed))
	if us, ok := ports[0].Get("latency"); ok {
		net.Set("latency", strconv.Itoa(int(cnum.Float(us)))) // an int here, unlike in a file (topo.cc:1351)
	}
	v.Nets, v.Made = append(v.Nets, name), append(v.Made, name)
	return nil
}

// ownPCI creates the PCI device of a virtual NIC: a copy of the first port's, under the next free bus id
// (topo.cc:916).
func (v *Host) ownPCI(parent, port *decl.Element) (*decl.Element, error) {
	var src *decl.Element
	if port.Parent() != nil {
		src = port.Parent().Parent()
	}
	if src == nil || src.Name != "pci" {
		name, _ := port.Get("name")
		return nil, &MergeError{name, "the net is on no PCI device"}
	}
	if v.buses == nil {
		v.buses = map[string]bool{}
		for _, e := range v.root.All("pci") {
			v.buses[busID(e)] = true
		}
	}
	id := src.BusID()
	for try := 0; try < 100; try++ {
		id++
		text := cnum.BusIDText(id)
		if v.buses[text] {
			continue
		}
		v.buses[text] = true
		made := &decl.Element{Name: "pci", Origin: src.Origin}
		made.Set("busid", text)
		for _, a := range src.Attrs {
			made.Set(a.Name, a.Value)
		}
		made.Set("busid", text)
		v.gaps[made] = v.gaps[src]
		parent.Append(made)
		return made, nil
	}
	return nil, &MergeError{busID(src), "no free bus id next to it"}
}

func busID(e *decl.Element) string { s, _ := e.Get("busid"); return s }

// widthOf returns the width that the ports have together below an element (topo.cc:1178).
func widthOf(ports []*decl.Element, parent *decl.Element) int {
	sum := 0
	for _, c := range parent.Children {
		if w, found := widthBelow(c, ports); found {
			sum += w
		}
	}
	return sum
}

// widenLinks sets the width of every PCI link between the ports and parent to the sum of the ports' widths
// (topo.cc:1195).
func widenLinks(ports []*decl.Element, parent *decl.Element, sum int) {
	width := strconv.Itoa(sum)
	for _, p := range ports {
		for e := p; e != nil && e != parent; e = e.Parent() {
			if e.Name == "pci" {
				e.Set("link_width", width)
			}
		}
	}
	if parent.Name == "pci" {
		parent.Set("link_width", width)
	}
}

// widthBelow returns the PCI width by which the ports below e are reached: the
// narrower of e's own and the sum over its children (topo.cc:1159).
func widthBelow(e *decl.Element, ports []*decl.Element) (width int, found bool) {
	own := 0
	if e.Name == "pci" {
		own = e.Int("link_width", 0)
	}
	for _, p := range ports {
		found = found || e == p
	}
	sum := 0
	for _, c := range e.Children {
		if w, ok := widthBelow(c, ports); ok {
			found = true
			sum += w
		}
	}
	switch {
	case !found:
		return 0, false
	case sum == 0:
		return own, true
	case own > 0:
		return min(own, sum), true
	}
	return sum, true
}
