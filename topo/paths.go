package topo

import (
	"fmt"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/units"
)

// selfBW is NCCL's bandwidth of a node to itself, GB/s (topo.h:15 LOC_BW).
const selfBW units.GBps = 5000

// PathError reports why NCCL cannot lay the paths of a System, and where.
type PathError struct {
	Node    string // NCCL's name of it
	At      NodeID
	Problem string
	Hint    string
}

// Error names the node, the problem and the remedy.
func (e *PathError) Error() string { return e.Node + ": " + e.Problem + "; " + e.Hint }

// endKinds are the kinds of nodes between which paths are kept.
var endKinds = [...]NodeKind{CPU, DEV, GPU, NET, NVS}

// layPaths computes NCCL's best route from every CPU, GPU, NET and NVS to every other, before access rules
// apply (paths.cc:36, paths.cc:641): one breadth-first walk per base node.
func (s *System) layPaths(p *Params) error {
	s.fastestNet = 0
	for _, n := range s.of[NET] {
		s.fastestNet = max(s.fastestNet, s.Nodes[n].Net.BW)
	}
	w := newWalker(s)
	var ends []NodeID
	for _, k := range endKinds {
		ends = append(ends, s.of[k]...)
	}
	s.paths = [NumNodeKinds][][]Path{}
	for _, k := range endKinds {
		s.paths[k] = make([][]Path, len(s.of[k]))
		for i, base := range s.of[k] {
			if err := p.poll(); err != nil {
				return err
			}
			first := s.sameIdent(base)
			if first != i {
				// NCCL finds a base's table by its id, so a node that shares its
				// id with an earlier one added to that one's table, and its own
				// stays empty (paths.cc:23).
				s.paths[k][i] = unreached(len(s.Nodes))
				continue
			}
			w.clear()
			if w.byKind {
				w.keepLists() // a path may still change when others have been built on it
			}
			if err := w.walk(base); err != nil {
				return err
			}
			for _, twin := range s.of[k][i+1:] {
				if s.Nodes[twin].Ident != s.Nodes[base].Ident {
					continue
				}
				w.keepLists()
				if err := w.walk(twin); err != nil {
					return err
				}
			}
			s.paths[k][i] = w.take(ends)
		}
	}
	return nil
}

// sameIdent returns the index of the first node of a kind with a node's id.
func (s *System) sameIdent(base NodeID) int {
	for i, n := range s.of[s.Nodes[base].Kind] {
		if s.Nodes[n].Ident == s.Nodes[base].Ident {
			return i
		}
	}
	return int(s.index[base])
}

func unreached(n int) []Path {
	p := make([]Path, n)
	for i := range p {
		p[i].Kind = PathDIS
	}
	return p
}

// walker finds paths to one base at a time; its slices are by node and reused.
// A path is kept as its first link, the rest being the path of the node there:
// once a level of the walk is done, its paths stay. A second walk for the same
// table changes paths that others were built on, so it keeps each path whole.
type walker struct {
	s         *System
	back      []LinkID // by link: the first of its kind that leads in the other direction
	at        []step
	lists     [][]LinkID // by node: the whole path, nil in a first walk
	byKind    bool       // rules.Topo.PathsByKind
	ends      bool       // rules.Topo.EndGPUs
	now, next []NodeID
}

// step is a node's path to the base so far.
type step struct {
	bw   units.GBps // 0 where there is none
	hops int32
	via  LinkID // first link, -1 at the base
	kind PathKind
	in   bool // on the next level's list
}

func newWalker(s *System) *walker {
	w := &walker{s: s, byKind: s.Rules.Topo.PathsByKind, ends: s.Rules.Topo.EndGPUs,
		at:   make([]step, len(s.Nodes)),
		back: make([]LinkID, len(s.Links))}
	type pair struct {
		from, to NodeID
		kind     LinkKind
	}
	first := make(map[pair]LinkID, len(s.Links))
	for n := range s.Nodes {
		for _, l := range s.Nodes[n].Links {
			k := pair{s.Links[l].From, s.Links[l].To, s.Links[l].Kind}
			if _, ok := first[k]; !ok {
				first[k] = l
			}
		}
	}
	for i := range s.Links {
		w.back[i] = -1
		if l, ok := first[pair{s.Links[i].To, s.Links[i].From, s.Links[i].Kind}]; ok {
			w.back[i] = l
		}
	}
	return w
}

func (w *walker) clear() {
	w.lists = nil
	for i := range w.at {
		w.at[i] = step{via: -1, kind: PathDIS}
	}
}

// keepLists writes out the links of every path that the walk so far has as a chain of its last links, since
// a walk from another node that follows overwrites the chains.
func (w *walker) keepLists() {
	if w.lists != nil {
		return
	}
	w.lists = make([][]LinkID, len(w.at))
	for n := range w.at {
		w.lists[n] = w.follow(NodeID(n), nil)
	}
}

// follow appends a node's path, link by link, to a list.
func (w *walker) follow(n NodeID, list []LinkID) []LinkID {
	for left := w.at[n].hops; left > 0; left-- {
		l := w.at[n].via
		list = append(list, l)
		n = w.s.Links[l].To
	}
	return list
}

// walk runs the breadth-first search from base. A node is visited again if a route of no more hops than the
// current level has more bandwidth. Among equal routes the order of links decides, so it must be NCCL's.
func (w *walker) walk(base NodeID) error {
	w.at[base] = step{bw: selfBW, via: -1, kind: PathLOC}
	w.now = append(w.now[:0], base)
	for len(w.now) > 0 {
		w.next = w.next[:0]
		for _, n := range w.now {
			if err := w.spread(n, base); err != nil {
				return err
			}
		}
		for _, n := range w.next {
			w.at[n].in = false
		}
		w.now, w.next = w.next, w.now
	}
	return nil
}

// spread extends the route of node n by each of its links.
func (w *walker) spread(n, base NodeID) error {
	s, here := w.s, w.at[n]
	through := n != base && s.Nodes[n].Kind == s.linked() && n != s.Device(base)
	for _, l := range s.Nodes[n].Links {
		link := &s.Links[l]
		if through && !w.mayRelay(here, link, base) {
			continue
		}
		bw := min(here.bw, link.BW)
		to := &w.at[link.To]
		kind := max(here.kind, s.stepKind(here, n, link, base))
		if !w.improves(here, to, bw, kind) {
			continue
		}
		via := w.back[l]
		if via < 0 && w.lists != nil && len(w.lists[link.To]) > 0 {
			via = w.lists[link.To][0] // NCCL leaves the link of the walk before (paths.cc:75)
		}
		if via < 0 {
			return &PathError{Node: s.Name(n), At: n,
				Problem: fmt.Sprintf("a %v link to %s, which has none back: NCCL fails on it%s",
					link.Kind, s.Name(link.To), s.Rules.Aside(rules.AtReverse)),
				Hint: "declare the link on both sides or on neither"}
		}
		*to = step{bw: bw, hops: here.hops + 1, via: via, kind: kind, in: to.in}
		if w.lists != nil {
			w.lists[link.To] = append([]LinkID{via}, w.lists[n][:here.hops]...)
		}
		if !to.in && !(w.ends && s.Nodes[link.To].Kind == GPU) {
			to.in = true
			w.next = append(w.next, link.To)
		}
	}
	return nil
}

// improves reports whether one more link makes a better route to a node than it has.
func (w *walker) improves(here step, to *step, bw units.GBps, kind PathKind) bool {
	if !w.byKind {
		return (to.bw == 0 || to.hops > here.hops) && to.bw < bw
	}
	switch { // paths.cc:98 of v2.30.7
	case kind != to.kind:
		return kind < to.kind
	case bw != to.bw:
		return bw > to.bw
	}
	return to.hops > here.hops+1
}

// mayRelay reports whether a route may continue through a GPU: only by one NVLink hop to another GPU (NVB),
// or from the device node to its own GPU.
func (w *walker) mayRelay(here step, link *Link, base NodeID) bool {
	to := w.s.Nodes[link.To].Kind
	if to == GPU && link.Kind == LinkLOC {
		return true
	}
	return !w.s.noRelay && link.Kind == LinkNVL && to == w.s.linked() && here.hops <= w.s.nearHops(base)
}

// nearHops returns the number of hops from a base to the first neighbour by NVLink: 2 if the base is a GPU
// with a separate device node, else 1.
func (s *System) nearHops(base NodeID) int32 {
	if s.Rules.Topo.DevNodes && s.Nodes[base].Kind == GPU {
		return 2
	}
	return 1
}

// stepKind returns the kind of a route's next link: the link's own, with PCI switches (PXB), CPUs (PHB) and
// relaying GPUs (NVB) distinguished (paths.cc:92-100).
func (s *System) stepKind(from step, node NodeID, link *Link, base NodeID) PathKind {
	kind := PathKind(link.Kind)
	if link.Kind == LinkNET {
		kind = PathLOC // the cable behind the port does not count
	}
	here, there := s.Nodes[node].Kind, s.Nodes[link.To].Kind
	if here == PCI && there == PCI {
		kind = PathPXB
	}
	if link.Kind == LinkPCI && (here == CPU || there == CPU) {
		kind = PathPHB
	}
	if here == s.linked() && from.kind == PathNVL && kind == PathNVL && !s.Rules.Topo.EndGPUs &&
		s.relays(from.hops, base) {
		kind = PathNVB
	}
	return kind
}

// relays reports whether one more NVLink turns a route that reached a GPU in a number of hops into a relay
// through it (NVB).
func (s *System) relays(hops int32, base NodeID) bool {
	if s.Rules.Topo.DevNodes { // paths.cc:94 of v2.30.7
		return hops == s.nearHops(base)
	}
	return hops > 0
}

// take copies the paths of the given nodes; their links share one array.
func (w *walker) take(ends []NodeID) []Path {
	out := unreached(len(w.at))
	total := 0
	for _, n := range ends {
		total += int(w.at[n].hops)
	}
	all := make([]LinkID, 0, total)
	for _, n := range ends {
		start := len(all)
		if w.lists != nil {
			all = append(all, w.lists[n][:w.at[n].hops]...)
		} else {
			all = w.follow(n, all)
		}
		out[n] = Path{Kind: w.at[n].kind, BW: w.at[n].bw, Links: all[start:len(all):len(all)]}
	}
	return out
}

// localCPU returns the CPU that a GPU reaches in fewest hops (paths.cc:158), of the
// nearest ones where NCCL looks at those alone (rules.Topo.NearestCPU; paths.cc:189 of
// v2.30.7).
func (s *System) localCPU(gpu NodeID) (NodeID, error) {
	cpus := s.of[CPU]
	if s.Rules.Topo.NearestCPU {
		near, _ := s.Nearest(gpu, CPU)
		cpus = make([]NodeID, len(near))
		for i, c := range near {
			cpus[i] = s.of[CPU][c]
		}
	}
	best, hops := None, 0
	for _, c := range cpus {
		if h := len(s.Path(gpu, c).Links); h > 0 && (hops == 0 || h < hops) {
			best, hops = c, h
		}
	}
	if best == None {
		return None, &PathError{Node: s.Name(gpu), At: gpu,
			Problem: "reaches no CPU: NCCL fails on it" + s.Rules.Aside(rules.AtGPUCPU),
			Hint:    "put its <pci> under a <cpu>"}
	}
	return best, nil
}

// joinKinds returns the kind of a concatenation of two routes: the worse of the two, but P2C for host bridge
// (PHB) and C2C (paths.cc:179).
func (s *System) joinKinds(a, b PathKind) PathKind {
	if s.Rules.Topo.P2CPaths && !s.Rules.Topo.P2CFromPHB && max(a, b) == PathPHB && min(a, b) == PathC2C {
		return PathP2C
	}
	return max(a, b)
}

// detour replaces the route from src to dst by src→via→dst. A route through
// a GPU is PXN.
func (s *System) detour(src, via, dst NodeID) {
	a, b := s.Path(src, via), s.Path(via, dst)
	links := make([]LinkID, 0, len(a.Links)+len(b.Links))
	kind := s.joinKinds(a.Kind, b.Kind)
	if s.Nodes[via].Kind == GPU {
		kind = PathPXN
	}
	s.setPath(src, dst, Path{Kind: kind, BW: min(a.BW, b.BW), Links: append(append(links, a.Links...),
		b.Links...)})
}

func (s *System) setPath(from, to NodeID, p Path) {
	s.paths[s.Nodes[to].Kind][s.index[to]][from] = p
}

func (s *System) setKind(from, to NodeID, k PathKind) {
	s.paths[s.Nodes[to].Kind][s.index[to]][from].Kind = k
}
