package job

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/workload"
)

// Machine is the cluster, with its settings, that jobs run on.
type Machine struct {
	Cluster *fabric.Cluster
	// Topo are the Params that the cluster was built with, Params those of its communicators.
	Topo   topo.Params
	Params comm.Params
	// Sim is the simulator's configuration; its Comm, Systems and Place are set for each communicator.
	Sim sim.Config
	// World is the communicator of all ranks, if the caller has made it already.
	World *comm.Comm

	shapes map[string]*shape
	memo   map[memoKey]*planned // operations simulated alone, valid for the class quantities memoOf
	memoOf []float64
}

// shape is the part that equal communicators share: equal hosts, with the same local GPUs on each.
type shape struct {
	key  string
	comm *comm.Comm
	keep [][]int // by host of the communicator: local ranks
}

// communicator is a communicator of a job: the one of its shape, with its place in the cluster.
type communicator struct {
	*shape
	id     int32
	layout *connect.Layout // placed on the cluster's hosts
	hosts  []int           // by host of the communicator: the cluster's
	ranks  []int32         // by rank in NCCL's order: rank of the job, ascending
	rankOf []int32         // rank of the workload's communicator → NCCL's
	of     []int32         // NCCL's rank → rank of the workload's communicator
	place  sim.Place
}

// communicator makes the communicator of some ranks of the job. top is the communicator whose resources it
// shares; nil: none.
func (m *Machine) communicator(id int32, c *workload.Comm, n int, top *communicator) (*communicator, error) {
	ranks := c.Ranks
	if ranks == nil {
		ranks = make([]int32, n)
		for i := range ranks {
			ranks[i] = int32(i)
		}
	}
	out := &communicator{id: id, ranks: slices.Clone(ranks), rankOf: make([]int32, len(ranks)),
		of: make([]int32, len(ranks))}
	slices.Sort(out.ranks)
	for i, r := range ranks {
		at, _ := slices.BinarySearch(out.ranks, r)
		out.rankOf[i], out.of[at] = int32(at), int32(i)
	}
	hosts, keep, err := m.Cluster.Places(out.ranks)
	if err != nil {
		return nil, fmt.Errorf("communicator %s: %w", c.Name, err)
	}
	out.hosts = hosts
	key := ""
	for i, h := range hosts {
		key += fmt.Sprintf("%d:%v;", m.Cluster.ClassOf(h), keep[i])
	}
	bound := connect.Top{}
	if top != nil {
		bound = connect.TopOf(top.comm.Layout)
		key += fmt.Sprint(bound)
	}
	split := c.Parent > 0 && m.Params.Rules.Library == rules.RCCL
	if split {
		key += "split"
	}
	s, ok := m.shapes[key]
	if !ok {
		if s, err = m.shape(key, out.ranks, keep, bound, split); err != nil {
			return nil, fmt.Errorf("communicator %s: %w", c.Name, err)
		}
		if m.shapes == nil {
			m.shapes = map[string]*shape{}
		}
		m.shapes[key] = s
	}
	out.shape = s
	own := *s.comm.Layout
	own.HostOf = make([]int32, own.NRanks)
	for r := range own.HostOf {
		own.HostOf[r] = int32(hosts[s.comm.HostOf[r]])
	}
	out.layout = &own
	out.place = m.place(out)
	return out, nil
}

// shape returns the communicator of a shape. One that RCCL split has neither kernels over all GPUs' memory
// (DDA) nor communicators below it for AllGather (init.cc:2576, 2583 of RCCL 2.30.4).
func (m *Machine) shape(key string, ranks []int32, keep [][]int, top connect.Top, split bool) (*shape,
	error) {
	s := &shape{key: key, keep: keep}
	if m.World != nil && len(ranks) == m.Cluster.NRanks() && !split {
		s.comm = m.World
		return s, nil
	}
	sub, err := m.Cluster.Subset(ranks, m.Topo)
	if err != nil {
		return nil, err
	}
	p := m.Params
	if len(ranks) != m.Cluster.NRanks() {
		p.Given = nil // graphs of NCCL_GRAPH_FILE are for all GPUs
	}
	p.Connect.Top = top
	if split {
		p.Tuning.AMD.NoDDA, p.Tuning.AMD.NoHierarchy = true, true
	}
	s.comm, err = comm.New(sub.Cluster, p)
	return s, err
}

// place returns the cluster's names for the communicator's nodes and devices.
func (m *Machine) place(c *communicator) sim.Place {
	l := c.comm.Layout
	p := sim.Place{Nodes: make([]int32, l.NNodes)}
	names := make([]map[topo.NodeID]string, l.NNodes)
	for n := range l.NNodes {
		h := l.HostOf[l.NodeRanks[n][0]] // host of the communicator's cluster, or of the whole one
		if c.comm != m.World {
			h = int32(c.hosts[h])
		}
		p.Nodes[n] = h
		if c.comm != m.World {
			names[n] = named(l.Domains[n].System, m.Cluster.Host(int(h)), c.keepOf(m, int(h)))
		}
	}
	if c.comm == m.World {
		return sim.Place{}
	}
	p.Short = func(node int32, id topo.NodeID) string { return names[node][id] }
	return p
}

// keepOf lists the communicator's local ranks on a host, given the host's number in the cluster.
func (c *communicator) keepOf(_ *Machine, host int) []int { return c.keep[slices.Index(c.hosts, host)] }

// device identifies a device of a System on its host.
type device struct {
	kind  topo.NodeKind
	ident uint64
}

// hostBits is the position of the host's number in the node id of a multi-host NVLink domain.
const hostBits = 56

// named maps each node of a part of a host to the name that it has on the whole host.
func named(part *topo.System, whole *topo.Host, keep []int) map[topo.NodeID]string {
	names := map[device]string{}
	hosts := map[int]int{} // host of a domain: number in the part → in the whole
	gpus := map[int]int{}  // local rank of the whole → host of the domain
	several := false
	for _, s := range whole.Systems {
		for _, g := range s.Of(topo.GPU) {
			info := s.Nodes[g].GPU
			gpus[info.Rank] = info.Host
			several = several || info.Host > 0
		}
	}
	for _, s := range whole.Systems {
		for i := range s.Nodes {
			n := &s.Nodes[i]
			name := s.Short(topo.NodeID(i))
			if several && n.Kind != topo.GPU && n.Kind != topo.NVS {
				name = fmt.Sprintf("host%d.%s", n.Ident>>hostBits, name)
			}
			names[device{n.Kind, n.Ident}] = name
		}
	}
	for _, g := range part.Of(topo.GPU) {
		if info := part.Nodes[g].GPU; info.Rank < len(keep) {
			hosts[info.Host] = gpus[keep[info.Rank]]
		}
	}
	out := map[topo.NodeID]string{}
	for i := range part.Nodes {
		n := &part.Nodes[i]
		id := n.Ident
		if several {
			id = id&(1<<hostBits-1) | uint64(hosts[int(id>>hostBits)])<<hostBits
		}
		name, ok := names[device{n.Kind, id}]
		switch {
		case n.Kind == topo.GPU && n.GPU.Rank < len(keep):
			name = fmt.Sprintf("GPU%d", keep[n.GPU.Rank])
		case !ok:
			name = part.Short(topo.NodeID(i))
		}
		out[topo.NodeID(i)] = name
	}
	return out
}

// Part is the communicator of some ranks of a Machine's cluster, for callers outside this package.
type Part struct {
	Comm *comm.Comm
	of   *communicator
}

// Part makes the communicator of some ranks, which must ascend.
func (m *Machine) Part(ranks []int32) (*Part, error) {
	c, err := m.communicator(0, &workload.Comm{Name: "of rank 0", Ranks: ranks}, m.Cluster.NRanks(), nil)
	if err != nil {
		return nil, err
	}
	own := *c.comm
	own.Layout = c.layout
	return &Part{Comm: &own, of: c}, nil
}

// Config returns the simulator's configuration for the part: cfg, which is for all ranks, with the part's
// layout, places and faults.
func (p *Part) Config(m *Machine, cfg sim.Config) sim.Config {
	all := *m
	all.Sim = cfg
	out := all.config(p.of)
	out.Launch, out.Progress = cfg.Launch, cfg.Progress
	return out
}

// config returns the simulator's configuration for a communicator.
func (m *Machine) config(c *communicator) sim.Config {
	cfg := m.Sim
	cfg.Comm, cfg.Systems, cfg.Place, cfg.Launch = c.layout, c.comm.Systems(), c.place, sim.Graph
	cfg.Progress = nil
	cfg.Faults = nil
	for _, f := range m.Sim.Faults {
		switch at, member := slices.BinarySearch(c.ranks, int32(f.Rank)); {
		case f.Rank >= 0 && member:
			f.Rank = at
			cfg.Faults = append(cfg.Faults, f)
		case f.Rank < 0 && slices.Contains(c.hosts, f.Host):
			cfg.Faults = append(cfg.Faults, f)
		}
	}
	return cfg
}
