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

// MarshalJSON omits a rail or plane of -1.
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

// readHCAs parses NCCL_IB_HCA with its optional rails and planes ("mlx5_0:1:2:0" is port 1, rail 2, plane 0;
// misc/utils.cc:203 of v2.30.7), and numbers the planes.
func (d *draft) readHCAs(list string) {
	if !d.rules.Topo.NetRails || strings.HasPrefix(list, "^") {
		return // an exclusion list has no rails
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

// rail returns the rail and the plane of a net, -1 for none. The file's attributes take precedence
// (graph/topo.cc:427 of v2.30.7), then NCCL_IB_HCA for nets of NCCL's InfiniBand plugin
// (transport/net_ib/init.cc:436), then Params.
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

// listed returns the rail and plane of a net in NCCL_IB_HCA. A virtual NIC has the rail that all its ports
// share, else none; its plane is the set of its ports' planes as a bit mask (transport/net_ib/init.cc:217).
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
