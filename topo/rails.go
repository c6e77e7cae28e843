package topo

import (
	"strings"

	"github.com/simccl/simccl/internal/iflist"
)

// virtualPlane marks the planes of virtual NICs (NCCL_IB_PLANE_VIRT_BIT,
// transport/net_ib/init.cc:96 of v2.30.7).
const virtualPlane = 1 << 14

// readHCAs keeps the names of ports in NCCL_IB_HCA, which may have rails and planes
// ("mlx5_0:1:2:0" is port 1, rail 2, plane 0; misc/utils.cc:203 of v2.30.7), and numbers
// the planes.
func (d *draft) readHCAs(list string) {
	if !d.rules.Topo.NetRails || strings.HasPrefix(list, "^") {
		return // what is not on a list has no entry
	}
	d.exactHCAs = strings.HasPrefix(list, "=")
	d.hcas = iflist.Parse(strings.TrimPrefix(list, "="))
	d.planes = map[int]int{-1: 0}
	for _, h := range d.hcas {
		if _, ok := d.planes[h.Plane]; !ok {
			d.planes[h.Plane] = len(d.planes)
		}
	}
}

// rail is the rail and the plane of a net, -1 where it has none: what the file says
// (graph/topo.cc:427 of v2.30.7), else what NCCL's plugin for InfiniBand takes from
// NCCL_IB_HCA (transport/net_ib/init.cc:436), else what Params say.
func (d *draft) rail(e *Element, n *NetInfo) (rail, plane int) {
	if !d.rules.Topo.NetRails {
		return -1, -1
	}
	rail, plane = d.netRail, d.netRail
	if len(d.hcas) > 0 && n.Plugin == PluginVerbs {
		rail, plane = d.listed(n)
	}
	return e.Int("rail", rail), e.Int("plane", plane)
}

// listed is what NCCL_IB_HCA says of a net. A virtual NIC has the rail of its ports where it
// is the same, and their planes together are one (transport/net_ib/init.cc:217).
func (d *draft) listed(n *NetInfo) (rail, plane int) {
	of := func(name string) (int, int) {
		if h := iflist.Find(name, n.Port, d.hcas, d.exactHCAs); h != nil {
			return h.Rail, h.Plane
		}
		return -1, -1
	}
	if len(n.Fused) == 0 {
		return of(n.Name)
	}
	plane = virtualPlane
	for i, name := range n.Fused {
		r, p := of(name)
		if i > 0 && r != rail {
			r = -1
		}
		rail = r
		plane |= 1 << d.planes[p]
	}
	return rail, plane
}
