// Package view makes of a host's declaration what the ranks of NCCL on it see:
// GPUs by local rank, the nets that the plugin in use reports, virtual NICs in
// place of ports that NCCL fuses, and the tree that all ranks agree on. It knows
// no nodes, links or paths. Its counterpart is ncclTopoGetSystem (graph/topo.cc)
// with graph/xml.cc.
package view

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/iflist"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/units"
)

// The attributes that NCCL's socket plugin reports for a virtual interface (net_socket.cc): 10 Gb/s, and its
// largest number of connections.
const (
	socketSpeedMbps = 10000
	socketMaxConn   = 65536
)

// Settings are the part of topo.Params that a host's view depends on.
type Settings struct {
	Rules             *rules.Ruleset
	GPUs              units.Opt[int]         // this many lowest local ranks
	Keep              []int                  // these local ranks in place of GPUs; nil: GPUs says
	NeedNet           bool                   // the communicator has ranks elsewhere
	MergeLevel        units.Opt[rules.Level] // NCCL_NET_MERGE_LEVEL; PORT where unset
	ForceMerge        string                 // NCCL_NET_FORCE_MERGE
	MergeNICsDisabled bool                   // NCCL_IB_MERGE_NICS=0
	IBHCA             string                 // NCCL_IB_HCA
	SocketsOnly       bool                   // NCCL_NET=Socket
	// the network reduces behind every net that does not say coll="0"
	CollNet bool
	// Physical leaves ports as they are: no virtual NICs, as in a dump (topo.cc:1343).
	Physical bool
}

// Host is the working copy of one host: its tree with nets numbered, named
// and fused as the net plugin would, and its GPUs in local rank order.
type Host struct {
	GPUs []*decl.Element // <gpu> elements by local rank
	Nets []string        // names by plugin index, virtual ones last
	Made []string        // names of the virtual NICs

	root  *decl.Element
	whole bool        // rules.Topo.WholeHosts
	trims rules.Trims // rules.Topo.Trims
	rules *rules.Ruleset
	buses map[string]bool // bus ids in the tree, once a virtual NIC asked for a free one
	gaps  map[*decl.Element][]gap
	below map[*decl.Element]int // ranks whose GPU is below an element
}

// rankGPUs lists a host's GPUs in local rank order: by device number where
// every one has it, else by bus id.
func rankGPUs(root *decl.Element, fileRanks bool) []*decl.Element {
	gpus := root.All("gpu")
	if fileRanks && ranked(gpus) {
		sort.SliceStable(gpus, func(i, j int) bool { return gpus[i].Int("rank", 0) < gpus[j].Int("rank", 0) })
		return gpus
	}
	byDev := true
	for _, g := range gpus {
		_, ok := g.Get("dev")
		byDev = byDev && ok
	}
	key := func(g *decl.Element) int64 {
		if byDev {
			return int64(g.Int("dev", 0))
		}
		return g.BusID()
	}
	sort.SliceStable(gpus, func(i, j int) bool { return key(gpus[i]) < key(gpus[j]) })
	return gpus
}

// ranked reports whether the ranks that a file gives its GPUs are 0 to their number less one.
func ranked(gpus []*decl.Element) bool {
	seen := make([]bool, len(gpus))
	for _, g := range gpus {
		r := g.Int("rank", -1)
		if r < 0 || r >= len(gpus) || seen[r] {
			return false
		}
		seen[r] = true
	}
	return true
}

// New prepares one host's tree, which it changes, for the ranks on it. Errors
// are decl.Errors and MergeError.
func New(root *decl.Element, s *Settings) (*Host, error) {
	v := &Host{root: root, whole: s.Rules.Topo.WholeHosts, trims: s.Rules.Topo.Trims, rules: s.Rules,
		GPUs: rankGPUs(root, s.Rules.Topo.AsFile)}
	if s.Keep != nil {
		v.keep(s.Keep)
	} else if keep := s.GPUs; keep.Set {
		removeAll(root, v.GPUs[min(keep.Value, len(v.GPUs)):])
		v.GPUs = v.GPUs[:min(keep.Value, len(v.GPUs))]
	}
	for i, g := range v.GPUs {
		if _, ok := g.Get("rank"); ok {
			g.Set("rank", "") // another run's; its place in the dump stays
		}
		g.SetDefault("dev", strconv.Itoa(i))
	}
	v.fillMissing()
	v.below = above(v.GPUs)
	nets := pluginNets(root, s)
	if most := s.Rules.Topo.MaxNodes; len(nets) > most {
		return nil, decl.Errors{TooMany(s.Rules, nets[most], "nets", len(nets), most)}
	}
	if len(nets) == 0 && s.NeedNet {
		nets = []*decl.Element{addSocketNet(root)}
	}
	verbs, sockets := false, false // NCCL uses one plugin, and sockets where no other has a device
	for i, n := range nets {
		name, _ := n.Get("name")
		plugin := PluginOf(n)
		verbs, sockets = verbs || plugin == Verbs, sockets || plugin == Sockets
		v.Nets = append(v.Nets, name)
		if s.Rules.Topo.AsFile {
			i = n.Int("dev", i)
		}
		describeNet(n, i)
		if s.CollNet && plugin != Sockets {
			n.SetDefault("coll", "1")
		}
	}
	if !s.Physical && verbs && !sockets && s.Rules.Topo.FuseNICs {
		if err := v.fuseNICs(nets, s); err != nil {
			return nil, err
		}
	}
	ranks := make(map[*decl.Element]bool, len(v.GPUs))
	for _, g := range v.GPUs {
		ranks[g] = true
	}
	prune(root, ranks, s.Rules.Topo.Trims)
	if s.Physical { // a dump, for which nothing is read
		return v, nil
	}
	if err := v.unreported(); err != nil {
		return nil, err
	}
	return v, v.required()
}

// unreported complains of nets that stay though the plugin does not report them, under numbers
// that it does not have: NCCL would use devices that do not exist.
func (v *Host) unreported() error {
	var errs decl.Errors
	for _, n := range v.root.All("net") {
		keep, _ := n.Get("keep")
		if dev := n.Int("dev", -1); keep != "1" && dev >= len(v.Nets) && len(v.Nets) > 0 {
			errs = append(errs, &decl.Error{Pos: n.AttrOrigin("dev"),
				Path: decl.PathOf(n, n.Parent().Chain()), Attr: "dev",
				Problem: fmt.Sprintf("the plugin reports %d nets without this one, which NCCL keeps as "+
					"number %d all the same%s", len(v.Nets), dev, v.rules.Aside(rules.AtTrim)),
				Hint: "leave it out of the file, or let NCCL_IB_HCA allow it"})
		}
	}
	return errs.Or()
}

// keep removes all GPUs except those with the given local ranks; ranks that do not exist are ignored.
func (v *Host) keep(ranks []int) {
	var kept, rest []*decl.Element
	for i, g := range v.GPUs {
		if slices.Contains(ranks, i) {
			g.SetDefault("dev", strconv.Itoa(i)) // the device stays what it is
			kept = append(kept, g)
		} else {
			rest = append(rest, g)
		}
	}
	removeAll(v.root, rest)
	v.GPUs = kept
}

// removeAll removes the listed elements from the tree below e.
func removeAll(e *decl.Element, list []*decl.Element) {
	if len(list) == 0 {
		return
	}
	removed := make(map[*decl.Element]bool, len(list))
	for _, x := range list {
		removed[x] = true
	}
	var rec func(e *decl.Element)
	rec = func(e *decl.Element) {
		e.Children = slices.DeleteFunc(e.Children, func(c *decl.Element) bool { return removed[c] })
		for _, c := range e.Children {
			rec(c)
		}
	}
	rec(e)
}

// prune removes, once for all ranks, the branches that every rank would leave out of its own tree (see
// keepBranches), and reports whether a rank keeps e.
func prune(e *decl.Element, ranks map[*decl.Element]bool, trims rules.Trims) bool {
	if keep, _ := e.Get("keep"); keep == "1" || ranks[e] {
		return true
	}
	kept := false
	e.Children = slices.DeleteFunc(e.Children, func(c *decl.Element) bool {
		below := prune(c, ranks, trims)
		kept = kept || below
		return !below && trimmed(c, trims)
	})
	return kept
}

// trimmed reports whether NCCL removes an element in which nothing is kept (xml.cc:975).
func trimmed(e *decl.Element, trims rules.Trims) bool {
	switch {
	case trims == rules.TrimEmpty:
		return len(e.Children) == 0
	case e.Name == "pci", e.Name == "cpu":
		return true
	}
	return trims == rules.TrimNICs && (e.Name == "nic" || e.Name == "net")
}

// pluginNets lists the nets that the plugin reports, by its index: in order of
// the declared dev, one element per name, the first that has it
// (topo.cc:1299).
func pluginNets(root *decl.Element, s *Settings) []*decl.Element {
	all := root.All("net")
	if s.Rules.Topo.AsFile {
		return slices.DeleteFunc(all, func(n *decl.Element) bool {
			_, ok := n.Get("dev")
			return !ok
		})
	}
	var nets []*decl.Element
	seen := map[string]bool{}
	for _, n := range all {
		name, ok := n.Get("name")
		if !ok || seen[name] || !wantedHCA(n, name, s.IBHCA) || s.SocketsOnly && !maybeSockets(n) {
			continue
		}
		if s.SocketsOnly {
			describeSocketNet(n)
		}
		seen[name] = true
		nets = append(nets, n)
	}
	key := func(n *decl.Element) int { return n.Int("dev", 1<<30) }
	sort.SliceStable(nets, func(i, j int) bool { return key(nets[i]) < key(nets[j]) })
	return nets
}

// wantedHCA reports whether NCCL_IB_HCA selects a net; nets of other plugins are always selected.
func wantedHCA(n *decl.Element, name, list string) bool {
	return list == "" || PluginOf(n) != Verbs || Allowed(list, name, n.Int("port", -1))
}

// Allowed reports whether a NCCL_IB_HCA list allows a port (net_ib.cc:740).
func Allowed(list, name string, port int) bool {
	list, not := strings.CutPrefix(list, "^")
	list, exact := strings.CutPrefix(list, "=")
	return iflist.Match(name, port, iflist.Parse(list), exact) != not
}

// addSocketNet adds a TCP interface to the first CPU of a host without any net, as NCCL does for an interface
// without a PCI device (xml.cc:908).
func addSocketNet(root *decl.Element) *decl.Element {
	cpu := root.Find("cpu", nil)
	nic := cpu.Child("nic")
	if nic == nil {
		nic = &decl.Element{Name: "nic", Origin: decl.Origin{File: "assumed"}}
		cpu.Append(nic)
	}
	net := &decl.Element{Name: "net", Origin: decl.Origin{File: "assumed"}}
	nic.Append(net)
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
func describeSocketNet(n *decl.Element) {
	n.SetDefault("port", "0")
	n.SetDefault("maxconn", strconv.Itoa(socketMaxConn))
	n.SetDefault("gdr", "0")
}

// describeNet marks a net as present and writes its plugin index; what the
// plugin would report is written only where the file is silent (topo.cc:1321).
func describeNet(n *decl.Element, dev int) {
	n.Set("keep", "1")
	n.Set("dev", strconv.Itoa(dev))
	n.SetDefault("gdr", "1")
}

// tree returns the XML tree of a rank before fusion: the GPUs of own with their ranks, every net, and the
// branches above them (topo.cc:1455, xml.cc:947).
func (v *Host) tree(own map[*decl.Element]int) *decl.Element {
	t, _ := v.keepBranches(v.root, own)
	if t == nil {
		t = &decl.Element{Name: v.root.Name, Attrs: v.root.Attrs, Open: true, Origin: v.root.Origin}
	}
	return t
}

// keepBranches copies e without the branches in which nothing is kept. Own GPUs get
// their ranks.
func (v *Host) keepBranches(e *decl.Element, own map[*decl.Element]int) (*decl.Element, bool) {
	keep, _ := e.Get("keep")
	if _, mine := own[e]; mine || keep == "1" {
		c := keepWhole(e, own)
		c.Unset("keep")
		return c, true
	}
	c := *e
	c.Children = nil
	kept := false
	for _, s := range e.Children {
		k, ok := v.keepBranches(s, own)
		kept = kept || ok
		if k != nil {
			c.Children = append(c.Children, k)
		}
	}
	if !kept && trimmed(&c, v.trims) {
		return nil, false
	}
	c.Attrs = append([]decl.Attr(nil), e.Attrs...)
	return &c, kept
}

// keepWhole copies e and its subtree. NCCL does not search below an element with keep="1", so an own GPU
// there keeps its mark (xml.cc:922).
func keepWhole(e *decl.Element, own map[*decl.Element]int) *decl.Element {
	c := *e
	c.Attrs = append([]decl.Attr(nil), e.Attrs...)
	if rank, mine := own[e]; mine {
		c.Set("keep", "1")
		c.Set("rank", strconv.Itoa(rank))
		c.SetDefault("gdr", "1")
	}
	c.Children = make([]*decl.Element, len(e.Children))
	for i, s := range e.Children {
		c.Children[i] = keepWhole(s, own)
	}
	return &c
}

// Join merges the trees of a domain's hosts into the one that all ranks agree on, with ranks numbered through
// the hosts in order. An error of poll ends it.
func Join(hosts []*Host, poll func() error) (*decl.Element, error) {
	var top *decl.Element
	rank := 0
	for _, v := range hosts {
		own := map[*decl.Element]int{}
		for l, g := range v.GPUs {
			if err := poll(); err != nil {
				return nil, err
			}
			own[g] = rank
			rank++
			if v.whole && l < len(v.GPUs)-1 {
				continue
			}
			t := v.tree(own)
			clear(own)
			if top == nil {
				top = t
				continue
			}
			top.Fuse(t)
		}
	}
	return top, nil
}

// NetSpeed returns the bandwidth of a <net>: an absent or negative speed counts as
// 10 Gb/s (topo.cc:371).
func NetSpeed(n *decl.Element) units.GBps {
	mbps := n.Int("speed", 0)
	if mbps <= 0 {
		mbps = socketSpeedMbps
	}
	return PortSpeed(mbps)
}

// PortSpeed converts Mb/s to GB/s with NCCL's rounding (topo.cc:373).
func PortSpeed(mbps int) units.GBps { return units.GBps(float32(float64(mbps) / 8000.0)) }
