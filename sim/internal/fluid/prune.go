package fluid

import (
	"encoding/binary"
	"slices"

	"github.com/simccl/simccl/internal/maxmin"
	"github.com/simccl/simccl/sim/wire"
)

// Seal implements wire.Model. It leaves out of the sharing all links that can
// never bind: of links that every route crosses equally often, only the slowest
// can. Example: a GPU whose traffic all goes over one PCIe link to one NIC has
// the slower of the two left. Rates stay the same bit for bit; Loads still
// reports all links.
func (f *Fluid) Seal() {
	keys := make([][]byte, len(f.links))
	for r := range f.routes {
		for _, u := range f.routes[r].uses {
			keys[u.Link] = binary.LittleEndian.AppendUint64(keys[u.Link], uint64(r)<<32|uint64(u.Count))
		}
	}
	leads := maxmin.Leads(len(f.links), func(l int) string { return string(keys[l]) },
		func(b, a int) bool { return f.links[b].cap <= f.links[a].cap })
	for l, lead := range leads {
		if f.links[l].lead = wire.LinkID(lead); lead != l {
			f.links[lead].mates = append(f.links[lead].mates, wire.LinkID(l))
		}
	}
	for r := range f.routes {
		rt := &f.routes[r]
		rt.uses = slices.DeleteFunc(rt.uses, func(u wire.Use) bool { return f.links[u.Link].lead != u.Link })
	}
}
