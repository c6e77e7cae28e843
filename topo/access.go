package topo

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/units"
)

// Access holds the settings of Params that decide which transport may use a path: P2P, SHM, GPUDirect RDMA
// and PXN.
type Access struct {
	P2PLevel        units.Opt[PathKind] // NCCL_P2P_LEVEL; NCCL_P2P_DISABLE=1 is LOC
	P2PMemcpy       bool                // NCCL_P2P_USE_CUDA_MEMCPY=1
	SHMDisable      bool                // NCCL_SHM_DISABLE=1
	NetDisableIntra bool                // NCCL_NET_DISABLE_INTRA=1
	NVBDisable      bool                // NCCL_NVB_DISABLE=1
	PXNDisable      bool                // NCCL_PXN_DISABLE=1
	PXNAuto         bool                // NCCL_PXN_DISABLE is unset, and the number of ranks decides
	PXNC2C          bool                // NCCL_PXN_C2C, on by default
	GDRLevel        units.Opt[PathKind] // NCCL_NET_GDR_LEVEL
	GDRRead         units.Opt[int]      // NCCL_NET_GDR_READ; unset where negative
	GDRC2C          bool                // NCCL_NET_GDR_C2C, on by default
}

// Verdict records that a transport may not use a path: the rule that forbids it and the setting that would
// allow it.
type Verdict struct {
	What     string // "P2P", "SHM", "GDR", "PXN"
	From, To NodeID
	Reason   string // "path SYS is worse than the limit PXB"
	Setting  string // "NCCL_P2P_LEVEL=SYS", empty where no setting helps
	At       rules.Place
}

func (s *System) refuse(v Verdict) { s.Verdicts = append(s.Verdicts, v) }

// relay returns the GPU between two GPUs whose route is one NVLink hop through
// a third, None where it is not (paths.cc:311).
func (s *System) relay(src, dst NodeID) NodeID {
	p := s.Path(src, dst)
	links := p.Links
	if s.Rules.Topo.EndGPUs {
		return None
	}
	if s.Rules.Topo.DevNodes && len(links) == 4 { // without those between GPUs and their devices
		links = links[1:3]
	}
	if len(links) != 2 || s.Nodes[s.Links[links[0]].To].Kind != s.linked() {
		return None
	}
	return s.GPUAt(s.Links[links[0]].To)
}

// p2pLimit returns the worst path that P2P may use (paths.cc:319-327).
func (s *System) p2pLimit(a *Access) PathKind {
	r := &s.Rules.Topo
	limit := PathKind(r.P2PLevel)
	if len(s.of[CPU]) > 0 {
		switch c := s.Nodes[s.of[CPU][0]].CPU; {
		case c.Arch == ArchX86 && c.Vendor == VendorAMD:
			if len(s.of[s.linked()]) <= r.P2PAMDGPUs {
				limit = PathKind(r.P2PLevelAMD)
			}
		case c.Arch != ArchARM && (c.Arch != ArchX86 || c.Vendor != VendorIntel && c.Vendor != VendorZhaoxin):
			limit = PathKind(r.P2PLevelOther)
		}
		if r.P2PLevelFirm && limit == PathKind(r.P2PLevel) {
			return limit
		}
	}
	return a.P2PLevel.Or(limit)
}

// PeerToPeer reports whether src may address dst's memory.
func (s *System) PeerToPeer(src, dst NodeID, a *Access) bool {
	return s.Path(src, dst).Kind <= s.p2pLimit(a)
}

// netIsFaster reports whether both GPUs reach a NIC, without crossing a CPU,
// with more bandwidth than each other (paths.cc:536).
func (s *System) netIsFaster(src, dst NodeID, a *Access) bool {
	if a.NetDisableIntra {
		return false
	}
	direct := s.Path(src, dst).BW
	if direct >= s.fastestNet {
		return false
	}
	return s.netSpeed(src) > direct && s.netSpeed(dst) > direct
}

func (s *System) netSpeed(gpu NodeID) units.GBps {
	var best units.GBps
	for _, n := range s.of[NET] {
		if p := s.Path(gpu, n); p.Kind <= PathPXB {
			best = max(best, p.BW)
		}
	}
	return best
}

// connects reports by which transport src reaches dst inside the host, "" for
// none (transport/p2p.cc:123, transport/shm.cc:75).
func (s *System) connects(src, dst NodeID, a *Access) string {
	sameHost := s.Nodes[src].GPU.Host == s.Nodes[dst].GPU.Host
	if s.PeerToPeer(src, dst, a) {
		switch {
		case s.relay(src, dst) != None:
			if !a.P2PMemcpy {
				return "P2P"
			}
		case !s.netIsFaster(src, dst, a):
			return "P2P"
		}
	}
	if a.SHMDisable || s.netIsFaster(src, dst, a) || !sameHost {
		return ""
	}
	return "SHM"
}

// applyAccess restricts the bare routes to those that NCCL may use: it diverts routes that P2P and GDR may
// not use through the CPU, marks pairs that no transport of the host connects, and adds PXN routes
// (paths.cc:664-745).
func (s *System) applyAccess(p *Params) error {
	a := &p.Access
	s.Verdicts = s.Verdicts[:0]
	for _, dst := range s.of[GPU] {
		if err := p.poll(); err != nil {
			return err
		}
		if err := s.divertPeers(dst, a); err != nil {
			return err
		}
		for _, src := range s.of[GPU] {
			if src != dst && s.connects(src, dst, a) == "" {
				s.setKind(src, dst, PathNET)
				s.refuse(s.noTransport(src, dst, a))
			}
		}
	}
	if err := s.markP2C(); err != nil {
		return err
	}
	s.nearByBus(p.NRanks)
	for i := range s.of[NET] {
		if err := p.poll(); err != nil {
			return err
		}
		if err := s.correctNet(i, a); err != nil {
			return err
		}
	}
	for i, net := range s.of[NET] {
		s.Nodes[net].Net.LocalGPU = s.LocalGPU(i)
	}
	return nil
}

// correctNet adds PXN routes to one net and diverts routes that may not use GDR. It looks up the net's owner
// for every GPU, because the corrections may change it, but recomputes it only after a change that can.
func (s *System) correctNet(i int, a *Access) error {
	net := s.of[NET][i]
	near, _ := s.Nearest(net, GPU)
	owner := s.LocalGPU(i)
	for g, gpu := range s.of[GPU] {
		changed := s.layPXN(i, g, owner, a) && slices.Contains(near, g)
		if s.Path(gpu, net).Kind < PathPHB {
			if err := s.checkRelay(gpu, net); err != nil {
				return err
			}
			if _, why := s.gdr(gpu, net, false, a); why != nil {
				cpu, err := s.localCPU(gpu)
				if err != nil {
					return err
				}
				s.refuse(*why)
				s.detour(net, cpu, gpu)
				s.detour(gpu, cpu, net)
				near, _ = s.Nearest(net, GPU)
				changed = true
			}
		}
		if changed {
			owner = s.LocalGPU(i)
		}
	}
	return nil
}

func (s *System) divertPeers(dst NodeID, a *Access) error {
	cpu := None
	for _, src := range s.of[GPU] {
		if s.PeerToPeer(src, dst, a) {
			continue
		}
		if cpu == None {
			var err error
			if cpu, err = s.localCPU(dst); err != nil {
				return err
			}
		}
		was := s.Path(src, dst).Kind
		s.refuse(Verdict{What: "P2P", From: src, To: dst,
			Reason:  fmt.Sprintf("path %v is worse than the limit %v", was, s.p2pLimit(a)),
			Setting: "NCCL_P2P_LEVEL=" + was.String(), At: rules.AtP2PLevel})
		s.detour(src, cpu, dst)
	}
	return nil
}

func (s *System) noTransport(src, dst NodeID, a *Access) Verdict {
	v := Verdict{What: "SHM", From: src, To: dst, At: rules.AtSHMHost}
	switch {
	case s.netIsFaster(src, dst, a):
		v.Reason = fmt.Sprintf("a NIC is faster than the path between them (%g GB/s)", s.Path(src, dst).BW)
		v.Setting, v.At = "NCCL_NET_DISABLE_INTRA=1", rules.AtNetFaster
	case a.SHMDisable:
		v.Reason, v.Setting, v.At = "shared memory is disabled", "NCCL_SHM_DISABLE=0", rules.AtSHMDisable
	default:
		v.Reason = "they are on different hosts"
	}
	return v
}

// markP2C gives GPU–NIC routes that are C2C on one side and a host bridge on
// the other their own kind (paths.cc:696).
func (s *System) markP2C() error {
	if len(s.of[NET]) == 0 || !s.Rules.Topo.P2CPaths {
		return nil
	}
	cpus, local := make([]NodeID, len(s.of[GPU])), make([][]int, len(s.of[GPU]))
	for g, gpu := range s.of[GPU] {
		var err error
		local[g], _ = s.Nearest(gpu, NET)
		if cpus[g], err = s.localCPU(gpu); err != nil {
			return err
		}
	}
	for i, net := range s.of[NET] {
		for g, gpu := range s.of[GPU] {
			cpu := cpus[g]
			if s.Rules.Topo.P2CLocalOnly && !slices.Contains(local[g], i) {
				continue
			}
			if s.Rules.Topo.P2CFromPHB {
				if s.Path(gpu, net).Kind == PathPHB && s.Path(gpu, cpu).Kind == PathC2C {
					s.setKind(gpu, net, PathP2C)
					s.setKind(net, gpu, PathP2C)
				}
				continue
			}
			if s.joinKinds(s.Path(gpu, cpu).Kind, s.Path(net, cpu).Kind) == PathP2C {
				s.setKind(gpu, net, min(PathP2C, s.Path(gpu, net).Kind))
				s.setKind(net, gpu, min(PathP2C, s.Path(net, gpu).Kind))
			}
		}
	}
	return nil
}

// layPXN replaces the route from GPU g (index) to net i (index) by one through the GPU that owns the net
// (PXN), where that route is better (paths.cc:716-736). It reports whether it did.
func (s *System) layPXN(i, g, owner int, a *Access) bool {
	if owner == g || owner == -1 {
		return false
	}
	gpu, peer, net := s.of[GPU][g], s.of[GPU][owner], s.of[NET][i]
	own, rel := s.Path(gpu, net), s.Path(peer, net)
	v := Verdict{What: "PXN", From: gpu, To: net, At: rules.AtPXNNet}
	limit := PathPXB
	if a.PXNC2C {
		limit = PathP2C
	}
	switch {
	case a.PXNDisable:
		v.Reason, v.Setting, v.At = "PXN is disabled", "NCCL_PXN_DISABLE=0", rules.AtPXNDisable
	case rel.Kind > limit:
		v.Reason = fmt.Sprintf("%s, which owns the NIC, reaches it by %v, worse than %v", s.Name(peer),
			rel.Kind, limit)
		if rel.Kind == PathP2C {
			v.Setting = "NCCL_PXN_C2C=1"
		}
	case s.Path(peer, gpu).Kind > PathNVL:
		v.Reason = fmt.Sprintf("%s, which owns the NIC, is not connected by NVLink", s.Name(peer))
		v.At = rules.AtPXNNVLink
	case s.Nodes[peer].GPU.Host != s.Nodes[gpu].GPU.Host:
		v.Reason = fmt.Sprintf("%s, which owns the NIC, is on another host", s.Name(peer))
		v.At = rules.AtPXNHost
	case rel.BW <= own.BW && own.Kind <= PathKind(s.Rules.Topo.PXNFrom):
		v.Reason = fmt.Sprintf("its own path (%v, %g GB/s) is as good", own.Kind, own.BW)
		v.At = rules.AtPXNWider
	case s.Rules.Topo.PXNNeedsGDR && !s.sendsGDR(peer, net, a):
		v.Reason = fmt.Sprintf("%s, which owns the NIC, has no GPUDirect RDMA to it", s.Name(peer))
		v.At = rules.AtPXNGDR
	default:
		s.detour(gpu, peer, net)
		return true
	}
	s.refuse(v)
	return false
}

// checkRelay returns an error if the first hop of a PXN route is no GPU. NCCL fails there too, when it looks
// up the proxy GPU's GPUDirect support (paths.cc:580). Up to 2.25 a GPU-to-GPU route over C2C and a CPU
// counts as NVLink, so PXN may take it where NCCL_P2P_LEVEL excludes NVLink.
func (s *System) checkRelay(gpu, net NodeID) error {
	if !s.Nodes[net].Net.GDR || !s.Nodes[gpu].GPU.GDR || s.Proxy(gpu, net) != None {
		return nil
	}
	return &PathError{Node: s.Name(gpu), At: gpu,
		Problem: "the PXN route to " + s.Name(net) + " leads through no GPU: NCCL fails on it" +
			s.Rules.Aside(rules.AtRelayGPU),
		Hint: "write NCCL_PXN_DISABLE=1, or let NCCL_P2P_LEVEL allow NVLink"}
}

// Proxy returns the GPU whose proxy serves gpu's sends to net: gpu itself, or
// with PXN the relay (paths.cc:567); None where a CPU is the relay.
func (s *System) Proxy(gpu, net NodeID) NodeID {
	p := s.Path(gpu, net)
	if p.Kind != PathPXN {
		return gpu
	}
	own := s.Device(gpu)
	for _, l := range p.Links {
		if to := s.Links[l].To; s.Nodes[to].Kind != NVS && to != own {
			return s.GPUAt(to)
		}
	}
	return gpu
}

// GDR reports whether the NIC moves gpu's data without a host copy, reading
// (sends) or writing (receives); else the verdict says why not.
func (s *System) GDR(gpu, net NodeID, read bool, a *Access) (bool, *Verdict) {
	return s.gdr(gpu, net, read, a)
}

// sendsGDR reports whether a NIC reads a GPU's memory.
func (s *System) sendsGDR(gpu, net NodeID, a *Access) bool {
	ok, _ := s.gdr(gpu, net, true, a)
	return ok
}

// gdr implements NCCL's ncclTopoCheckGdr (paths.cc:418-480); see GDR.
func (s *System) gdr(gpu, net NodeID, read bool, a *Access) (bool, *Verdict) {
	v := &Verdict{What: "GDR", From: gpu, To: net, At: rules.AtGDRLevel}
	switch {
	case !s.Nodes[net].Net.GDR:
		v.Reason, v.At = "the NIC does not support it (gdr=\"0\")", rules.AtGDRNet
		return false, v
	case !s.Nodes[gpu].GPU.GDR:
		v.Reason, v.At = "the GPU does not support it (gdr=\"0\")", rules.AtGDRGPU
		return false, v
	}
	if read {
		if r, set := a.GDRRead.Value, a.GDRRead.Set && a.GDRRead.Value >= 0; set && r == 0 {
			v.Reason, v.Setting, v.At = "GDR reads are disabled", "NCCL_NET_GDR_READ=1", rules.AtGDRRead
			return false, v
		} else if !set && !s.Rules.Topo.GDRReads && s.Nodes[gpu].GPU.SM < 80 && !s.hasNVLinkPeer(gpu) {
			v.Reason, v.Setting = "before sm_80, GDR reads need NVLink", "NCCL_NET_GDR_READ=1"
			v.At = rules.AtGDRReadNVLink
			return false, v
		}
	}
	distance := s.Path(s.Proxy(gpu, net), net).Kind
	r := &s.Rules.Topo
	limit := r.GDRLevel
	if a.GDRC2C {
		limit = r.GDRLevelC2C
		if r.P2CAsC2C && distance == PathP2C {
			distance = PathC2C
		}
		if !r.P2CPaths && distance == PathPHB && s.overC2C(s.Proxy(gpu, net)) { // paths.cc:430 of v2.26.2
			distance = PathC2C
		}
	}
	if s.sameRoot(gpu, net) {
		limit = rules.PHB
	}
	if limit := a.GDRLevel.Or(PathKind(limit)); s.Rank(distance) > s.Rank(limit) {
		v.Reason = fmt.Sprintf("path %v is worse than the limit %v", distance, limit)
		v.Setting = "NCCL_NET_GDR_LEVEL=" + distance.String()
		return false, v
	}
	return true, nil
}

// overC2C reports whether a GPU reaches its CPU by C2C.
func (s *System) overC2C(gpu NodeID) bool {
	cpu, err := s.localCPU(gpu)
	return err == nil && s.Path(gpu, cpu).Kind == PathC2C
}

func (s *System) hasNVLinkPeer(gpu NodeID) bool {
	if len(s.of[GPU]) == 1 {
		return true
	}
	for _, p := range s.of[GPU] {
		if p != gpu && s.Path(gpu, p).Kind == PathNVL {
			return true
		}
	}
	return false
}
