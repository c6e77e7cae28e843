package simfiles

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/packet/internal/rng"
	"github.com/simccl/simccl/packet/uec"
	"github.com/simccl/simccl/units"
)

// Lossless returns the scenario as a network and flows of package packet, with the paths that htsim_roce
// chooses by hash. Nodes: hosts, leaves, spines, cores; cables: hosts' first, then leaf to spine, spine to
// core.
func (x *HtsimScenario) Lossless(seed uint64, frame, ack int) (packet.Network, []packet.Flow) {
	r := newRouter(&x.Network, seed, x.Flows, [2]int{frame, ack})
	p := x.Graph()
	flows := make([]packet.Flow, len(x.Flows))
	for i, f := range x.Flows {
		flows[i] = packet.Flow{Src: f.Src, Dst: f.Dst, Bytes: f.Bytes, Priority: 3, Start: f.Start,
			Deps: f.Deps}
	}
	for i, paths := range r.all() {
		flows[i].Path, flows[i].Back = paths[0], paths[1]
	}
	return p, flows
}

// Graph returns the network alone, with the nodes of Lossless.
func (x *HtsimScenario) Graph() packet.Network {
	n := &x.Network
	r := &router{n: n, hosts: n.Hosts()}
	r.leaves = r.hosts + n.Leaves
	r.cores = r.leaves + n.AllSpines()
	r.join()
	p := packet.Network{Nodes: r.cores + n.Cores, Cables: r.cables}
	p.Switch = make([]bool, p.Nodes)
	for v := r.hosts; v < p.Nodes; v++ {
		p.Switch[v] = true
	}
	return p
}

// router finds the paths of flows. A switch shuffles its table of uplinks when it first needs it, so the
// shuffles depend on the order in which the first frames (data and acknowledgement) of flows reach switches:
// stationQueues simulates that order with these frames alone.
type router struct {
	n             *uec.Network
	flows         []uec.Flow
	sizes         [2]int // bytes of data frames and of acknowledgements
	hosts, leaves int    // first leaf; first spine
	cores         int    // first core
	cables        []packet.Cable
	rand          *rng.MT19937
	salt          []uint32     // by leaf, then spine
	entropy       []uint32     // by flow
	up            [][]uint16   // by leaf: shuffled spines
	over          [][][]uint16 // by spine and host of another pod: shuffled uplinks
	paths         [][2][]int32 // by flow: cables of data, of acknowledgements
	line          stationQueues
}

func newRouter(n *uec.Network, seed uint64, flows []uec.Flow, sizes [2]int) *router {
	r := &router{n: n, flows: flows, sizes: sizes, hosts: n.Hosts(), rand: rng.NewMT19937(seed),
		paths: make([][2][]int32, len(flows))}
	r.leaves = r.hosts + n.Leaves
	r.cores = r.leaves + n.AllSpines()
	r.join()
	r.up, r.over = make([][]uint16, n.Leaves), make([][][]uint16, n.AllSpines())
	for range n.Leaves + n.AllSpines() {
		r.salt = append(r.salt, r.rand.Next())
	}
	for range n.Cores { // cores have salts, too
		r.rand.Next()
	}
	for range flows {
		r.entropy = append(r.entropy, r.rand.Next()%256)
	}
	return r
}

// join creates the cables.
func (r *router) join() {
	n := r.n
	add := func(low, high int, rate int64, delay units.Time) {
		r.cables = append(r.cables, packet.Cable{A: int32(low), B: int32(high), Rate: rate, Delay: delay})
	}
	for i := range r.hosts {
		add(i, r.hosts+i/n.PerLeaf, n.HostRate, n.HostDelay+n.LeafLatency)
	}
	for l := range n.Leaves {
		for s := range n.Spines {
			add(r.hosts+l, r.leaves+n.Pod(l)*n.Spines+s, n.SpineRate, n.SpineDelay+n.SpineLatency)
		}
	}
	for s := range n.AllSpines() {
		for u := range n.Uplinks() {
			add(r.leaves+s, r.cores+u*n.Spines+s%n.Spines, n.CoreRate, n.CoreDelay+n.CoreLatency)
		}
	}
}

// all returns the paths of all flows. Flows that depend on others come last.
func (r *router) all() [][2][]int32 {
	order := make([]int32, 0, len(r.flows))
	for i := range r.flows {
		order = append(order, int32(i))
	}
	waits := func(i int32) int { return min(1, len(r.flows[i].Deps)) }
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Or(waits(a)-waits(b), cmp.Compare(r.flows[a].Start, r.flows[b].Start))
	})
	for _, i := range order {
		if waits(i) > 0 {
			r.line.Run(r.pass)
		}
		r.line.Enter(r.stage(begins, int(i)), probe{Flow: i}, r.flows[i].Start, 0)
	}
	r.line.Run(r.pass)
	return r.paths
}

// Stations of a frame: the start of its flow; the queue of a link (2·cable, +1 downwards); its cable; the
// crossing of a switch. A station passes on one frame at a time.
const (
	begins = iota
	queued
	travels
	crosses
	stages
)

func (r *router) stage(what, id int) int { return id*stages + what }

// pass moves a frame from a station to the next.
func (r *router) pass(stage int, f probe, now units.Time) {
	switch id := stage / stages; stage % stages {
	case begins:
		r.send(f, r.link(int(r.flows[f.Flow].Src), int(r.flows[f.Flow].Src)), now)
	case crosses:
		r.send(f, f.Link, now)
	case queued:
		r.line.Enter(r.stage(travels, id), f, now+r.cables[id/2].Delay, 0)
	case travels:
		node, dst := int(r.cables[id/2].B), int(r.flows[f.Flow].Dst)
		if id&1 != 0 {
			node = int(r.cables[id/2].A)
		}
		if f.Ack {
			dst = int(r.flows[f.Flow].Src)
		}
		switch {
		case node != dst:
			f.Link = r.link(r.leave(node, dst, f), node)
			r.line.Enter(r.stage(crosses, node), f, now, 0)
		case !f.Ack:
			r.send(probe{Flow: f.Flow, Ack: true}, r.link(node, node), now)
		}
	}
}

// send queues a frame on a link.
func (r *router) send(f probe, link int, now units.Time) {
	way := f.Way()
	r.paths[f.Flow][way] = append(r.paths[f.Flow][way], int32(link/2))
	r.line.Enter(r.stage(queued, link), f, now,
		units.Time(int64(r.sizes[way])*8*int64(units.Second)/r.cables[link/2].Rate))
}

// link returns the direction of a cable away from a node.
func (r *router) link(cable, node int) int {
	if int(r.cables[cable].A) == node {
		return 2 * cable
	}
	return 2*cable + 1
}

// leave returns the cable from a node towards a host.
func (r *router) leave(node, dst int, f probe) int {
	n := r.n
	leaf := dst / n.PerLeaf
	spine := n.Pod(leaf) * n.Spines // the first spine of the pod
	switch {
	case node < r.leaves:
		at := node - r.hosts
		if at == leaf {
			return dst
		}
		if r.up[at] == nil {
			r.up[at] = rng.Shuffled(0, n.Spines, r.rand)
		}
		return r.hosts + at*n.Spines + r.hashed(r.up[at], at, f)
	case node < r.cores:
		at := node - r.leaves
		if at/n.Spines == spine/n.Spines {
			return r.hosts + leaf*n.Spines + at%n.Spines
		}
		if r.over[at] == nil {
			r.over[at] = make([][]uint16, r.hosts)
		}
		if r.over[at][dst] == nil {
			r.over[at][dst] = rng.Shuffled(0, n.Uplinks(), r.rand)
		}
		return r.hosts + n.Leaves*n.Spines + at*n.Uplinks() + r.hashed(r.over[at][dst], n.Leaves+at, f)
	}
	core := node - r.cores
	return r.hosts + n.Leaves*n.Spines + (spine+core%n.Spines)*n.Uplinks() + core/n.Spines
}

// hashed returns the entry of a switch's table that the frame's hash selects.
func (r *router) hashed(table []uint16, at int, f probe) int {
	if len(table) == 1 {
		return int(table[0])
	}
	entropy := r.entropy[f.Flow]
	if f.Ack {
		entropy = 0
	}
	return int(table[rng.PathHash(r.flows[f.Flow].ID, entropy, r.salt[at])%uint32(len(table))])
}
