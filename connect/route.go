package connect

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
)

// NoNetError says that a node has no NIC by which to reach the others.
type NoNetError struct{ Node, Nodes int }

// Error says what to do.
func (e *NoNetError) Error() string {
	return fmt.Sprintf("node %d of %d has no NIC, and neither NVLink, P2P nor shared memory joins the "+
		"nodes: give the topology a <net>, or undo what took its nets away (NCCL_IB_DISABLE, NCCL_IB_HCA, "+
		"NCCL_NET)", e.Node, e.Nodes)
}

// CheckNets returns a *NoNetError where several nodes need a network and one of
// them has no net.
func (c *Layout) CheckNets() error {
	for n := range c.Domains {
		if s := c.Domains[n].System; c.NNodes > 1 && s != nil && len(s.Of(topo.NET)) == 0 {
			return &NoNetError{Node: n, Nodes: c.NNodes}
		}
	}
	return nil
}

// wiring is what routes need of one System, by GPU and NET index.
type wiring struct {
	sys       *topo.System
	gpuOf     []int32 // local rank → GPU index, -1 where it is not in this System
	rankOf    []int32 // GPU index → local rank
	transport []Transport
	nets      []netView // [gpu*nNets+net]
	local     [][]int   // GPU index → nets by channel
	owner     []int     // net → GPU index that owns it
}

// netView is how one GPU uses one net.
type netView struct {
	read, write bool  // GDR for sends, for receives
	flush       bool  // received data needs a flush
	proxy       int32 // GPU index whose proxy sends
	pxn         bool  // the path is PXN or better
}

func newWiring(sys *topo.System, a *topo.Access, p *Params) *wiring {
	gpus, nets := sys.Of(topo.GPU), sys.Of(topo.NET)
	w := &wiring{sys: sys, transport: make([]Transport, len(gpus)*len(gpus)),
		nets:  make([]netView, len(gpus)*len(nets)),
		local: make([][]int, len(gpus)), owner: make([]int, len(nets))}
	for i := range nets {
		w.owner[i] = sys.LocalGPU(i)
	}
	for g, gpu := range gpus {
		rank := sys.Nodes[gpu].GPU.Rank
		for len(w.gpuOf) <= rank {
			w.gpuOf = append(w.gpuOf, none)
		}
		w.gpuOf[rank] = int32(g)
		w.rankOf = append(w.rankOf, int32(rank))
		w.local[g] = sys.LocalNets(g)
		for i, peer := range gpus {
			t := NET
			switch sys.Transport(gpu, peer, a) {
			case "P2P":
				t = P2P
			case "SHM":
				t = SHM
			}
			w.transport[g*len(gpus)+i] = t
		}
		for i, net := range nets {
			w.nets[g*len(nets)+i] = viewNet(sys, gpu, net, a, p)
		}
	}
	return w
}

func viewNet(sys *topo.System, gpu, net topo.NodeID, a *topo.Access, p *Params) netView {
	v := netView{proxy: int32(sys.Index(sys.Proxy(gpu, net))), pxn: sys.Rank(sys.Path(gpu, net).Kind) <=
		sys.Rank(topo.PathPXN)}
	v.read, _ = sys.GDR(gpu, net, true, a)
	v.write, _ = sys.GDR(gpu, net, false, a)
	// Ampere and older must flush; so must C2C hosts whose data comes by PCI
	// while flags come by C2C (paths.cc:508).
	v.flush = sys.Nodes[gpu].GPU.SM < 90 || p.ForceFlush.Or(0) != 0
	if cpu := sys.LocalCPU(gpu); cpu != topo.None {
		v.flush = v.flush || sys.Path(gpu, net).Kind <= topo.PathPXB &&
			sys.Path(gpu, cpu).Kind == topo.PathC2C
	}
	v.flush = v.flush && v.write
	return v
}

type router struct {
	c      *Layout
	p      *Params
	byNode []*wiring
}

func newRouter(c *Layout, a *topo.Access, p *Params) *router {
	r := &router{c: c, p: p, byNode: make([]*wiring, c.NNodes)}
	made := map[*topo.System]*wiring{}
	for n := range c.Domains {
		sys := c.Domains[n].System
		if made[sys] == nil {
			made[sys] = newWiring(sys, a, p)
		}
		r.byNode[n] = made[sys]
	}
	return r
}

// at returns a rank's wiring, GPU index and base.
func (r *router) at(rank int32) (*wiring, int, int32) {
	n := r.c.NodeOf[rank]
	d := &r.c.Domains[n]
	w := r.byNode[n]
	return w, int(w.gpuOf[rank-d.First]), d.First
}

// route follows selectTransport (transport.cc:23) and the setup of the
// transports (transport/net.cc:291, 333).
func (r *router) route(src, dst int32, channel int, kind RouteKind) Route {
	if kind == CollNetRoute {
		return r.netRoute(max(src, dst), dst == Network)
	}
	sw, sg, base := r.at(src)
	dw, dg, _ := r.at(dst)
	out := Route{Transport: NET, SrcNet: none, DstNet: none, SrcProxy: src, DstProxy: dst}
	if r.c.NodeOf[src] == r.c.NodeOf[dst] {
		out.Transport = sw.transport[sg*len(sw.rankOf)+dg]
		if out.Transport != NET {
			return out
		}
	}
	if len(sw.owner) == 0 || len(dw.owner) == 0 {
		return out // a host without any net
	}
	var sn, dn, proxy int
	if kind == P2PRoute {
		sn, proxy = r.sendNet(sw, sg, dst, channel)
		dn = pick(dw.local[dg], channel)
	} else {
		sn = r.graphNet(src, channel, kind)
		dn = r.graphNet(dst, channel, kind)
		proxy = int(sw.view(sg, sn).proxy)
	}
	sv, dv := sw.view(sg, sn), dw.view(dg, dn)
	out.SrcNet, out.DstNet = int32(sw.ownNet(proxy, sn)), int32(dw.ownNet(dg, dn))
	out.SrcProxy = base + sw.rankOf[proxy]
	out.SrcGDR, out.DstGDR, out.Flush = sv.read, dv.write, dv.flush
	return out
}

func (w *wiring) view(g, net int) *netView { return &w.nets[g*len(w.owner)+net] }

// ownNet is the net that the proxy of GPU g opens for a net of the System: proxies know
// nets by their numbers alone (search.cc:1289), so that of one on another host of the domain
// is the own host's with that number.
func (w *wiring) ownNet(g, net int) int {
	if w.sys.NHosts == 1 {
		return net
	}
	const hostBits = 56 // above them is the host in an Ident (topo.h, NCCL_TOPO_ID)
	nets := w.sys.Of(topo.NET)
	host := w.sys.Nodes[w.sys.Of(topo.GPU)[g]].Ident >> hostBits
	far := &w.sys.Nodes[nets[net]]
	if far.Ident>>hostBits == host {
		return net
	}
	for i, id := range nets {
		if n := &w.sys.Nodes[id]; n.Ident>>hostBits == host && n.Net.Dev == far.Net.Dev {
			return i
		}
	}
	return net
}

func pick(list []int, channel int) int {
	if len(list) == 0 {
		return 0
	}
	return list[channel%len(list)]
}

// graphNet is the net that the searched graph gives a rank on a channel
// (search.cc:1277): that of entry where it comes first, else that of exit.
func (r *router) graphNet(rank int32, channel int, kind RouteKind) int {
	d := &r.c.Domains[r.c.NodeOf[rank]]
	id := search.RingID
	switch kind {
	case TreeRoute:
		id = search.TreeID
	case NVLSRoute, NVLSTreeRoute:
		id = search.NVLSID
	case CollNetRoute:
		id = r.c.CollNet.graph(r.c)
	case CollNetDirectRoute:
		id = search.CollNetDirectID
	case CollNetChainRoute:
		id = search.CollNetChainID
	}
	g, n := d.Graphs[id], r.c.Final[id].NChannels
	if g == nil || n == 0 {
		return 0
	}
	local := int(rank - d.First)
	ident := g.Inter[channel%n][1]
	switch {
	case id == search.NVLSID:
		ident = headNet(g, local, channel)
	case g.Intra[channel%n][0] == local:
		ident = g.Inter[channel%n][0]
	}
	nets := d.System.Of(topo.NET)
	return max(0, slices.IndexFunc(nets, func(id topo.NodeID) bool {
		return d.System.Nodes[id].Ident == ident
	}))
}

// headNet cycles through the nets of the search channels that a rank heads
// (search.cc:1246).
func headNet(g *search.Graph, local, channel int) uint64 {
	var nets []uint64
	for c := range g.NChannels {
		if g.Intra[c][0] == local {
			nets = append(nets, g.Inter[c][0])
		}
	}
	if len(nets) == 0 {
		return 0
	}
	return nets[channel%len(nets)]
}

// sendNet is the net and the proxy (GPU index) of a send to a peer on another
// node: the local net, or with PXN that of the GPU with the peer's device
// number, so that traffic stays on the peer's rail (search.cc:1294-1341).
func (r *router) sendNet(w *wiring, g int, peer int32, channel int) (net, proxy int) {
	net, proxy = pick(w.local[g], channel), g
	level := r.p.P2PPXNLevel.Or(2)
	if w.sys.Access.PXNDisable { // which is RCCL's default (graph/paths.cc:694 of RCCL 2.30.4)
		level = 0
	}
	sameRail := r.p.CrossNIC.Or(2) == 0
	if !sameRail && level == 0 {
		return net, proxy
	}
	pw, pg, _ := r.at(peer)
	twin := w.device(g, pw.sys.Nodes[pw.sys.Of(topo.GPU)[pg]].GPU.Dev)
	if twin == none {
		return net, proxy
	}
	rail := pick(w.local[twin], channel)
	if sameRail {
		net = rail
	}
	switch level {
	case 1:
		if v := w.view(g, rail); v.pxn {
			return rail, int(v.proxy)
		}
	case 2:
		if o := w.owner[rail]; o >= 0 {
			gpus, nets := w.sys.Of(topo.GPU), w.sys.Of(topo.NET)
			limit := topo.PathPXB
			if rule := &r.c.Rules.Topo; rule.PeersByC2C && (r.p.PXNC2C.Or(0) != 0 || !r.p.PXNC2C.Set &&
				rule.PXNC2C) {
				limit = topo.PathP2C
			}
			barred := r.c.Rules.Topo.PXNNeedsGDR && !w.view(o, rail).write // search.cc:1394 of v2.30.3-1
			if w.sys.Path(gpus[o], gpus[g]).Kind <= topo.PathNVL && w.sys.Path(gpus[o], nets[rail]).Kind <=
				limit && !barred {
				return rail, o
			}
		}
	}
	return net, proxy
}

// device finds the GPU with a device number on the host of GPU g (topo.h:247).
func (w *wiring) device(g, dev int) int {
	gpus := w.sys.Of(topo.GPU)
	host := w.sys.Nodes[gpus[g]].GPU.Host
	for i, id := range gpus {
		if gpu := w.sys.Nodes[id].GPU; gpu.Dev == dev && gpu.Host == host {
			return i
		}
	}
	return none
}
