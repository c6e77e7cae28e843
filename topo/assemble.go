package topo

import (
	"strings"

	"github.com/simccl/simccl/internal/cnum"
	"github.com/simccl/simccl/internal/iflist"
	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/internal/view"
	"github.com/simccl/simccl/units"
)

// Bandwidths in GB/s that NCCL assumes where the file states none (topo.h:15-32);
// those between Intel sockets are the rules'.
const (
	locBW     = 5000.0
	powerBW   = 32.0
	armBW     = 6.0
	amdBW     = 16.0
	zhaoxinBW = 6.0
	yongfeng  = 9.0
)

// CPU models (graph.h:66-70).
const (
	ModelBDW      CPUModel = 1
	ModelSKL      CPUModel = 2
	ModelSRP      CPUModel = 3
	ModelERP      CPUModel = 4
	ModelYongfeng CPUModel = 1
)

// localMask selects the part of a node's id without the host number, the low 56 bits (topo.h:127).
const localMask = 0x00ffffffffffffff

func ident(host int, local int64) uint64 {
	return uint64(host)<<56 | uint64(local)&localMask
}

// vertex and edge are the graph of a System under construction, in which nodes are added and removed.
type vertex struct {
	Node
	id    uint64
	edges []edge
	from  *Element // the declaration
}

type edge struct {
	to   *vertex
	kind LinkKind
	bw   float32
}

// draft is a System under construction: vertices are linked by pointers and may be removed; freeze numbers
// them.
type draft struct {
	rules     *rules.Ruleset
	netRail   int            // of nets for which nothing gives one, -1 for none
	rails     []NetRail      // of nets that a fabric file says
	hcas      []iflist.Entry // of NCCL_IB_HCA
	exactHCAs bool           // their names are whole
	planes    map[int]int    // numbers of planes by their names in hcas, which begin with none at 0
	of        [NumNodeKinds][]*vertex
	hashes    []uint64 // host_hash by host number
	errs      Errors
	errAt     []Origin // of the elements that errs are about
	root      *Element
}

// complain records a problem of an element. If the element comes from a file, its path is later replaced by
// that in the file; see pathsIn.
func (d *draft) complain(e *Element, attr, problem, hint string) {
	path := e.Name
	if e.Origin.Line == 0 && len(d.errs) < decl.MaxShown {
		path = decl.PathOf(e, above(e))
	}
	d.errAt = append(d.errAt, e.Origin)
	d.errs = append(d.errs, &Error{Pos: e.AttrOrigin(attr), Path: path, Attr: attrText(e, attr),
		Problem: problem, Hint: hint})
}

func attrText(e *Element, attr string) string {
	if attr == "" {
		return ""
	}
	if v, ok := e.Get(attr); ok {
		return attr + "=" + termtext.Quote(v, 0)
	}
	return attr
}

// above returns the elements that contain an element, outermost first.
func above(e *Element) []*Element { return e.Parent().Chain() }

// number reads a required integer attribute; it records an error and returns 0 if the attribute is absent.
func (d *draft) number(e *Element, attr string) int {
	if _, ok := e.Get(attr); !ok {
		d.complain(e, attr, "is missing", "write "+attr+"=\"N\"")
	}
	return e.Int(attr, 0)
}

func (d *draft) get(k NodeKind, id uint64) *vertex {
	for _, v := range d.of[k] {
		if v.id == id {
			return v
		}
	}
	return nil
}

func (d *draft) add(k NodeKind, id uint64, from *Element) *vertex {
	v := &vertex{id: id, from: from}
	v.Kind, v.Ident = k, id
	if k == GPU && d.rules.Topo.SelfLinks {
		connect(v, v, LinkLOC, locBW)
	}
	d.of[k] = append(d.of[k], v)
	return v
}

// connect adds bandwidth from one node to another; links of the same kind to
// the same node add up, and a node's links stay sorted by bandwidth,
// descending, equal ones in order of arrival (topo.cc:163).
func connect(from, to *vertex, kind LinkKind, bw float32) {
	at := -1
	for i := range from.edges {
		if from.edges[i].to == to && from.edges[i].kind == kind {
			at = i
			break
		}
	}
	if at < 0 {
		at = len(from.edges)
		from.edges = append(from.edges, edge{to: to, kind: kind})
	}
	from.edges[at].bw += bw
	e := from.edges[at]
	for at > 0 && from.edges[at-1].bw < e.bw {
		from.edges[at] = from.edges[at-1]
		at--
	}
	from.edges[at] = e
}

// assemble converts a fused tree to nodes and links in NCCL's order
// (topo.cc:672).
func assemble(root *Element, p *Params) *draft {
	d := &draft{root: root, rules: p.Rules, netRail: p.NetRail.Or(-1), rails: p.Rails}
	d.readHCAs(p.IBHCA)
	for _, c := range root.Children {
		if c.Name == "cpu" {
			d.addCPU(c)
		}
	}
	d.addSideLinks(root, 0, d.gpuLinks(), d.addNVLink)
	d.addSideLinks(root, 0, "c2c", d.addC2C)
	if d.rules.Topo.PCILinks {
		d.addSideLinks(root, 0, "pcilink", d.addPCILink)
	}
	d.flattenSwitches()
	d.connectCPUs()
	for _, c := range d.of[CPU] {
		sortUplinks(c, nil, map[*vertex]bool{})
	}
	return d
}

// host numbers hosts by first appearance of their hash (topo.cc:555).
func (d *draft) host(cpu *Element) int {
	h, _ := cpu.Hex("host_hash")
	for i, x := range d.hashes {
		if x == h {
			return i
		}
	}
	d.hashes = append(d.hashes, h)
	return len(d.hashes) - 1
}

func (d *draft) addCPU(e *Element) {
	numa := int64(d.number(e, "numaid"))
	host := d.host(e)
	v := d.add(CPU, ident(host, numa), e)
	v.CPU = readCPU(e, numa, &d.rules.Topo)
	for _, c := range e.Children {
		switch c.Name {
		case "pci":
			d.addPCI(c, v, host, numa)
		case "nic":
			// NCCL shifts the NUMA number above its id mask, so that all NICs
			// outside PCI share one node per host (topo.h:129, topo.cc:551).
			id := ident(host, numa<<56)
			nic := d.get(NIC, id)
			if nic == nil {
				nic = d.add(NIC, id, c)
				connect(v, nic, LinkPCI, locBW)
				connect(nic, v, LinkPCI, locBW)
			}
			d.addNets(c, nic, host)
		}
	}
}

// readCPU classifies a CPU by its attributes (topo.cc:520-545).
func readCPU(e *Element, numa int64, r *rules.Topo) *CPUInfo {
	c := &CPUInfo{NUMA: int(numa), Arch: 0, Vendor: -1, Model: -1}
	c.Affinity, _ = e.Get("affinity")
	arch, _ := e.Get("arch")
	switch {
	case strings.HasPrefix(arch, "x86_64"):
		c.Arch = ArchX86
	case strings.HasPrefix(arch, "arm64"):
		c.Arch = ArchARM
	case strings.HasPrefix(arch, "ppc64"):
		c.Arch = ArchPower
	}
	if c.Arch != ArchX86 {
		return c
	}
	vendor, _ := e.Get("vendor")
	family, model := e.Int("familyid", 0), e.Int("modelid", 0)
	switch {
	case strings.HasPrefix(vendor, "GenuineIntel"):
		c.Vendor = VendorIntel
		switch {
		case family == 6 && model >= 0xCF:
			c.Model = ModelERP
		case family == 6 && model >= 0x8F:
			c.Model = ModelSRP
		case family == 6 && model >= 0x55:
			c.Model = ModelSKL
		default:
			c.Model = ModelBDW
		}
		if r.NewestSKL {
			c.Model = min(c.Model, ModelSKL)
		}
	case strings.HasPrefix(vendor, "AuthenticAMD"):
		c.Vendor = VendorAMD
		if r.AMDModels {
			c.Model = amdModel(family, model)
		}
	case strings.HasPrefix(vendor, "CentaurHauls"), strings.HasPrefix(vendor, "  Shanghai  "):
		c.Vendor = VendorZhaoxin
		if family == 7 && model == 0x5B {
			c.Model = ModelYongfeng
		}
	default:
		c.Vendor = 0
	}
	return c
}

// interCPU returns the bandwidth from one socket to the others (topo.cc:70).
func interCPU(c *CPUInfo, r *rules.Topo) float32 {
	switch {
	case c.Arch == ArchPower:
		return powerBW
	case c.Arch == ArchARM:
		return armBW
	case c.Arch != ArchX86:
		return locBW
	case c.Vendor == VendorAMD:
		return amdBW
	case c.Vendor == VendorIntel:
		switch c.Model {
		case ModelERP:
			return r.IntelERP
		case ModelSRP:
			return r.IntelSRP
		case ModelSKL:
			return r.IntelSKL
		}
		return r.IntelBDW
	case c.Vendor == VendorZhaoxin:
		if c.Model == ModelYongfeng {
			return yongfeng
		}
		return zhaoxinBW
	}
	return locBW
}

// pciClass maps the beginning of a PCI class to a kind of node.
type pciClass struct {
	prefix string
	kind   NodeKind
}

// pciClasses maps class prefixes to node kinds, tried in this order
// (topo.cc:431).
var pciClasses = []pciClass{{decl.PCIBridgeClass, PCI}, {"0x080100", PCI}, {"0x068000", NVS},
	{"0x068001", CPU}, {"0x03", GPU},
	{"0x02", NIC}}

func (d *draft) addPCI(e *Element, parent *vertex, host int, numa int64) {
	class, _ := e.Get("class")
	kind := d.classKind(class)
	busText, ok := e.Get("busid")
	if !ok {
		d.complain(e, "busid", "is missing", `write busid="0000:1b:00.0"`)
	}
	bus := cnum.BusID(busText)
	var v *vertex
	if g := e.Child("gpu"); g != nil {
		if r, _ := g.Get("rank"); r == "" {
			return // no rank's GPU
		}
		kind = GPU
		v = d.addDevice(e, g, host, bus, busText)
	}
	if nic := e.Child("nic"); nic != nil {
		id := ident(host, numa<<56+bus)
		if d.rules.Topo.NICsByCard {
			id = ident(host, bus&^0xf) // graph/topo.cc:419 of v2.23.4
		}
		n := d.get(NIC, id)
		if n == nil {
			n = d.add(NIC, id, e)
			v = n
		}
		d.addNets(nic, n, host)
	} else if kind == PCI {
		v = d.add(PCI, ident(host, bus), e)
		v.PCI = &PCIInfo{Device: deviceID(e)}
		for _, c := range e.Children {
			if c.Name == "pci" {
				d.addPCI(c, v, host, numa)
			}
		}
	}
	if v == nil {
		return
	}
	speed, _ := e.Get("link_speed")
	bw, _ := decl.PCIBandwidth(e.Int("link_width", 0), speed)
	connect(v, parent, LinkPCI, float32(bw))
	connect(parent, v, LinkPCI, float32(bw))
}

// deviceID packs vendor, device and their subsystem twins (topo.cc:467).
func deviceID(e *Element) uint64 {
	var id uint64
	for i, a := range []string{"vendor", "device", "subsystem_vendor", "subsystem_device"} {
		if s, ok := e.Get(a); ok {
			n, _ := cnum.Int(s)
			id += uint64(n) << (48 - 16*i)
		}
	}
	return id
}

func (d *draft) addGPU(g *Element, host int, bus int64, busText string) *vertex {
	v := d.add(GPU, ident(host, bus), g)
	v.GPU = &GPUInfo{
		SM: d.number(g, "sm"), Rank: d.number(g, "rank"), Dev: d.number(g, "dev"),
		GDR:  d.number(g, "gdr") != 0,
		Host: host, BusID: busText,
	}
	v.GPU.Name = label(g)
	d.describeAMD(g, v.GPU)
	return v
}

// label returns an element's name as it is printed: of one line, and without
// characters that act on a terminal.
func label(e *Element) string {
	name, _ := e.Get("name")
	return termtext.Escape(name)
}

func (d *draft) addNets(nic *Element, at *vertex, host int) {
	for _, n := range nic.Children {
		if _, ok := n.Get("dev"); n.Name == "net" && ok {
			d.addNet(n, at, host)
		}
	}
}

func (d *draft) addNet(e *Element, nic *vertex, host int) {
	dev := e.Int("dev", 0)
	if d.rules.Topo.GINNodes {
		if e.Int("gin", 0) != 0 {
			defer d.addGIN(e, nic, host, dev)
		}
		if e.Int("net", 1) == 0 {
			return
		}
	}
	v := d.add(NET, ident(host, int64(dev)), e)
	n := &NetInfo{
		Dev: dev, ASIC: v.id, BW: view.NetSpeed(e), Port: e.Int("port", 0), GDR: e.Int("gdr", 0) != 0,
		Coll: e.Int("coll", 0) != 0, MaxChannels: e.Int("maxconn", d.rules.MaxChannels), LocalGPU: -1,
		Host: host,
	}
	v.Net = n
	n.Name = label(e)
	n.Plugin = view.PluginOf(e)
	n.Sockets = n.Plugin == PluginSockets
	if strings.Contains(n.Name, "+") {
		n.Fused = strings.Split(n.Name, "+")
		for _, mbps := range e.Ports {
			n.PortBW = append(n.PortBW, view.PortSpeed(mbps))
		}
	}
	n.Rail, n.Plane = d.rail(e, n)
	if g, ok := e.Hex("guid"); ok {
		n.ASIC = g
		if text, _ := e.Get("guid"); d.rules.Topo.GUIDPrefixed && !strings.HasPrefix(text, "0x") {
			n.ASIC = 0
		}
	} else if !d.rules.Topo.GUIDFallback {
		n.ASIC = uint64(dev)
	}
	if s, ok := e.Get("latency"); ok {
		n.LatencyUs = cnum.Float(s)
	}
	for up := e.Parent(); up != nil; up = up.Parent() {
		if up.Name == "pci" {
			n.PCIBusID, _ = up.Get("busid")
			if up == e.Parent().Parent() {
				n.Bus = uint64(up.BusID())
			}
			n.Vendor = uint16(deviceID(up) >> 48)
			break
		}
	}
	connect(nic, v, LinkNET, float32(n.BW))
	connect(v, nic, LinkNET, float32(n.BW))
}

// addSideLinks walks the tree for links of a name and adds each with its host
// and the bus id of the nearest element above it that has one (topo.cc:609).
func (d *draft) addSideLinks(e *Element, host int, name string, add func(e *Element, host int)) {
	if e.Name == name {
		add(e, host)
		return
	}
	if e.Name == "cpu" {
		host = d.host(e)
	}
	for _, c := range e.Children {
		d.addSideLinks(c, host, name, add)
	}
}

func (d *draft) addNVLink(e *Element, host int) {
	gpu := d.device(host, e.Parent().BusID())
	if gpu == nil {
		return // an element below a GPU of no rank
	}
	count := d.number(e, "count")
	class, _ := e.Get("tclass")
	var to *vertex
	switch d.classKind(class) {
	case GPU:
		target, ok := e.Get("target")
		if !ok {
			d.complain(e, "target", "is missing", `write the peer's bus id, target="0000:1b:00.0"`)
		}
		to = d.device(host, cnum.BusID(target))
	case CPU:
		to = localCPU(gpu, nil)
	default:
		if len(d.of[NVS]) == 0 {
			d.add(NVS, 0, e)
		}
		to = d.of[NVS][0]
	}
	if to == nil {
		return
	}
	// converted: it is added to later, and must not fuse
	bw := float32(float32(count) * float32(d.linkRate(gpu)))
	connect(gpu, to, LinkNVL, bw)
	if to.Kind != gpu.Kind {
		connect(to, gpu, LinkNVL, bw)
	}
}

func (d *draft) addC2C(e *Element, host int) {
	gpu := d.device(host, e.Parent().BusID())
	if gpu == nil {
		return
	}
	bw := float32(float64(d.number(e, "bw")*d.number(e, "count")) / 1000.0)
	cpu := localCPU(gpu, nil)
	if cpu == nil {
		return
	}
	kind := LinkNVL
	if d.rules.Topo.C2CLinks {
		kind = LinkC2C
	}
	connect(gpu, cpu, kind, bw)
	connect(cpu, gpu, kind, bw)
}

func (d *draft) addPCILink(e *Element, host int) {
	from := d.get(PCI, ident(host, e.Parent().BusID()))
	if from == nil {
		return
	}
	target, ok := e.Get("target")
	if !ok {
		d.complain(e, "target", "is missing", `write the other switch's bus id`)
		return
	}
	if to := d.get(PCI, ident(host, cnum.BusID(target))); to != nil {
		connect(from, to, LinkLOC, locBW)
	}
}

// localCPU follows PCI links from a node to its CPU (topo.cc:44).
func localCPU(v, from *vertex) *vertex {
	if v.Kind == CPU {
		return v
	}
	for _, e := range v.edges {
		if e.kind == LinkPCI && e.to != from && (e.to.Kind == PCI || e.to.Kind == CPU) {
			if c := localCPU(e.to, v); c != nil {
				return c
			}
		}
	}
	return nil
}

// connectCPUs joins all sockets of a host to each other (topo.cc:262).
func (d *draft) connectCPUs() {
	for _, a := range d.of[CPU] {
		for _, b := range d.of[CPU] {
			if a != b && systemOf(a.id, d.rules) == systemOf(b.id, d.rules) {
				connect(a, b, LinkSYS, interCPU(a.CPU, &d.rules.Topo))
			}
		}
	}
}

// sortUplinks moves the link towards the CPU to the end of every list, so that
// a walk goes down the PCI tree before it goes up (topo.cc:328). The link
// moved is the first to the upper node, of whatever kind.
func sortUplinks(v, up *vertex, seen map[*vertex]bool) {
	if seen[v] {
		return // a loop of PCI links: NCCL would never come back from it
	}
	seen[v] = true
	if up != nil {
		l := 0
		for v.edges[l].to != up {
			l++
		}
		e := v.edges[l]
		copy(v.edges[l:], v.edges[l+1:])
		v.edges[len(v.edges)-1] = e
	}
	for _, e := range append([]edge(nil), v.edges...) {
		if e.kind == LinkPCI && e.to != up {
			sortUplinks(e.to, v, seen)
		}
	}
}

// freeze converts a draft into a System: it numbers nodes kind by kind, then their links.
func (d *draft) freeze(p *Params) *System {
	s := &System{Rules: d.rules, NHosts: len(d.hashes), NetDevs: p.NetDevs}
	at := map[*vertex]NodeID{}
	for k := range d.of {
		for _, v := range d.of[k] {
			at[v] = NodeID(len(s.Nodes))
			s.of[k] = append(s.of[k], at[v])
			s.index = append(s.index, int32(len(s.of[k])-1))
			s.Nodes = append(s.Nodes, v.Node)
		}
	}
	for k := range d.of {
		for _, v := range d.of[k] {
			n := &s.Nodes[at[v]]
			for _, e := range v.edges {
				n.Links = append(n.Links, LinkID(len(s.Links)))
				s.Links = append(s.Links, Link{From: at[v], To: at[e.to], Kind: e.kind, BW: units.GBps(e.bw)})
			}
		}
	}
	return s
}
