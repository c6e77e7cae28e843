package topo

import (
	"encoding/json"
	"strings"

	"github.com/simccl/simccl/internal/iflist"
)

// NetRail is the rail and the plane of a net of every host, -1 for none.
type NetRail struct {
	Net   int `json:"net"` // its place among the nets of its host, from 0
	Rail  int `json:"rail"`
	Plane int `json:"plane"`
}

// MarshalJSON leaves out what is -1.
func (n NetRail) MarshalJSON() ([]byte, error) {
	m := struct {
		Net   int  `json:"net"`
		Rail  *int `json:"rail,omitempty"`
		Plane *int `json:"plane,omitempty"`
	}{Net: n.Net}
	if n.Rail >= 0 {
		m.Rail = &n.Rail
	}
	if n.Plane >= 0 {
		m.Plane = &n.Plane
	}
	return json.Marshal(m)
}

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
// NCCL_IB_HCA (transport/net_ib/init.cc:436), else what Params say of it.
func (d *draft) rail(e *Element, n *NetInfo) (rail, plane int) {
	if !d.rules.Topo.NetRails {
		return -1, -1
	}
	rail, plane = d.netRail, d.netRail
	place := 0
	for _, v := range d.of[NET] {
		if v.Net != n && v.Net.Host == n.Host {
			place++
		}
	}
	for _, r := range d.rails {
		if r.Net == place {
			rail, plane = r.Rail, r.Plane
		}
	}
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
