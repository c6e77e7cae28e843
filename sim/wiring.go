package sim

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// wiring turns connections into routes over the links of the model. Links are
// declared when the first route needs them.
type wiring struct {
	comm    *connect.Comm
	systems []*topo.System
	class   *gpu.Class
	net     wire.Links
	links   [][]int32       // node → topo link → link of the model + 1
	gpus    [][]topo.NodeID // node → local rank → GPU
	shape   map[*topo.System][]topo.NodeID
	home    []int32 // node → node whose links stand for its own, -1: they are left out; nil: each its own
	pairs   map[pair]wire.RouteID
	hosts   map[string]wire.LinkID  // by name, see narrow
	met     map[met]bool            // pairs that stores cross between
	crowd   map[wire.LinkID]int     // by link at a port of a switch: how many such pairs
	staged  []staging               // by node: what goes through host memory
	known   map[string]wire.RouteID // routes by their links
	key     []byte
	local   wire.RouteID
	uses    []wire.Use
}

// pair keys the routes that channels share.
type pair struct {
	src, dst int32
	via      connect.Transport
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

func newWiring(c *connect.Comm, systems []*topo.System, class *gpu.Class, net wire.Links) (*wiring, error) {
	w := &wiring{comm: c, systems: systems, class: class, net: net,
		links: make([][]int32, len(systems)), gpus: make([][]topo.NodeID, len(systems)),
		shape: make(map[*topo.System][]topo.NodeID), pairs: make(map[pair]wire.RouteID),
		known: make(map[string]wire.RouteID), hosts: make(map[string]wire.LinkID), met: make(map[met]bool), crowd: make(map[wire.LinkID]int), staged: make([]staging, len(systems))}
	if len(systems) != c.NNodes {
		return nil, &ConfigError{"Systems", fmt.Sprintf("%d systems for %d nodes; give one a node", len(systems), c.NNodes)}
	}
	for i, s := range systems {
		g, ok := w.shape[s]
		if !ok {
			// A part of a split host holds some of its ranks, not the first ones.
			g = slices.Clone(s.Of(topo.GPU))
			slices.SortFunc(g, func(a, b topo.NodeID) int { return s.Nodes[a].GPU.Rank - s.Nodes[b].GPU.Rank })
			w.shape[s] = g
		}
		w.gpus[i] = g
		if len(c.NodeRanks[i]) > len(g) {
			return nil, &ConfigError{"Systems", fmt.Sprintf("node %d has %d GPUs for %d ranks", i, len(g), len(c.NodeRanks[i]))}
		}
	}
	w.local = net.AddRoute(nil)
	return w, nil
}

// gpu returns where a rank's links are; node is -1 where they are left out.
func (w *wiring) gpu(rank int32) (node int32, id topo.NodeID) {
	node = w.comm.NodeOf[rank]
	if w.home != nil {
		if node = w.home[node]; node < 0 {
			return node, topo.None
		}
	}
	return node, w.gpus[node][w.comm.LocalRank[rank]]
}

// link returns the model's link for a directed topo link of a node.
func (w *wiring) link(node int32, l topo.LinkID) wire.LinkID {
	s := w.systems[node]
	if w.links[node] == nil {
		w.links[node] = make([]int32, len(s.Links))
	}
	if id := w.links[node][l]; id > 0 {
		return wire.LinkID(id - 1)
	}
	tl := &s.Links[l]
	rate := wire.RateOf(float64(tl.BW) * linkEff(w.class, tl.Kind))
	for _, end := range []topo.NodeID{tl.From, tl.To} {
		if info := s.Nodes[end].Net; info != nil {
			rate = w.netRate(info)
		}
	}
	id := w.net.AddLink(fmt.Sprintf("node%d %s→%s", node, w.name(node, tl.From), w.name(node, tl.To)), rate)
	w.links[node][l] = int32(id) + 1
	return id
}

// name is a node's short name in link counters.
func (w *wiring) name(node int32, id topo.NodeID) string { return w.systems[node].Short(id) }

// walk adds the links of the best path between a GPU and a GPU or net, in
// either direction.
func (w *wiring) walk(node int32, from, to topo.NodeID) error {
	p := w.systems[node].Path(from, to)
	if p.Kind == topo.PathDIS {
		return &RouteError{Node: int(node), From: w.name(node, from), To: w.name(node, to)}
	}
	for _, l := range p.Links {
		w.add(w.link(node, l), 1)
	}
	return nil
}

// walkHost adds the links of the shortest way between host memory and a GPU or
// net: over PCIe and between CPUs, through no other GPU.
func (w *wiring) walkHost(node int32, from, to topo.NodeID) error {
	s := w.systems[node]
	via := make([]topo.LinkID, len(s.Nodes))
	for i := range via {
		via[i] = -1
	}
	queue := []topo.NodeID{from}
	for i := 0; i < len(queue) && via[to] < 0; i++ {
		for _, l := range s.Nodes[queue[i]].Links {
			t := s.Links[l].To
			if s.Links[l].Kind == topo.LinkNVL || t == from || via[t] >= 0 || (t != to && s.Nodes[t].Kind == topo.GPU) {
				continue
			}
			via[t] = l
			queue = append(queue, t)
		}
	}
	if via[to] < 0 {
		return &RouteError{Node: int(node), From: w.name(node, from), To: w.name(node, to)}
	}
	for at := to; at != from; at = s.Links[via[at]].From {
		w.add(w.link(node, via[at]), 1)
	}
	return nil
}

func (w *wiring) add(l wire.LinkID, n int32) {
	for i := range w.uses {
		if w.uses[i].Link == l {
			w.uses[i].Count += n
			return
		}
	}
	w.uses = append(w.uses, wire.Use{Link: l, Count: n})
}

// intern declares the route of the links gathered, or finds the one that has
// the same.
func (w *wiring) intern() wire.RouteID {
	if len(w.uses) == 0 {
		return w.local
	}
	slices.SortFunc(w.uses, func(a, b wire.Use) int { return int(a.Link) - int(b.Link) })
	w.key = w.key[:0]
	for _, u := range w.uses {
		w.key = binary.LittleEndian.AppendUint64(w.key, uint64(u.Link)<<32|uint64(u.Count))
	}
	if r, ok := w.known[string(w.key)]; ok {
		return r
	}
	r := w.net.AddRoute(slices.Clone(w.uses))
	w.known[string(w.key)] = r
	return r
}

// joint adds the links of an op that stores to several peers, or whose loads
// and stores cross an NVLink switch that reduces and copies.
func (w *wiring) joint(op *plan.Op, connOf func(int32) plan.Conn) error {
	for _, id := range op.To {
		if c := connOf(id); c.Kind != connect.NVLSRoute {
			if err := w.stores(&c); err != nil {
				return err
			}
		}
	}
	return w.throughSwitch(op, connOf)
}

// throughSwitch adds the links of a head's op: every rank's data crosses its
// own link once, and the head's link once in all.
func (w *wiring) throughSwitch(op *plan.Op, connOf func(int32) plan.Conn) error {
	pulled, spread := int32(-1), int32(-1)
	for _, id := range op.From {
		if c := connOf(id); c.Kind == connect.NVLSRoute {
			pulled = c.Dst
			if err := w.toSwitch(c.Src, true); err != nil {
				return err
			}
		}
	}
	for _, id := range op.To {
		if c := connOf(id); c.Kind == connect.NVLSRoute {
			spread = c.Src
			if err := w.toSwitch(c.Dst, false); err != nil {
				return err
			}
		}
	}
	if pulled >= 0 {
		if err := w.toSwitch(pulled, false); err != nil {
			return err
		}
	}
	if spread >= 0 {
		return w.toSwitch(spread, true)
	}
	return nil
}

// toSwitch adds the link between a rank's GPU and its NVLink switch.
func (w *wiring) toSwitch(rank int32, out bool) error {
	node, g := w.gpu(rank)
	s := w.systems[node]
	for _, l := range s.Nodes[g].Links {
		t := s.Links[l].To
		if s.Nodes[t].Kind != topo.NVS {
			continue
		}
		if out {
			w.add(w.link(node, l), 1)
			return nil
		}
		for _, back := range s.Nodes[t].Links {
			if s.Links[back].To == g {
				w.add(w.link(node, back), 1)
				return nil
			}
		}
	}
	return &RouteError{Node: int(node), From: w.name(node, g), To: "NVSwitch"}
}

// hostPort returns the link that stands for what one GPU's kernels store to
// host memory, or load from it: less than PCIe carries.
func (w *wiring) hostPort(node int32, g topo.NodeID, what string) wire.LinkID {
	staged := &w.staged[node]
	id, made := w.narrow(fmt.Sprintf("node%d %s %s host memory", node, w.name(node, g), what), w.hostRate(staged))
	if made {
		staged.ports = append(staged.ports, id)
	}
	return id
}

// narrow returns the link of a name for what is slower than the links it
// crosses; made where there was none.
func (w *wiring) narrow(name string, rate wire.Rate) (id wire.LinkID, made bool) {
	if id, ok := w.hosts[name]; ok {
		return id, false
	}
	id = w.net.AddLink(name, rate)
	w.hosts[name] = id
	return id, true
}

// throughRoot adds what holds a net up that reads or writes GPU memory over
// PCIe and through a CPU's root complex: it passes on less than PCIe carries.
func (w *wiring) throughRoot(node int32, gpu, net topo.NodeID, out bool) {
	s := w.systems[node]
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
	way := "in"
	if out {
		way = "out"
	}
	id, _ := w.narrow(fmt.Sprintf("node%d %s %s through the root complex", node, w.name(node, net), way), wire.RateOf(rate*w.class.PCIEff*w.class.RootEff))
	w.add(id, 1)
}

// cpuOf returns the CPU nearest to a node.
func (w *wiring) cpuOf(node int32, id topo.NodeID) topo.NodeID {
	s := w.systems[node]
	seen := make([]bool, len(s.Nodes))
	seen[id] = true
	queue := []topo.NodeID{id}
	for i := 0; i < len(queue); i++ {
		if s.Nodes[queue[i]].Kind == topo.CPU {
			return queue[i]
		}
		for _, l := range s.Nodes[queue[i]].Links {
			if t := s.Links[l].To; !seen[t] && s.Links[l].Kind != topo.LinkNVL && s.Nodes[t].Kind != topo.GPU {
				seen[t] = true
				queue = append(queue, t)
			}
		}
	}
	return topo.None
}

// between declares the route of the bytes that a kernel moves itself.
func (w *wiring) between(c *plan.Conn) (wire.RouteID, error) {
	if w.isLocal(c) {
		return w.local, nil
	}
	key := w.storeKey(c)
	if r, ok := w.pairs[key]; ok {
		return r, nil
	}
	w.uses = w.uses[:0]
	if err := w.stores(c); err != nil {
		return 0, err
	}
	r := w.intern()
	w.pairs[key] = r
	return r, nil
}

// met keys a pair of GPUs that stores cross between.
type met struct {
	node     int32
	from, to topo.NodeID
}

// staging is what goes through a node's host memory.
type staging struct {
	bytes units.Bytes   // on their way at a time
	ports []wire.LinkID // of the GPUs to host memory
}

// meet notes a pair of GPUs on the links between them; where several pairs meet
// at a port of a switch, packets of some wait for those of others.
func (w *wiring) meet(node int32, from, to topo.NodeID) {
	key := met{node, from, to}
	if w.met[key] {
		return
	}
	w.met[key] = true
	left := func(pairs int) float64 { return 1 - w.class.Crowd*(1-1/float64(pairs)) }
	s := w.systems[node]
	for _, l := range s.Path(from, to).Links {
		if s.Nodes[s.Links[l].From].Kind != topo.NVS && s.Nodes[s.Links[l].To].Kind != topo.NVS {
			continue
		}
		id := w.link(node, l)
		w.crowd[id]++
		k := w.crowd[id]
		w.net.Limit(id, wire.Rate(float64(w.net.Capacity(id))/left(max(1, k-1))*left(k)))
	}
}

// inHostMemory notes a connection through host memory, in which so many bytes
// may be on their way at a time. What fits the CPU's cache goes faster than what
// has to be written to memory and read again.
func (w *wiring) inHostMemory(c *plan.Conn, n units.Bytes) {
	s := &w.staged[w.comm.NodeOf[c.Src]]
	s.bytes += n
	for _, id := range s.ports {
		w.net.Limit(id, w.hostRate(s))
	}
}

func (w *wiring) hostRate(s *staging) wire.Rate {
	if s.bytes > units.Bytes(w.class.HostCache) {
		return wire.RateOf(w.class.HostMemory)
	}
	return wire.RateOf(w.class.HostRate)
}

// isLocal tells connections whose stores stay in the rank's own memory: what
// a head pulls through the switch, and what the NIC reads from there.
func (w *wiring) isLocal(c *plan.Conn) bool {
	return c.Kind == connect.NVLSRoute ||
		(c.Route.Transport == connect.NET && c.Route.SrcGDR && c.Route.SrcProxy == c.Src)
}

// storeKey names the memory that a connection's stores go to: the peer's, with
// PXN that of the GPU beside the NIC, without GDR the host's (-1).
func (w *wiring) storeKey(c *plan.Conn) pair {
	key := pair{c.Src, c.Dst, c.Route.Transport}
	if c.Route.Transport == connect.NET {
		key.dst = c.Route.SrcProxy
		if !c.Route.SrcGDR {
			key.dst = -1
		}
	}
	return key
}

// stores adds the links that the kernel's stores cross.
func (w *wiring) stores(c *plan.Conn) error {
	if w.isLocal(c) {
		return nil
	}
	return w.memoryPath(c, w.storeKey(c))
}

// memoryPath adds the links to the memory that key names.
func (w *wiring) memoryPath(c *plan.Conn, key pair) error {
	sn, sg := w.gpu(c.Src)
	if key.dst < 0 {
		cpu := w.cpuOf(sn, sg)
		if cpu == topo.None {
			return &RouteError{Node: int(sn), From: w.name(sn, sg), To: "host memory"}
		}
		return w.walkHost(sn, sg, cpu)
	}
	dn, dg := w.gpu(key.dst)
	switch {
	case sn != dn:
		return &RouteError{Node: int(sn), From: w.name(sn, sg), To: fmt.Sprintf("node%d %s", dn, w.name(dn, dg))}
	case c.Route.Transport == connect.SHM:
		cpu := w.cpuOf(dn, dg)
		if cpu == topo.None {
			return &RouteError{Node: int(sn), From: w.name(sn, sg), To: "host memory"}
		}
		if err := w.walkHost(sn, sg, cpu); err != nil {
			return err
		}
		if err := w.walkHost(sn, cpu, dg); err != nil {
			return err
		}
		w.add(w.hostPort(sn, sg, "stores"), 1)
		w.add(w.hostPort(sn, dg, "loads"), 1)
		return nil
	}
	if err := w.walk(sn, sg, dg); err != nil {
		return err
	}
	w.meet(sn, sg, dg)
	return nil
}
