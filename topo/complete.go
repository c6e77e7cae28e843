package topo

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/units"
)

// Name returns NCCL's name of a node, "GPU/0-1b000": kind, host, id in hex.
func (s *System) Name(n NodeID) string {
	id := s.Nodes[n].Ident
	return fmt.Sprintf("%v/%x-%x", s.Nodes[n].Kind, systemOf(id, s.Rules), id&localMask)
}

// WholeID returns NCCL's 64-bit id of a node: the index of its host in the top 8 bits, the local id below.
func (s *System) WholeID(n NodeID) uint64 {
	id := s.Nodes[n].Ident
	return systemOf(id, s.Rules)<<56 | id&localMask
}

// systemOf returns the host number in a node's id as NCCL reads it; an id of -1, added to a host number,
// borrows from it (rules.Topo.SignedIDs).
func systemOf(id uint64, r *rules.Ruleset) uint64 {
	if r.Topo.SignedIDs && id&localMask == localMask {
		return id>>56 - 1
	}
	return id >> 56
}

// Short returns a node's short name, as link counters and pictures have it: GPUs and
// their devices by local rank, CPUs by NUMA number, nets by name, the rest by place in its kind.
func (s *System) Short(id NodeID) string {
	n := &s.Nodes[id]
	switch n.Kind {
	case GPU:
		return fmt.Sprintf("GPU%d", n.GPU.Rank)
	case DEV:
		if g := s.GPUAt(id); g != None {
			return s.Short(g)
		}
		return fmt.Sprintf("DEV%d", s.Index(id))
	case NVS:
		return "NVSwitch"
	case GIN:
		return fmt.Sprintf("GIN%d", s.Index(id))
	case CPU:
		return fmt.Sprintf("CPU%d", n.CPU.NUMA)
	case NET:
		return n.Net.Name
	case NIC:
		return fmt.Sprintf("NIC%d", s.Index(id))
	}
	return fmt.Sprintf("PCI%d", s.Index(id))
}

// complete computes the paths of a raw System, splits it into the domains that P2P and shared memory connect,
// and recomputes the paths of each, as every rank of NCCL does (init.cc: compute, trim, compute, search
// init). Domains are in the order of their first GPUs. nRanks is the size of the communicator.
func complete(s *System, p *Params, nRanks int) ([]*System, error) {
	own := *p
	own.Access, own.NRanks = p.Access.For(s, nRanks), nRanks
	p = &own
	if err := s.compute(p); err != nil {
		return nil, err
	}
	domain := s.domains()
	var out []*System
	for d := range domain {
		if domain[d] != d {
			continue
		}
		t := s
		if multiple(domain) {
			t = s.without(func(n NodeID) bool { return s.Nodes[n].Kind == GPU && domain[s.index[n]] != d })
			if err := t.compute(p); err != nil {
				return nil, err
			}
		}
		// The whole host's System is computed twice by NCCL too; without a
		// split the second time gives what the first did.
		t.Inter = len(t.of[GPU]) != nRanks
		if fast := t.withoutSlowPorts(); s.Rules.Topo.FastPorts && fast != t {
			t = fast
			if err := t.compute(p); err != nil {
				return nil, err
			}
		}
		if err := t.classify(p); err != nil {
			return nil, err
		}
		if s.Rules.Topo.TrimNets && !t.Inter && len(t.of[NET]) > 0 && t.Kinds&GDRForAll == 0 {
			all := t
			t = all.without(func(n NodeID) bool { return all.Nodes[n].Kind == NET })
			t.Kinds = all.Kinds
			if err := t.compute(p); err != nil {
				return nil, err
			}
		}
		t.measure()
		out = append(out, t)
	}
	return out, nil
}

func (s *System) compute(p *Params) error {
	s.Access = p.Access
	s.noRelay = p.NVBDisable
	if err := s.layPaths(p); err != nil {
		return err
	}
	return s.applyAccess(p)
}

// multiple reports whether GPUs are in several domains (see domains).
func multiple(domain []int) bool {
	return slices.ContainsFunc(domain, func(d int) bool { return d != 0 })
}

// domains returns, for each GPU, the first GPU that it reaches without the network (paths.cc:762).
func (s *System) domains() []int {
	gpus := s.of[GPU]
	d := make([]int, len(gpus))
	for g := range gpus {
		d[g] = g
		for p := 0; p < g; p++ {
			if s.Path(gpus[g], gpus[p]).Kind < PathNET {
				d[g] = min(d[g], d[p])
			}
		}
	}
	return d
}

// without copies the System, leaving out nodes and their links; everything else
// keeps its order.
func (s *System) without(drop func(NodeID) bool) *System {
	t := &System{Rules: s.Rules, NHosts: s.NHosts, NetDevs: s.NetDevs, Inter: s.Inter}
	id := make([]NodeID, len(s.Nodes))
	for i := range s.Nodes {
		if drop(NodeID(i)) {
			id[i] = None
			continue
		}
		n := s.Nodes[i]
		n.Links = nil
		if n.Net != nil {
			net := *n.Net
			n.Net = &net
		}
		id[i] = NodeID(len(t.Nodes))
		t.Nodes = append(t.Nodes, n)
	}
	for i := range s.Nodes {
		if id[i] == None {
			continue
		}
		for _, l := range s.Nodes[i].Links {
			link := s.Links[l]
			if id[link.To] == None {
				continue
			}
			link.From, link.To = id[i], id[link.To]
			t.Nodes[id[i]].Links = append(t.Nodes[id[i]].Links, LinkID(len(t.Links)))
			t.Links = append(t.Links, link)
		}
	}
	t.number(s, id)
	return t
}

// number fills the lists of nodes by kind in the order of s, which may differ from the order of Nodes.
func (t *System) number(s *System, id []NodeID) {
	t.index = make([]int32, len(t.Nodes))
	for k := range s.of {
		for _, n := range s.of[k] {
			if id[n] != None {
				t.index[id[n]] = int32(len(t.of[k]))
				t.of[k] = append(t.of[k], id[n])
			}
		}
	}
}

// measure sets MaxBW and TotalBW, the bounds that a search starts from
// (search.cc:51).
func (s *System) measure() {
	s.MaxBW, s.TotalBW = 0, 0
	if !s.Inter && len(s.of[GPU]) == 1 {
		s.MaxBW, s.TotalBW = selfBW, selfBW
		return
	}
	far := s.linked()
	if s.SearchesNets() {
		far = NET
	}
	for _, g := range s.of[s.linked()] {
		for _, to := range s.of[far] {
			if p := s.Path(g, to); len(p.Links) > 0 {
				s.MaxBW = max(s.MaxBW, p.BW)
			}
		}
		var nvl, pci units.GBps
		for _, l := range s.Nodes[g].Links {
			switch link := &s.Links[l]; link.Kind {
			case LinkNVL:
				nvl += link.BW
			case LinkPCI:
				pci = link.BW
			}
		}
		s.TotalBW = max(s.TotalBW, nvl, pci)
	}
}
