package topo

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/simccl/simccl/units"
)

// maxNetSpeed and friends are what NCCL's socket plugin reports of a virtual
// interface (net_socket.cc): 10 Gb/s and as many connections as it can hold.
const (
	socketSpeedMbps = 10000
	socketMaxConn   = 65536
	ibMaxConn       = 131072 // a common limit on queue pairs; only where the file is silent
)

// hostView is the working copy of one host: its tree with nets numbered, named
// and fused as the net plugin would, and its GPUs in local rank order.
type hostView struct {
	root  *Element
	gpus  []*Element      // <gpu> elements by local rank
	nets  []string        // names by plugin index, virtual ones last
	made  []string        // names of the virtual NICs
	buses map[string]bool // bus ids in the tree, once a virtual NIC asked for a free one
}

// adopt sets the up pointers of a working copy.
func adopt(e *Element) *Element {
	for _, c := range e.Children {
		c.up = e
		adopt(c)
	}
	return e
}

// find returns the first element of a name, in document order, for which ok
// holds (xml.h xmlFindTag, xmlFindTagKv).
func find(e *Element, name string, ok func(*Element) bool) *Element {
	if e.Name == name && (ok == nil || ok(e)) {
		return e
	}
	for _, c := range e.Children {
		if f := find(c, name, ok); f != nil {
			return f
		}
	}
	return nil
}

// collect lists the elements of a name in document order.
func collect(e *Element, name string, list []*Element) []*Element {
	if e.Name == name {
		list = append(list, e)
	}
	for _, c := range e.Children {
		list = collect(c, name, list)
	}
	return list
}

// splitHosts makes one working copy per host_hash, in order of first
// appearance (topo.cc:557).
func splitHosts(root *Element) []*Element {
	var hashes []uint64
	var hosts []*Element
	for _, c := range root.Children {
		if c.Name != "cpu" {
			continue
		}
		h, _ := c.Hex("host_hash")
		i := 0
		for i < len(hashes) && hashes[i] != h {
			i++
		}
		if i == len(hashes) {
			hashes = append(hashes, h)
			top := *root
			top.Children = nil
			top.Attrs = append([]Attr(nil), root.Attrs...)
			hosts = append(hosts, &top)
		}
		hosts[i].Children = append(hosts[i].Children, dropMisplaced(c.Clone()))
	}
	for _, h := range hosts {
		adopt(h)
	}
	return hosts
}

// places says inside what NCCL reads these elements; anywhere else it skips
// them, as all that it does not know (xml.cc:326-377).
var places = map[string][]string{"pci": {"cpu", "pci"}, "gpu": {"pci"}, "nvlink": {"gpu"}, "c2c": {"gpu"}, "pcilink": {"pci"}, "nic": {"pci", "cpu"}, "net": {"nic"}}

// dropMisplaced takes out what NCCL does not read at its place.
func dropMisplaced(e *Element) *Element {
	e.Children = slices.DeleteFunc(e.Children, func(c *Element) bool { return !slices.Contains(places[c.Name], e.Name) })
	for _, c := range e.Children {
		dropMisplaced(c)
	}
	return e
}

// rankGPUs lists a host's GPUs in local rank order: by device number where
// every one has it, else by bus id.
func rankGPUs(root *Element) []*Element {
	gpus := collect(root, "gpu", nil)
	byDev := true
	for _, g := range gpus {
		_, ok := g.Get("dev")
		byDev = byDev && ok
	}
	key := func(g *Element) int64 {
		if byDev {
			return int64(g.Int("dev", 0))
		}
		return busIDOf(g)
	}
	sort.SliceStable(gpus, func(i, j int) bool { return key(gpus[i]) < key(gpus[j]) })
	return gpus
}

// busIDOf is the bus id of the nearest <pci> at or above e.
func busIDOf(e *Element) int64 {
	for ; e != nil; e = e.up {
		if v, ok := e.Get("busid"); ok {
			return BusID(v)
		}
	}
	return 0
}

// newHostView prepares one host's tree for the ranks on it. fuse says whether
// virtual NICs are made, as for everything but a dump (topo.cc:1343). p.GPUs
// counts this host's GPUs.
func newHostView(root *Element, p *Params, needNet, fuse bool) (*hostView, error) {
	v := &hostView{root: root, gpus: rankGPUs(root)}
	if keep := p.GPUs; keep.Set {
		removeAll(root, v.gpus[min(keep.Value, len(v.gpus)):])
		v.gpus = v.gpus[:min(keep.Value, len(v.gpus))]
	}
	for i, g := range v.gpus {
		if _, ok := g.Get("rank"); ok {
			g.Set("rank", "") // another run's; its place in the dump stays
		}
		g.setDefault("dev", strconv.Itoa(i))
	}
	fillMissing(root)
	nets := pluginNets(root, p)
	if most := p.Rules.Topo.MaxNodes; len(nets) > most {
		return nil, Errors{tooMany(nets[most], "nets", len(nets), most)}
	}
	if len(nets) == 0 && needNet {
		nets = []*Element{addSocketNet(root)}
	}
	ib := false
	for i, n := range nets {
		name, _ := n.Get("name")
		ib = ib || isIB(n, name)
		v.nets = append(v.nets, name)
		describeNet(n, i)
		if p.CollNet && !ofSockets(n) {
			n.setDefault("coll", "1")
		}
	}
	if fuse && ib && p.Rules.Topo.FuseNICs {
		if err := v.fuseNICs(nets, p); err != nil {
			return nil, err
		}
	}
	ranks := make(map[*Element]bool, len(v.gpus))
	for _, g := range v.gpus {
		ranks[g] = true
	}
	prune(root, ranks)
	return v, nil
}

// TooManyGPUsError reports that more GPUs were asked for than the host has.
type TooManyGPUsError struct{ Asked, Found int }

// Error says how many there are.
func (e *TooManyGPUsError) Error() string {
	return fmt.Sprintf("%d GPUs a node asked for, the topology has %d", e.Asked, e.Found)
}

// removeAll takes elements out of the tree below e.
func removeAll(e *Element, list []*Element) {
	if len(list) == 0 {
		return
	}
	removed := make(map[*Element]bool, len(list))
	for _, x := range list {
		removed[x] = true
	}
	var rec func(e *Element)
	rec = func(e *Element) {
		e.Children = slices.DeleteFunc(e.Children, func(c *Element) bool { return removed[c] })
		for _, c := range e.Children {
			rec(c)
		}
	}
	rec(e)
}

// prune takes out the branches that no rank keeps, and reports whether a rank keeps
// e: every rank would leave them out of its own tree (see keepBranches), and there
// is one for each.
func prune(e *Element, ranks map[*Element]bool) bool {
	if keep, _ := e.Get("keep"); keep == "1" || ranks[e] {
		return true
	}
	kept := false
	e.Children = slices.DeleteFunc(e.Children, func(c *Element) bool {
		below := prune(c, ranks)
		kept = kept || below
		return !below && isBranch(c)
	})
	return kept
}

// isBranch reports whether NCCL leaves an element out where nothing in it is kept
// (xml.cc:922).
func isBranch(e *Element) bool {
	switch e.Name {
	case "pci", "cpu", "nic", "net":
		return true
	}
	return false
}

// appendChild adds e as the last child of to.
func appendChild(to, e *Element) {
	e.up = to
	to.Children = append(to.Children, e)
}

// fillMissing writes what NCCL would take from the running machine, for which
// a file alone has no source (xml.cc:476, xml.cc:548): the golden's stated
// assumptions are an AMD x86 machine without sysfs.
func fillMissing(root *Element) {
	for _, c := range collect(root, "cpu", nil) {
		c.setDefault("arch", "x86_64")
		if arch, _ := c.Get("arch"); strings.HasPrefix(arch, "x86_64") {
			c.setDefault("vendor", "AuthenticAMD")
		}
	}
	for _, e := range collect(root, "pci", nil) {
		switch {
		case e.Child("gpu") != nil:
			e.setDefault("class", "0x03")
		case e.Child("nic") != nil:
			e.setDefault("class", "0x02")
		default:
			e.setDefault("class", bridgeClass)
		}
		e.setDefault("link_speed", "")
		e.setDefault("link_width", "")
	}
	for _, l := range collect(root, "nvlink", nil) {
		l.setDefault("tclass", "0x068000") // a target that the machine does not show is an NVSwitch (xml.cc:834)
	}
}

// isIB reports whether a net's name is one that NCCL's IB plugin gives. An interface
// of IP over InfiniBand may be called ib0 as well; it is the socket plugin's.
func isIB(n *Element, name string) bool {
	if ofSockets(n) {
		return false
	}
	for _, p := range []string{"mlx", "ib", "bnxt", "ionic"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// ofSockets reports whether the socket plugin reported a net: port 0, host memory
// only, and so many connections (net_socket.cc:117).
func ofSockets(n *Element) bool {
	return n.Int("port", -1) == 0 && n.Int("gdr", -1) == 0 && n.Int("maxconn", -1) == socketMaxConn
}

// maybeSockets reports whether the socket plugin could have reported a net: it has
// no device's name of InfiniBand, and says nothing of itself that this plugin
// never says. NCCL drops what the plugin in use does not report (plugin/net.cc:360,
// xml.cc:957).
func maybeSockets(n *Element, name string) bool {
	return !isIB(n, name) && n.Int("port", 0) == 0 && n.Int("gdr", 0) == 0 && n.Int("maxconn", socketMaxConn) == socketMaxConn
}

// pluginNets lists the nets that the plugin reports, by its index: in order of
// the declared dev, one element per name, the first that has it
// (topo.cc:1299).
func pluginNets(root *Element, p *Params) []*Element {
	all := collect(root, "net", nil)
	var nets []*Element
	seen := map[string]bool{}
	for _, n := range all {
		name, ok := n.Get("name")
		if !ok || seen[name] || !wantedHCA(n, name, p.IBHCA) || p.SocketsOnly && !maybeSockets(n, name) {
			continue
		}
		if p.SocketsOnly {
			describeSocketNet(n)
		}
		seen[name] = true
		nets = append(nets, n)
	}
	key := func(n *Element) int { return n.Int("dev", 1<<30) }
	sort.SliceStable(nets, func(i, j int) bool { return key(nets[i]) < key(nets[j]) })
	return nets
}

// wantedHCA applies NCCL_IB_HCA to nets of the IB plugin (net_ib.cc:701).
func wantedHCA(n *Element, name, list string) bool {
	if list == "" || !isIB(n, name) {
		return true
	}
	not := strings.HasPrefix(list, "^")
	list = strings.TrimPrefix(list, "^")
	exact := strings.HasPrefix(list, "=")
	list = strings.TrimPrefix(list, "=")
	ifs := parseInterfaces(list)
	return matchInterface(name, n.Int("port", -1), ifs, exact) != not
}

// iface is one entry "name:port" of an interface list; port -1 matches any.
type iface struct {
	prefix string
	port   int
}

// parseInterfaces reads "a,b:1" (utils.cc:136).
func parseInterfaces(s string) []iface {
	var out []iface
	for _, f := range strings.Split(s, ",") {
		name, port, has := strings.Cut(f, ":")
		if name == "" {
			continue
		}
		i := iface{prefix: name, port: -1}
		if has {
			n, _ := CInt(port)
			i.port = int(n)
		}
		out = append(out, i)
	}
	return out
}

// matchInterface reports whether a name and port are on a list; an empty list
// holds everything (utils.cc:182).
func matchInterface(name string, port int, ifs []iface, exact bool) bool {
	if len(ifs) == 0 {
		return true
	}
	for _, i := range ifs {
		match := strings.HasPrefix(name, i.prefix)
		if exact {
			match = name == i.prefix
		}
		if match && (i.port == -1 || port == -1 || i.port == port) {
			return true
		}
	}
	return false
}

// addSocketNet gives a host without any net a TCP interface on its first CPU,
// as NCCL does with one that is no PCI device (xml.cc:908).
func addSocketNet(root *Element) *Element {
	cpu := find(root, "cpu", nil)
	nic := cpu.Child("nic")
	if nic == nil {
		nic = &Element{Name: "nic", Origin: Origin{File: "assumed"}}
		appendChild(cpu, nic)
	}
	net := &Element{Name: "net", Origin: Origin{File: "assumed"}}
	appendChild(nic, net)
	net.Set("name", "eth0")
	net.Set("dev", "0")
	net.Set("latency", "0")
	net.Set("speed", strconv.Itoa(socketSpeedMbps))
	net.Set("port", "0")
	net.Set("guid", "0x0")
	describeSocketNet(net)
	return net
}

// describeSocketNet writes what the socket plugin reports of every net, where the
// file is silent (net_socket.cc:117).
func describeSocketNet(n *Element) {
	n.setDefault("port", "0")
	n.setDefault("maxconn", strconv.Itoa(socketMaxConn))
	n.setDefault("gdr", "0")
}

// describeNet marks a net as present and writes its plugin index; what the
// plugin would report is written only where the file is silent (topo.cc:1321).
func describeNet(n *Element, dev int) {
	n.Set("keep", "1")
	n.Set("dev", strconv.Itoa(dev))
	n.setDefault("gdr", "1")
}

// rankTree is what one rank's XML holds when it comes to fusion: its own GPU,
// every net, and the branches above them (topo.cc:1455, xml.cc:947).
func (v *hostView) rankTree(local, rank int) *Element {
	own := v.gpus[local]
	t, _ := keepBranches(v.root, own)
	if t == nil {
		t = &Element{Name: v.root.Name, Attrs: v.root.Attrs, Open: true, Origin: v.root.Origin}
	}
	if g := find(t, "gpu", func(e *Element) bool { r, _ := e.Get("rank"); return r == ownRank }); g != nil {
		g.Set("rank", strconv.Itoa(rank))
	}
	return t
}

// ownRank marks the own GPU until its rank is filled in.
const ownRank = "own"

// keepBranches copies e without the branches in which nothing is kept. The own
// GPU gets a rank attribute to be filled in.
func keepBranches(e, own *Element) (*Element, bool) {
	keep, _ := e.Get("keep")
	if e == own || keep == "1" {
		c := keepWhole(e, own)
		c.unset("keep")
		return c, true
	}
	c := *e
	c.Children = nil
	kept := false
	for _, s := range e.Children {
		k, ok := keepBranches(s, own)
		kept = kept || ok
		if k != nil {
			c.Children = append(c.Children, k)
		}
	}
	if !kept && isBranch(e) {
		return nil, false
	}
	c.Attrs = append([]Attr(nil), e.Attrs...)
	return &c, kept
}

// keepWhole copies e and all below it, as NCCL leaves a branch whose top says
// keep="1": it does not search further down, so the own GPU there keeps its mark
// (xml.cc:922).
func keepWhole(e, own *Element) *Element {
	c := *e
	c.Attrs = append([]Attr(nil), e.Attrs...)
	if e == own {
		c.Set("keep", "1")
		c.Set("rank", ownRank)
		c.setDefault("gdr", "1")
	}
	c.Children = make([]*Element, len(e.Children))
	for i, s := range e.Children {
		c.Children[i] = keepWhole(s, own)
	}
	return &c
}

// fuseTrees adds to dst what src has and dst has not, level by level; two
// elements are the same when name, form and all attributes are (xml.cc:277).
func fuseTrees(dst, src *Element) {
	for _, s := range src.Children {
		d := sameChild(dst, s)
		if d == nil {
			dst.Children = append(dst.Children, s)
			continue
		}
		fuseTrees(d, s)
	}
}

func sameChild(parent, e *Element) *Element {
	for _, c := range parent.Children {
		if c.Name == e.Name && c.Open == e.Open && len(c.Attrs) == len(e.Attrs) && sameAttrs(c, e) {
			return c
		}
	}
	return nil
}

func sameAttrs(a, b *Element) bool {
	for i := range b.Attrs {
		if v, ok := a.Get(b.Attrs[i].Name); !ok || v != b.Attrs[i].Value {
			return false
		}
	}
	return true
}

// fuseHosts makes the tree that all ranks of a domain agree on, ranks numbered
// through the hosts in order.
func fuseHosts(views []*hostView, p *Params) (*Element, error) {
	var top *Element
	rank := 0
	for _, v := range views {
		for l := range v.gpus {
			if err := p.poll(); err != nil {
				return nil, err
			}
			t := v.rankTree(l, rank)
			rank++
			if top == nil {
				top = t
				continue
			}
			fuseTrees(top, t)
		}
	}
	return top, nil
}

// netSpeed is the bandwidth of a <net>: an absent or negative speed counts as
// 10 Gb/s (topo.cc:371).
func netSpeed(n *Element) units.GBps {
	mbps := n.Int("speed", 0)
	if mbps <= 0 {
		mbps = socketSpeedMbps
	}
	return portSpeed(mbps)
}

// portSpeed converts Mb/s as NCCL does (topo.cc:373).
func portSpeed(mbps int) units.GBps { return units.GBps(float32(float64(mbps) / 8000.0)) }
