package topo

import (
	"fmt"

	"github.com/simccl/simccl/units"
)

// selfBW is NCCL's bandwidth of a node to itself, GB/s (topo.h:15 LOC_BW).
const selfBW units.GBps = 5000

// layPaths computes the best route from every node to every CPU, GPU, NET and
// NVS as NCCL does before it considers who may use them (paths.cc:36,
// paths.cc:641): one breadth-first walk per base node.
func (s *System) layPaths() error {
	s.paths = [NumNodeKinds][][]Path{}
	for _, k := range []NodeKind{CPU, GPU, NET, NVS} {
		s.paths[k] = make([][]Path, len(s.of[k]))
		for i := range s.paths[k] {
			s.paths[k][i] = unreached(len(s.Nodes))
		}
		for _, base := range s.of[k] {
			if err := s.walkFrom(base); err != nil {
				return err
			}
		}
	}
	return nil
}

func unreached(n int) []Path {
	p := make([]Path, n)
	for i := range p {
		p[i].Kind = PathDIS
	}
	return p
}

// table returns the paths to a base node. NCCL finds it by its id, so a node
// that shares its id with an earlier one of its kind writes into the earlier
// one's table.
func (s *System) table(base NodeID) []Path {
	k := s.Nodes[base].Kind
	for i, n := range s.of[k] {
		if s.Nodes[n].Ident == s.Nodes[base].Ident {
			return s.paths[k][i]
		}
	}
	return s.paths[k][s.index[base]]
}

// walkFrom fills the table of one base node, level by level. A node is entered
// again as long as that brings more bandwidth at no more hops than its level;
// the order of links decides between equals, which is why it must be NCCL's.
func (s *System) walkFrom(base NodeID) error {
	to := s.table(base)
	to[base] = Path{Kind: PathLOC, BW: selfBW, Links: to[base].Links[:0]}
	level, next := []NodeID{base}, []NodeID(nil)
	for len(level) > 0 {
		next = next[:0]
		for _, node := range level {
			for _, l := range s.Nodes[node].Links {
				link := &s.Links[l]
				if !s.mayPass(to, node, base, link) {
					continue
				}
				bw := min(to[node].BW, link.BW)
				rem := &to[link.To]
				if (rem.BW != 0 && len(rem.Links) <= len(to[node].Links)) || rem.BW >= bw {
					continue
				}
				back, ok := s.reverse(link)
				if !ok {
					return fmt.Errorf("%s has a %v link to %s, which has none back: NCCL fails on it (paths.cc:81); declare the link on both sides",
						s.Name(node), link.Kind, s.Name(link.To))
				}
				kind := s.stepKind(to[node], node, link, len(to[node].Links)+1)
				links := make([]LinkID, 0, len(to[node].Links)+1)
				*rem = Path{Kind: max(to[node].Kind, kind), BW: bw, Links: append(append(links, back), to[node].Links...)}
				next = appendOnce(next, link.To)
			}
		}
		level, next = next, level
	}
	return nil
}

// mayPass refuses routes through a GPU, except one NVLink hop from GPU to GPU
// (NVB).
func (s *System) mayPass(to []Path, node, base NodeID, link *Link) bool {
	if node == base || s.Nodes[node].Kind != GPU {
		return true
	}
	return !s.noRelay && link.Kind == LinkNVL && s.Nodes[link.To].Kind == GPU && len(to[node].Links) <= 1
}

// stepKind is what one more link makes of a route: its own kind, with PCI
// bridges and CPUs told apart (paths.cc:92-100).
func (s *System) stepKind(sofar Path, node NodeID, link *Link, hops int) PathKind {
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
	if here == GPU && sofar.Kind == PathNVL && kind == PathNVL && hops > 1 {
		kind = PathNVB
	}
	return kind
}

// reverse finds the first link back of the same kind.
func (s *System) reverse(l *Link) (LinkID, bool) {
	for _, r := range s.Nodes[l.To].Links {
		if s.Links[r].To == l.From && s.Links[r].Kind == l.Kind {
			return r, true
		}
	}
	return 0, false
}

func appendOnce(list []NodeID, n NodeID) []NodeID {
	for _, m := range list {
		if m == n {
			return list
		}
	}
	return append(list, n)
}

// localCPU is the CPU that a GPU reaches in fewest hops (paths.cc:158).
func (s *System) localCPU(gpu NodeID) (NodeID, error) {
	best, hops := None, 0
	for _, c := range s.of[CPU] {
		if h := len(s.Path(gpu, c).Links); h > 0 && (hops == 0 || h < hops) {
			best, hops = c, h
		}
	}
	if best == None {
		return None, fmt.Errorf("%s reaches no CPU: NCCL fails on it (paths.cc:172); put its <pci> under a <cpu>", s.Name(gpu))
	}
	return best, nil
}

// joinKinds is the kind of a route made of two (paths.cc:179): the worse, but
// host bridge and C2C together are P2C.
func joinKinds(a, b PathKind) PathKind {
	if max(a, b) == PathPHB && min(a, b) == PathC2C {
		return PathP2C
	}
	return max(a, b)
}

// detour replaces the route from src to dst by src→via→dst. A route by way of
// a GPU is PXN.
func (s *System) detour(src, via, dst NodeID) {
	a, b := s.Path(src, via), s.Path(via, dst)
	links := make([]LinkID, 0, len(a.Links)+len(b.Links))
	kind := joinKinds(a.Kind, b.Kind)
	if s.Nodes[via].Kind == GPU {
		kind = PathPXN
	}
	s.setPath(src, dst, Path{Kind: kind, BW: min(a.BW, b.BW), Links: append(append(links, a.Links...), b.Links...)})
}

func (s *System) setPath(from, to NodeID, p Path) {
	s.paths[s.Nodes[to].Kind][s.index[to]][from] = p
}

func (s *System) setKind(from, to NodeID, k PathKind) {
	s.paths[s.Nodes[to].Kind][s.index[to]][from].Kind = k
}
