package fluid

import (
	"encoding/binary"
	"slices"

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
	lead := map[string]wire.LinkID{}
	for l := range f.links {
		slowest, ok := lead[string(keys[l])]
		if !ok || f.links[l].cap < f.links[slowest].cap {
			lead[string(keys[l])] = wire.LinkID(l)
		}
	}
	for l := range f.links {
		id := lead[string(keys[l])]
		f.links[l].lead = id
		if id != wire.LinkID(l) {
			f.links[id].mates = append(f.links[id].mates, wire.LinkID(l))
		}
	}
	for r := range f.routes {
		rt := &f.routes[r]
		rt.uses = slices.DeleteFunc(rt.uses, func(u wire.Use) bool { return f.links[u.Link].lead != u.Link })
	}
}
