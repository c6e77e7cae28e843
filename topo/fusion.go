package topo

import (
	"fmt"
	"strconv"
	"strings"
)

// maxPerVNIC is how many ports one virtual NIC may hold (net.h
// NCCL_NET_MAX_DEVS_PER_NIC).
const maxPerVNIC = 4

// bridgeClass is the PCI class of a switch port (topo.cc:429).
const bridgeClass = "0x060400"

// MergeError reports that NCCL_NET_FORCE_MERGE cannot be followed; NCCL's init
// fails on it.
type MergeError struct{ Group, Problem string }

// Error names the group of NICs.
func (e *MergeError) Error() string {
	return fmt.Sprintf("NCCL_NET_FORCE_MERGE group %q: %s", e.Group, e.Problem)
}

// fuseNICs makes virtual NICs of ports that are near each other, as NCCL does
// with the IB plugin: first the groups that the user forces, then every port
// with those at most the merge level away (topo.cc:1261). The ports themselves
// leave the topology.
func (v *hostView) fuseNICs(nets []*Element, p *Params) error {
	placed := make([]bool, len(nets))
	groups, err := forcedGroups(nets, placed, p)
	if err != nil {
		return err
	}
	groups = append(groups, nearGroups(nets, placed, p)...)
	dev := len(nets)
	for _, g := range groups {
		if len(g) < 2 {
			continue
		}
		for _, d := range g {
			nets[d].Set("keep", "0")
		}
		if err := v.addVNIC(nets, g, dev, p); err != nil {
			return err
		}
		dev++
	}
	return nil
}

// forcedGroups reads NCCL_NET_FORCE_MERGE (topo.cc:1021).
func forcedGroups(nets []*Element, placed []bool, p *Params) ([][]int, error) {
	var groups [][]int
	for _, part := range strings.Split(p.ForceMerge, ";") {
		if part == "" {
			continue
		}
		ifs := parseInterfaces(part)
		ifs = ifs[:min(len(ifs), maxPerVNIC)] // NCCL reads no further (topo.cc:1045)
		var g []int
		for d, n := range nets {
			name, _ := n.Get("name")
			if len(ifs) > 0 && matchInterface(name, n.Int("port", -1), ifs, true) {
				g = append(g, d)
			}
		}
		switch {
		case len(g) != len(ifs):
			return nil, &MergeError{part, fmt.Sprintf("matches %d nets, names %d", len(g), len(ifs))}
		case len(g) > 1 && p.MergeNICsDisabled:
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
func nearGroups(nets []*Element, placed []bool, p *Params) [][]int {
	if p.MergeNICsDisabled {
		return nil
	}
	level := p.MergeLevel.Or(PathPORT)
	var groups [][]int
	for i := range nets {
		if placed[i] {
			continue
		}
		placed[i] = true
		g := []int{i}
		for j := range nets {
			if j != i && !placed[j] {
				if kind, _ := netPath([]*Element{nets[i], nets[j]}); kind <= level {
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

// chainFrom lists e and all above it, outermost first.
func chainFrom(e *Element) []*Element {
	var up []*Element
	for ; e != nil; e = e.up {
		up = append(up, e)
	}
	for i, j := 0, len(up)-1; i < j; i, j = i+1, j-1 {
		up[i], up[j] = up[j], up[i]
	}
	return up
}

// netPath reports how far nets are apart and under which element they meet, or
// the <pci> above that (topo.cc:831).
func netPath(nets []*Element) (PathKind, *Element) {
	chains := make([][]*Element, len(nets))
	for i, n := range nets {
		chains[i] = chainFrom(n)
	}
	var common *Element
	for depth := 0; depth < len(chains[0]); depth++ {
		here := chains[0][depth]
		same := true
		for _, c := range chains[1:] {
			same = same && depth < len(c) && c[depth] == here
		}
		if !same {
			if sameCard(chains, depth) {
				return PathPORT, pciAbove(common)
			}
			break
		}
		common = here
	}
	return meetKind(common, nets), pciAbove(common)
}

// sameCard reports whether the places where the chains part are functions of one
// PCI device: bus ids that differ in the last character only.
func sameCard(chains [][]*Element, depth int) bool {
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

func meetKind(common *Element, nets []*Element) PathKind {
	if common == nil {
		return PathDIS
	}
	switch common.Name {
	case "system":
		return PathSYS
	case "cpu":
		return PathPHB
	case "nic", "net":
		return PathPORT
	}
	for _, n := range nets {
		nic := n.up
		if nic != nil && nic.Name == "nic" && nic.up != nil && nic.up.Name == "pci" && nic.up.up != common {
			return PathPXB
		}
	}
	return PathPIX
}

// pciAbove climbs to the nearest <pci>; below a CPU it stays where it is.
func pciAbove(e *Element) *Element {
	for p := e; p != nil && p.Name != "system"; p = p.up {
		if p.Name == "pci" {
			return p
		}
	}
	return e
}

// addVNIC puts the virtual NIC of a group into the tree (topo.cc:1212,
// topo.cc:1298). Ports that meet at a switch or a CPU get a PCI device of their
// own, and the links above them are widened to what the ports have together.
func (v *hostView) addVNIC(nets []*Element, group []int, dev int, p *Params) error {
	ports := make([]*Element, len(group))
	names := make([]string, len(group))
	speed, each := 0, make([]int, len(group))
	for i, d := range group {
		ports[i] = nets[d]
		names[i], _ = nets[d].Get("name")
		mbps := nets[d].Int("speed", 0)
		speed, each[i] = speed+mbps, mbps
	}
	name := strings.Join(names, "+")
	if find(v.root, "net", func(e *Element) bool { n, _ := e.Get("name"); return n == name }) != nil {
		return nil // already there, as in a file that holds virtual NICs
	}
	kind, parent := netPath(ports)
	if p.Rules.Topo.WidenFused && (kind == PathPHB || kind == PathPXB || kind == PathPIX) {
		widenLinks(ports, parent)
	}
	if parent == nil {
		return &MergeError{name, "the ports have nothing in common"}
	}
	class, _ := parent.Get("class")
	if parent.Name == "cpu" || (parent.Name == "pci" && class == bridgeClass) {
		made, err := v.ownPCI(parent, ports[0])
		if err != nil {
			return err
		}
		parent = made
	}
	nic := parent.Child("nic")
	if nic == nil {
		nic = &Element{Name: "nic", Origin: ports[0].Origin}
		appendChild(parent, nic)
	}
	net := &Element{Name: "net", Origin: ports[0].Origin, mbps: each}
	appendChild(nic, net)
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
		net.Set("latency", strconv.Itoa(int(cFloat(us)))) // an int here, unlike in a file (topo.cc:1351)
	}
	v.nets, v.made = append(v.nets, name), append(v.made, name)
	return nil
}

// ownPCI makes a PCI device for a virtual NIC: a copy of the first port's, under
// the next free bus id (topo.cc:916).
func (v *hostView) ownPCI(parent, port *Element) (*Element, error) {
	var src *Element
	if port.up != nil {
		src = port.up.up
	}
	if src == nil || src.Name != "pci" {
		name, _ := port.Get("name")
		return nil, &MergeError{name, "the net is on no PCI device"}
	}
	if v.buses == nil {
		v.buses = map[string]bool{}
		for _, e := range collect(v.root, "pci", nil) {
			v.buses[busIDAttr(e)] = true
		}
	}
	id := busIDOf(src)
	for try := 0; try < 100; try++ {
		id++
		text := BusIDText(id)
		if v.buses[text] {
			continue
		}
		v.buses[text] = true
		made := &Element{Name: "pci", Origin: src.Origin}
		made.Set("busid", text)
		for _, a := range src.Attrs {
			made.Set(a.Name, a.Value)
		}
		made.Set("busid", text)
		appendChild(parent, made)
		return made, nil
	}
	return nil, &MergeError{busIDAttr(src), "no free bus id next to it"}
}

func busIDAttr(e *Element) string { s, _ := e.Get("busid"); return s }

// widenLinks gives every PCI link from the ports up to parent the width that
// the ports have together (topo.cc:1195).
func widenLinks(ports []*Element, parent *Element) {
	sum := 0
	for _, c := range parent.Children {
		if w, found := widthBelow(c, ports); found {
			sum += w
		}
	}
	width := strconv.Itoa(sum)
	for _, p := range ports {
		for e := p; e != nil && e != parent; e = e.up {
			if e.Name == "pci" {
				e.Set("link_width", width)
			}
		}
	}
	if parent.Name == "pci" {
		parent.Set("link_width", width)
	}
}

// widthBelow is the PCI width by which the ports below e are reached: the
// narrower of e's own and the sum over its children (topo.cc:1159).
func widthBelow(e *Element, ports []*Element) (width int, found bool) {
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
