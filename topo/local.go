package topo

import "github.com/simccl/simccl/rules"

import "math/bits"

// NetDevsMode is the rule for how many of its nearest nets a GPU uses (NCCL_NETDEVS_POLICY).
type NetDevsMode uint8

// Modes of NCCL_NETDEVS_POLICY; Auto shares the nets among the GPUs that are
// equally near to them.
const (
	NetDevsAuto NetDevsMode = iota
	NetDevsAll
	NetDevsMax
)

// NetDevsPolicy is a value of NCCL_NETDEVS_POLICY (topo.cc:1602). The zero value is AUTO.
type NetDevsPolicy struct {
	Mode NetDevsMode
	Max  int // nets per GPU with NetDevsMax, at least 1
}

// Rank returns the position of a kind of path in the release's order, best first, as a PathKind. In most
// releases the two orders are equal.
func (s *System) Rank(k PathKind) PathKind { return PathKind(s.Rules.Topo.Rank(rules.Level(k))) }

// Nearest lists the indices, within kind k, of the nodes that from reaches with
// most bandwidth and, among those, by the best path kind (topo.cc:1548). It
// also returns that path kind. Where no node of k can be reached all of them
// are listed with PathDIS, as NCCL does.
func (s *System) Nearest(from NodeID, k NodeKind) ([]int, PathKind) {
	best := PathDIS
	bw := float32(0)
	var list []int
	for i, to := range s.of[k] {
		p := s.Path(from, to)
		if float32(p.BW) > bw || (float32(p.BW) == bw && s.Rank(p.Kind) < s.Rank(best)) {
			bw, best, list = float32(p.BW), p.Kind, list[:0]
		}
		if float32(p.BW) == bw && p.Kind == best {
			list = append(list, i)
		}
	}
	return list, best
}

// LocalNets lists the nets (indices among NET nodes) that GPU g (an index among
// GPU nodes) takes round-robin, channel after channel (topo.cc:1635). It depends on
// the GPU's device number (see rules.Topo.NetsByShare), not on its rank. It is empty
// without any net.
func (s *System) LocalNets(g int) []int {
	gpu := s.of[GPU][g]
	nets, _ := s.Nearest(gpu, NET)
	if len(nets) == 0 {
		return nil
	}
	turns, first := len(nets), s.Nodes[gpu].GPU.Dev
	sharers, _ := s.Nearest(s.of[NET][nets[0]], GPU)
	switch {
	case s.NetDevs.Mode == NetDevsAuto && len(sharers) > 0:
		turns = (len(nets) + len(sharers) - 1) / len(sharers)
	case s.NetDevs.Mode == NetDevsMax:
		turns = max(1, min(s.NetDevs.Max, len(nets)))
	}
	if s.Rules.Topo.NetsByShare && len(sharers) > 0 {
		first %= len(sharers)
	}
	if n := len(nets); n&(n-1) == 0 {
		first = mirrorBits(first, n)
	}
	list := make([]int, turns)
	for c := range list {
		list[c] = nets[(first+c)%len(nets)]
	}
	return list
}

// LocalGPU returns the index of the GPU that owns net n (both are indices among nodes of their kind): the
// first, by channel and then by nearness, whose LocalNet is n; -1 if there is none (topo.cc:1688). It uses
// the current paths, so before PXN paths are added it returns the owner that PXN uses.
func (s *System) LocalGPU(n int) int {
	n = s.sameIdent(s.of[NET][n]) // NCCL finds it by its id
	gpus, _ := s.Nearest(s.of[NET][n], GPU)
	turns := make([][]int, len(gpus))
	for i, g := range gpus {
		turns[i] = s.LocalNets(g)
	}
	id := s.Nodes[s.of[NET][n]].Ident
	for c := 0; c < s.Rules.MaxChannels; c++ {
		for i, g := range gpus {
			list := turns[i]
			if len(list) > 0 && s.Nodes[s.of[NET][list[c%len(list)]]].Ident == id {
				return g
			}
		}
	}
	return -1
}

// mirrorBits reverses the log2(n) low bits of v; n is a power of two. It
// spreads neighbouring GPUs over different nets (topo.h:289).
func mirrorBits(v, n int) int {
	if n <= 1 {
		return 0
	}
	width := bits.TrailingZeros(uint(n))
	return int(bits.Reverse64(uint64(v)&uint64(n-1)) >> (64 - width))
}
