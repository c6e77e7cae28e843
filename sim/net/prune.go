package simnet

import "encoding/binary"

// Prune leaves out of the sharing all links that can never bind: of links that
// every route crosses equally often, only the slowest can. Rates stay the same
// bit for bit; Loads still tells of all links. It is called once, when all
// routes are declared and before the first flow.
func (f *Fluid) Prune() {
	keys := make([][]byte, len(f.links))
	for r := range f.routes {
		for _, u := range f.routes[r].uses {
			keys[u.Link] = binary.LittleEndian.AppendUint64(keys[u.Link], uint64(r)<<32|uint64(u.Count))
		}
	}
	lead := map[string]LinkID{}
	for l := range f.links {
		slowest, ok := lead[string(keys[l])]
		if !ok || f.links[l].cap < f.links[slowest].cap {
			lead[string(keys[l])] = LinkID(l)
		}
	}
	for l := range f.links {
		id := lead[string(keys[l])]
		f.links[l].lead = id
		if id != LinkID(l) {
			f.links[id].mates = append(f.links[id].mates, LinkID(l))
		}
	}
	for r := range f.routes {
		rt := &f.routes[r]
		rt.uses = rt.uses[:0:0]
		for _, u := range rt.all {
			if f.links[u.Link].lead == u.Link {
				rt.uses = append(rt.uses, u)
			}
		}
	}
}
