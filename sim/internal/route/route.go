// Package route finds which links a connection's bytes cross: it resolves the
// connections of a plan into routes over the links of a model (sim/wire).
//
// In: the communicator, the Systems of its nodes, a machine class. Out: links
// and routes declared with a wire.Links, each link once and each set of links as
// one route. It knows nothing of time, and of messages only where their bytes
// go. NCCL counterpart: transport/p2p.cc, shm.cc and net.cc choose the memory
// that a connection's buffers are in.
package route

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// Error is a connection for which the topology has no path.
type Error struct {
	Node     int
	From, To string
}

func (e *Error) Error() string {
	return fmt.Sprintf("simulator: node%d: no path from %s to %s in the topology", e.Node, e.From, e.To)
}

// Table maps connections to routes over the links of the model. Links are
// declared when the first route needs them.
type Table struct {
	Comm    *connect.Layout
	Systems []*topo.System
	class   *gpu.Class
	Links   wire.Links
	byTopo  [][]int32       // node → topo link → link of the model + 1
	gpus    [][]topo.NodeID // node → local rank → GPU
	shape   map[*topo.System][]topo.NodeID
	// node of the topology → the CPU nearest to it + 1, 0 where none has asked
	cpus map[*topo.System][]topo.NodeID
	// node → the node whose links represent its own, -1: none do; nil: each its own
	Home    []int32
	pairs   [][]storePair             // by source
	narrows map[string]wire.LinkID    // by name, see Narrow
	crossed [][]uint64                // node → set of pairs of its GPUs that stores cross between
	crowd   []int32                   // by link at a port of a switch: how many such pairs
	staged  []staging                 // by node: bytes in transit through host memory
	known   map[uint64]wire.RouteID   // routes by a hash of their links
	paths   [][]wire.Use              // by route: its links in their order
	path    []wire.Use                // of the route that is declared
	short   map[*topo.System][]string // names of a topology's nodes
	Place   Place
	Local   wire.RouteID
	Uses    []wire.Use
	conn    plan.Conn // that was described last
}

// Place says where a communicator over a part of a cluster is in it, so that links
// have the names that they have in the whole. The zero value is the whole.
type Place struct {
	Nodes []int32                                 // by node: its number in names; nil: its own
	Short func(node int32, id topo.NodeID) string // name of a node of a System; nil: System.Short
}

func (p *Place) node(n int32) int32 {
	if p.Nodes == nil {
		return n
	}
	return p.Nodes[n]
}

// storePair is a route that channels share, of a source.
type storePair struct {
	dst   int32
	via   connect.Transport
	route wire.RouteID
}

// linkEff is the share of NCCL's figure for a link that payload can use.
func linkEff(c *gpu.Class, k topo.LinkKind) float64 {
	switch k {
	case topo.LinkNVL, topo.LinkC2C:
		return c.LinkEff
	case topo.LinkPCI:
		return c.PCIEff
	case topo.LinkNET:
		return c.Net.Eff
	}
	return 1
}

// New returns the routes of a communicator whose nodes have systems with a
// GPU for each rank.
func New(c *connect.Layout, systems []*topo.System, class *gpu.Class, net wire.Links) *Table {
	w := &Table{Comm: c, Systems: systems, class: class, Links: net,
		byTopo: make([][]int32, len(systems)), gpus: make([][]topo.NodeID, len(systems)),
		shape: make(map[*topo.System][]topo.NodeID), cpus: make(map[*topo.System][]topo.NodeID),
		pairs: make([][]storePair, c.NRanks),
		known: make(map[uint64]wire.RouteID), short: make(map[*topo.System][]string),
		narrows: make(map[string]wire.LinkID), crossed: make([][]uint64, len(systems)),
		staged: make([]staging, len(systems))}
	for i, s := range systems {
		g, ok := w.shape[s]
		if !ok {
			// A part of a split host holds some of the host's ranks, not the first ones.
			g = slices.Clone(s.Of(topo.GPU))
			slices.SortFunc(g, func(a, b topo.NodeID) int {
				return s.Nodes[a].GPU.Rank - s.Nodes[b].GPU.Rank
			})
			w.shape[s], w.cpus[s] = g, make([]topo.NodeID, len(s.Nodes))
		}
		w.gpus[i] = g
	}
	w.Local = net.AddRoute(nil)
	return w
}

// GPU returns the node and GPU whose links a rank uses; node is -1 where they are
// not simulated (Home).
func (w *Table) GPU(rank int32) (node int32, id topo.NodeID) {
	node = w.Comm.NodeOf[rank]
	if w.Home != nil {
		if node = w.Home[node]; node < 0 {
			return node, topo.None
		}
	}
	return node, w.gpus[node][w.Comm.LocalRank[rank]]
}

// link returns the model's link for a directed topo link of a node.
func (w *Table) link(node int32, l topo.LinkID) wire.LinkID {
	s := w.Systems[node]
	if w.byTopo[node] == nil {
		w.byTopo[node] = make([]int32, len(s.Links))
	}
	if id := w.byTopo[node][l]; id > 0 {
		return wire.LinkID(id - 1)
	}
	tl := &s.Links[l]
	rate := wire.RateOf(float64(tl.BW) * linkEff(w.class, tl.Kind))
	if tl.Kind == topo.LinkSYS && w.class.CPURate > 0 {
		rate = wire.RateOf(w.class.CPURate)
	}
	for _, end := range []topo.NodeID{tl.From, tl.To} {
		if info := s.Nodes[end].Net; info != nil {
			rate = w.NetRate(info)
		}
	}
	id := w.Links.AddLink(w.NodeName(node)+" "+w.Name(node, tl.From)+"→"+w.Name(node, tl.To), rate)
	w.byTopo[node][l] = int32(id) + 1
	return id
}

// Name is a node's short name in link counters.
func (w *Table) Name(node int32, id topo.NodeID) string {
	if w.Place.Short != nil {
		return w.Place.Short(node, id)
	}
	s := w.Systems[node]
	names := w.short[s]
	if names == nil {
		names = make([]string, len(s.Nodes))
		w.short[s] = names
	}
	if names[id] == "" {
		names[id] = s.Short(id)
	}
	return names[id]
}

// NodeName is how a node is called in names of links.
func (w *Table) NodeName(node int32) string { return "node" + strconv.Itoa(int(w.Place.node(node))) }

// Walk adds the links of NCCL's path between a GPU, net or CPU and another: of two
// links between a GPU and its CPU, C2C and PCIe, those of the faster (paths.cc:75).
func (w *Table) Walk(node int32, from, to topo.NodeID) error {
	p := w.Systems[node].Path(from, to)
	if p.Kind == topo.PathDIS {
		return &Error{Node: int(node), From: w.Name(node, from), To: w.Name(node, to)}
	}
	for _, l := range p.Links {
		if !w.Systems[node].OnDevice(l) {
			w.Add(w.link(node, l), 1)
		}
	}
	return nil
}

// Add puts a link into Uses, n times.
func (w *Table) Add(l wire.LinkID, n int32) {
	for i := range w.Uses {
		if w.Uses[i].Link == l {
			w.Uses[i].Count += n
			return
		}
	}
	w.Uses = append(w.Uses, wire.Use{Link: l, Count: n})
}

// Intern declares the route of the links in Uses, or finds the one declared
// before for the same links.
func (w *Table) Intern() wire.RouteID {
	if len(w.Uses) == 0 {
		return w.Local
	}
	w.path = append(w.path[:0], w.Uses...)
	slices.SortFunc(w.Uses, func(a, b wire.Use) int { return int(a.Link) - int(b.Link) })
	key := hashOf(w.Uses)
	for {
		r, ok := w.known[key]
		if !ok {
			break
		}
		if slices.Equal(w.Links.Uses(r), w.Uses) {
			return r
		}
		key++
	}
	r := w.Links.AddRoute(slices.Clone(w.Uses))
	w.known[key] = r
	for int(r) >= len(w.paths) {
		w.paths = append(w.paths, nil)
	}
	w.paths[r] = slices.Clone(w.path)
	return r
}

// Path is the links of a route in the order in which they were added: those of the sender's
// host, of the receiver's, and cables between them.
func (w *Table) Path(r wire.RouteID) []wire.Use {
	if int(r) >= len(w.paths) {
		return nil
	}
	return w.paths[r]
}

// hashOf is a hash of a route's links: FNV's steps (G. Fowler, L. C. Noll and P. Vo, 1991)
// over words.
func hashOf(uses []wire.Use) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, u := range uses {
		h = (h ^ (uint64(u.Link)<<32 | uint64(uint32(u.Count)))) * 0x100000001b3
	}
	return h ^ h>>32
}

// Joint adds the links of an op that stores to several peers, or whose loads
// and stores cross an NVLink switch that reduces and copies.
func (w *Table) Joint(op *plan.Op, p *plan.Plan) error {
	for _, id := range op.To {
		if c := w.described(p, id); c.Kind != connect.NVLSRoute {
			p.ConnInto(c, id)
			if err := w.Stores(c); err != nil {
				return err
			}
		}
	}
	return w.throughSwitch(op, p)
}

// described describes the ends of a connection until the next call.
func (w *Table) described(p *plan.Plan, id int32) *plan.Conn {
	p.EndsInto(&w.conn, id)
	return &w.conn
}

// throughSwitch adds the links of a head's op: every rank's data crosses its
// own link once, and the head's link once in all.
func (w *Table) throughSwitch(op *plan.Op, p *plan.Plan) error {
	pulled, spread := int32(-1), int32(-1)
	for _, id := range op.From {
		if c := w.described(p, id); c.Kind == connect.NVLSRoute {
			pulled = c.Dst
			if err := w.ToSwitch(c.Src, true); err != nil {
				return err
			}
		}
	}
	for _, id := range op.To {
		if c := w.described(p, id); c.Kind == connect.NVLSRoute {
			spread = c.Src
			if err := w.ToSwitch(c.Dst, false); err != nil {
				return err
			}
		}
	}
	if pulled >= 0 {
		if err := w.ToSwitch(pulled, false); err != nil {
			return err
		}
	}
	if spread >= 0 {
		return w.ToSwitch(spread, true)
	}
	return nil
}

// ToSwitch adds the link between a rank's GPU and its NVLink switch, out of the GPU or
// in.
func (w *Table) ToSwitch(rank int32, out bool) error {
	node, g := w.GPU(rank)
	s := w.Systems[node]
	g = s.Device(g)
	for _, l := range s.Nodes[g].Links {
		t := s.Links[l].To
		if s.Nodes[t].Kind != topo.NVS {
			continue
		}
		if out {
			w.Add(w.link(node, l), 1)
			return nil
		}
		for _, back := range s.Nodes[t].Links {
			if s.Links[back].To == g {
				w.Add(w.link(node, back), 1)
				return nil
			}
		}
	}
	return &Error{Node: int(node), From: w.Name(node, g), To: "NVSwitch"}
}

// hostPort returns the link that bounds what one GPU's kernels store to host
// memory, or load from it: less than PCIe carries.
func (w *Table) hostPort(node int32, g topo.NodeID, what string) wire.LinkID {
	staged := &w.staged[node]
	id, made := w.Narrow(fmt.Sprintf("node%d %s %s host memory", w.Place.node(node), w.Name(node, g), what),
		w.hostRate(staged))
	if made {
		staged.ports = append(staged.ports, id)
	}
	return id
}

// Narrow returns the link of a name, declared where there was none: a bottleneck
// that no topo link represents, such as a root complex; made says that it is new.
func (w *Table) Narrow(name string, rate wire.Rate) (id wire.LinkID, made bool) {
	if id, ok := w.narrows[name]; ok {
		return id, false
	}
	id = w.Links.AddLink(name, rate)
	w.narrows[name] = id
	return id, true
}

// ThroughRoot adds the bottleneck of a net that reads or writes GPU memory
// through a CPU's root complex, which forwards less than PCIe carries.
func (w *Table) ThroughRoot(node int32, gpu, net topo.NodeID, out bool) {
	s := w.Systems[node]
	rate, cpu := math.Inf(1), false
	for _, l := range s.Path(gpu, net).Links {
		switch s.Links[l].Kind {
		case topo.LinkC2C, topo.LinkNVL:
			return
		case topo.LinkPCI:
			rate = min(rate, float64(s.Links[l].BW))
		}
		cpu = cpu || s.Nodes[s.Links[l].To].Kind == topo.CPU
	}
	if !cpu || math.IsInf(rate, 1) {
		return
	}
	direction := "in"
	if out {
		direction = "out"
	}
	id, _ := w.Narrow(fmt.Sprintf("node%d %s %s through the root complex", w.Place.node(node),
		w.Name(node, net), direction), wire.RateOf(rate*w.class.PCIEff*w.class.RootEff))
	w.Add(id, 1)
}

// CPUOf returns the CPU nearest to a node.
func (w *Table) CPUOf(node int32, id topo.NodeID) topo.NodeID {
	s := w.Systems[node]
	known := &w.cpus[s][id]
	if *known == 0 {
		*known = nearestCPU(s, id) + 1
	}
	return *known - 1
}

func nearestCPU(s *topo.System, id topo.NodeID) topo.NodeID {
	id = s.Device(id)
	seen := make([]bool, len(s.Nodes))
	seen[id] = true
	queue := []topo.NodeID{id}
	for i := 0; i < len(queue); i++ {
		if s.Nodes[queue[i]].Kind == topo.CPU {
			return queue[i]
		}
		for _, l := range s.Nodes[queue[i]].Links {
			if t := s.Links[l].To; !seen[t] && s.Links[l].Kind != topo.LinkNVL && s.GPUAt(t) == topo.None {
				seen[t] = true
				queue = append(queue, t)
			}
		}
	}
	return topo.None
}

// Between returns the route of the bytes that a kernel of the connection's source
// moves itself.
func (w *Table) Between(c *plan.Conn) (wire.RouteID, error) {
	if w.isLocal(c) {
		return w.Local, nil
	}
	key := w.storeKey(c)
	for _, p := range w.pairs[c.Src] {
		if p.dst == key.dst && p.via == key.via {
			return p.route, nil
		}
	}
	w.Uses = w.Uses[:0]
	if err := w.Stores(c); err != nil {
		return 0, err
	}
	key.route = w.Intern()
	w.pairs[c.Src] = append(w.pairs[c.Src], key)
	return key.route, nil
}

// Reads reports whether a receiver reads Simple's data from the sender's memory, as between A100s joined
// by NVLink (ncclTopoCheckP2p, graph/paths.cc of NCCL 2.28.9).
func (w *Table) Reads(c *plan.Conn) bool {
	s, from, to := w.peers(c)
	return s != nil && s.Path(from, to).Kind == topo.PathNVL && s.Nodes[from].GPU.SM == 80 &&
		s.Nodes[to].GPU.SM == 80
}

// peers are the GPUs that a connection joins without host memory, and their node; nil where it joins none
// so, or the node's links are not simulated.
func (w *Table) peers(c *plan.Conn) (s *topo.System, from, to topo.NodeID) {
	if c.Route.Transport != connect.P2P || w.isLocal(c) {
		return nil, 0, 0
	}
	node, from := w.GPU(c.Src)
	if node < 0 {
		return nil, 0, 0
	}
	_, to = w.GPU(c.Dst)
	return w.Systems[node], from, to
}

// staging is the traffic through a node's host memory.
type staging struct {
	bytes units.Bytes   // in transit at a time
	ports []wire.LinkID // of the GPUs to host memory
}

// cross notes a pair of GPUs on the links between them. Where several pairs share
// a port of a switch, their packets wait for each other: with k pairs the port
// passes 1 - Crowd·(1 - 1/k) of its rate.
func (w *Table) cross(node int32, from, to topo.NodeID) {
	s := w.Systems[node]
	gpus := len(s.Of(topo.GPU))
	if w.crossed[node] == nil {
		w.crossed[node] = make([]uint64, (gpus*gpus+63)/64)
	}
	pair := s.Index(from)*gpus + s.Index(to)
	met := &w.crossed[node][pair/64]
	if *met>>(pair%64)&1 != 0 {
		return
	}
	*met |= 1 << (pair % 64)
	left := func(pairs int32) float64 { return 1 - w.class.Crowd*(1-1/float64(pairs)) }
	for _, l := range s.Path(from, to).Links {
		if s.Nodes[s.Links[l].From].Kind != topo.NVS && s.Nodes[s.Links[l].To].Kind != topo.NVS {
			continue
		}
		id := w.link(node, l)
		if n := int(id) + 1 - len(w.crowd); n > 0 {
			w.crowd = append(w.crowd, make([]int32, n)...)
		}
		w.crowd[id]++
		k := w.crowd[id]
		w.Links.Limit(id, wire.Rate(float64(w.Links.Capacity(id))/left(max(1, k-1))*left(k)))
	}
}

// Stage notes a connection through host memory with n bytes in transit at most.
// Traffic that fits the CPU's cache is faster than traffic that has to be written
// to memory and read again.
func (w *Table) Stage(c *plan.Conn, n units.Bytes) {
	s := &w.staged[w.Comm.NodeOf[c.Src]]
	s.bytes += n
	for _, id := range s.ports {
		w.Links.Limit(id, w.hostRate(s))
	}
}

func (w *Table) hostRate(s *staging) wire.Rate {
	if s.bytes > units.Bytes(w.class.HostCache) {
		return wire.RateOf(w.class.HostMemory)
	}
	return wire.RateOf(w.class.HostRate)
}

// isLocal reports whether a connection's stores stay in the rank's own memory:
// a head pulls them through the switch, or the NIC reads them from there.
func (w *Table) isLocal(c *plan.Conn) bool {
	return c.Kind == connect.NVLSRoute ||
		(c.Route.Transport == connect.NET && c.Route.SrcGDR && c.Route.SrcProxy == c.Src)
}

// storeKey names the memory that a connection's stores go to: the peer's, with
// PXN that of the GPU next to the NIC, without GDR the host's (-1).
func (w *Table) storeKey(c *plan.Conn) storePair {
	key := storePair{dst: c.Dst, via: c.Route.Transport}
	if c.Route.Transport == connect.NET {
		key.dst = c.Route.SrcProxy
		if !c.Route.SrcGDR {
			key.dst = -1
		}
	}
	return key
}

// Stores adds the links that the kernel's stores cross.
func (w *Table) Stores(c *plan.Conn) error {
	if w.isLocal(c) {
		return nil
	}
	return w.memoryPath(c, w.storeKey(c))
}

// memoryPath adds the links between a rank and the memory that key names.
func (w *Table) memoryPath(c *plan.Conn, key storePair) error {
	sn, sg := w.GPU(c.Src)
	if key.dst < 0 {
		cpu := w.CPUOf(sn, sg)
		if cpu == topo.None {
			return &Error{Node: int(sn), From: w.Name(sn, sg), To: "host memory"}
		}
		return w.Walk(sn, sg, cpu)
	}
	dn, dg := w.GPU(key.dst)
	switch {
	case sn != dn:
		return &Error{Node: int(sn), From: w.Name(sn, sg), To: fmt.Sprintf("node%d %s", dn, w.Name(dn, dg))}
	case c.Route.Transport == connect.SHM:
		cpu := w.CPUOf(dn, dg)
		if cpu == topo.None {
			return &Error{Node: int(sn), From: w.Name(sn, sg), To: "host memory"}
		}
		if err := w.Walk(sn, sg, cpu); err != nil {
			return err
		}
		if err := w.Walk(sn, cpu, dg); err != nil {
			return err
		}
		w.Add(w.hostPort(sn, sg, "stores"), 1)
		w.Add(w.hostPort(sn, dg, "loads"), 1)
		return nil
	}
	if err := w.Walk(sn, sg, dg); err != nil {
		return err
	}
	w.cross(sn, sg, dg)
	return nil
}

// loopback reports whether a net is the interface without a port.
func loopback(info *topo.NetInfo) bool { return info.Sockets && info.Name == "lo" }

// NetRate is the payload rate of a net: its speed without headers. Loopback is
// as fast as the threads copy.
func (w *Table) NetRate(info *topo.NetInfo) wire.Rate {
	switch {
	case loopback(info):
		return wire.RateOf(10 * max(w.class.Net.TCP.Send, w.class.Net.TCP.Recv))
	case info.Sockets:
		return wire.RateOf(float64(info.BW) * w.class.Net.TCP.Eff)
	}
	return wire.RateOf(float64(info.BW) * w.class.Net.Eff)
}
