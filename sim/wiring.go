package sim

import (
	"fmt"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/gpu"
	simnet "github.com/simccl/simccl/sim/net"
	"github.com/simccl/simccl/topo"
)

// wiring turns connections into routes over the links of the model. Links are
// declared when the first route needs them.
type wiring struct {
	comm    *connect.Comm
	systems []*topo.System
	class   *gpu.Class
	net     *simnet.Fluid
	links   [][]int32       // node → topo link → link of the model + 1
	gpus    [][]topo.NodeID // node → local rank → GPU
	shape   map[*topo.System][]topo.NodeID
	pairs   map[pair]simnet.RouteID
	local   simnet.RouteID
	uses    []simnet.Use
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
	}
	return 1
}

func newWiring(c *connect.Comm, systems []*topo.System, class *gpu.Class, net *simnet.Fluid) (*wiring, error) {
	w := &wiring{comm: c, systems: systems, class: class, net: net,
		links: make([][]int32, len(systems)), gpus: make([][]topo.NodeID, len(systems)),
		shape: make(map[*topo.System][]topo.NodeID), pairs: make(map[pair]simnet.RouteID)}
	if len(systems) != c.NNodes {
		return nil, &ConfigError{"Systems", fmt.Sprintf("%d systems for %d nodes; give one a node", len(systems), c.NNodes)}
	}
	for i, s := range systems {
		g, ok := w.shape[s]
		if !ok {
			g = make([]topo.NodeID, len(s.Of(topo.GPU)))
			for k := range g {
				g[k] = topo.None
			}
			for _, id := range s.Of(topo.GPU) {
				if r := s.Nodes[id].GPU.Rank; r >= 0 && r < len(g) {
					g[r] = id
				}
			}
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

func (w *wiring) gpu(rank int32) (node int32, id topo.NodeID) {
	node = w.comm.NodeOf[rank]
	return node, w.gpus[node][w.comm.LocalRank[rank]]
}

// link returns the model's link for a directed topo link of a node.
func (w *wiring) link(node int32, l topo.LinkID) simnet.LinkID {
	s := w.systems[node]
	if w.links[node] == nil {
		w.links[node] = make([]int32, len(s.Links))
	}
	if id := w.links[node][l]; id > 0 {
		return simnet.LinkID(id - 1)
	}
	tl := &s.Links[l]
	id := w.net.AddLink(
		fmt.Sprintf("node%d %s→%s", node, w.name(node, tl.From), w.name(node, tl.To)),
		simnet.RateOf(float64(tl.BW)*linkEff(w.class, tl.Kind)))
	w.links[node][l] = int32(id) + 1
	return id
}

// name is a node's short name in link counters.
func (w *wiring) name(node int32, id topo.NodeID) string {
	s := w.systems[node]
	n := &s.Nodes[id]
	switch n.Kind {
	case topo.GPU:
		return fmt.Sprintf("GPU%d", n.GPU.Rank)
	case topo.NVS:
		return "NVSwitch"
	case topo.CPU:
		return fmt.Sprintf("CPU%d", n.CPU.NUMA)
	case topo.NET:
		return n.Net.Name
	case topo.NIC:
		return fmt.Sprintf("NIC%d", s.Index(id))
	}
	return fmt.Sprintf("PCI%d", s.Index(id))
}

// walk adds the links of the best path between two nodes of a host.
func (w *wiring) walk(node int32, from, to topo.NodeID) error {
	p := w.systems[node].Path(from, to)
	if p.Kind == topo.PathDIS {
		return &RouteError{Node: int(node), From: w.name(node, from), To: w.name(node, to)}
	}
	for _, l := range p.Links {
		w.add(w.link(node, l))
	}
	return nil
}

func (w *wiring) add(l simnet.LinkID) {
	for i := range w.uses {
		if w.uses[i].Link == l {
			return
		}
	}
	w.uses = append(w.uses, simnet.Use{Link: l, Count: 1})
}

// cpuOf returns the CPU nearest to a node.
func (w *wiring) cpuOf(node int32, id topo.NodeID) topo.NodeID {
	s := w.systems[node]
	best, kind := topo.None, topo.PathDIS
	for _, c := range s.Of(topo.CPU) {
		if p := s.Path(id, c); p.Kind < kind {
			best, kind = c, p.Kind
		}
	}
	return best
}

// between declares the route of the bytes that a kernel moves itself.
func (w *wiring) between(c *plan.Conn) (simnet.RouteID, error) {
	if c.Route.Transport == connect.NET {
		return w.local, nil // the kernel writes into its own FIFO; the proxy does the rest
	}
	key := pair{c.Src, c.Dst, c.Route.Transport}
	if r, ok := w.pairs[key]; ok {
		return r, nil
	}
	w.uses = nil
	sn, sg := w.gpu(c.Src)
	dn, dg := w.gpu(c.Dst)
	switch {
	case sn != dn:
		return 0, &RouteError{Node: int(sn), From: w.name(sn, sg), To: fmt.Sprintf("node%d %s", dn, w.name(dn, dg))}
	case c.Route.Transport == connect.SHM:
		cpu := w.cpuOf(dn, dg)
		if cpu == topo.None {
			return 0, &RouteError{Node: int(sn), From: w.name(sn, sg), To: "host memory"}
		}
		if err := w.walk(sn, sg, cpu); err != nil {
			return 0, err
		}
		if err := w.walk(sn, cpu, dg); err != nil {
			return 0, err
		}
	default:
		if err := w.walk(sn, sg, dg); err != nil {
			return 0, err
		}
	}
	r := w.net.AddRoute(w.uses)
	w.pairs[key] = r
	return r, nil
}
