package fold

import (
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/host"
)

// A proxy thread serves the channels of a rank one after the other (host.Staggers),
// so channels that share one do not stay in lockstep, and none of them represents
// another. A symmetry that takes channels together is divided into layers: one
// layer has a channel of each set that shares a thread. Of 16 channels of NVLS
// trees, each of which uses all NICs, every one is a layer.

// layerNodes is the number of nodes whose proxy threads are examined for which channels they serve and in
// which order; the scan proves the answer for all nodes.
const layerNodes = 4

// apart divides a symmetry into layers of channels that do not represent each other: channels that one proxy
// thread serves are in different ones, so that it still serves them all. nil where a layer lacks a part, or
// where no part would represent another any more.
func (s *symmetry) apart(p *plan.Plan) *symmetry {
	layers, n := s.layers(p)
	if n == 1 {
		return s
	}
	return s.inLayers(p, layers, n)
}

// byParts gives channels whose parts of the operation differ in size layers of their own:
// what is equivalent but for that is so within them. Nil where it is not.
func (s *symmetry) byParts(p *plan.Plan) *symmetry {
	if !s.unequal {
		return nil
	}
	s.lay()
	layers := make([]int32, len(s.of))
	of, n := partKinds(p)
	for k := range layers {
		layers[k] = of[partOf(p, k)]
	}
	if s = s.inLayers(p, layers, n); s != nil {
		s.equivalent, s.unequal, s.margin, s.few = true, false, 0, false
	}
	return s
}

// nearByParts gives the channels of a near ring whose parts of the operation differ in size layers of
// their own: treated as one they would use ports and threads in lockstep, which such channels leave.
// The times of all_gather with LL over sockets were 7 to 8 % too long so. With jitter no channels
// are in lockstep. Of anything else it is the symmetry itself.
func (s *symmetry) nearByParts(p *plan.Plan) *symmetry {
	of, n := partKinds(p)
	if s.equivalent || s.margin == 0 || p.Req.Algo != coll.Ring || p.Comm.NRanks <= host.JitterRanks ||
		n == 1 ||
		s.skipped != nil || s.list != nil {
		return s
	}
	layers := make([]int32, len(s.of))
	for k := range layers {
		layers[k] = of[partOf(p, k)]
	}
	if out := s.inLayers(p, layers, n); out != nil {
		return out
	}
	return s
}

// byRings gives channels layers of their own whose rings or parts differ: what is
// equivalent from node to node alone is so within them. Nil where it is not.
func (s *symmetry) byRings(p *plan.Plan) *symmetry {
	if !s.turning {
		return nil
	}
	first, _ := copies(p)
	kind, _ := partKinds(p)
	layers, n := make([]int32, len(s.of)), int32(0)
	for k := range layers {
		layers[k] = n
		for j := range k {
			if first[j] == first[k] && kind[partOf(p, j)] == kind[partOf(p, k)] {
				layers[k] = layers[j]
			}
		}
		if layers[k] == n {
			n++
		}
	}
	if s = s.inLayers(p, layers, n); s != nil {
		s.equivalent, s.turning, s.margin = true, false, 0
	}
	return s
}

// inLayers returns the symmetry with reps for each of n layers: a part is represented by one of its
// channel's layer.
func (s *symmetry) inLayers(p *plan.Plan, layers []int32, n int32) *symmetry {
	if len(s.reps)*int(n) >= p.Comm.NRanks*p.Split.NChannels {
		return nil // every part would represent itself alone
	}
	size := int32(len(s.reps))
	out := *s
	out.reps, out.of = make([]part, size*n), nil
	for i := range out.reps {
		out.reps[i].rank = -1
	}
	for k, from := range s.of {
		base := layers[k] * size
		ch := int32(p.Split.ChannelLo + k)
		of := make([]int32, len(from))
		for r := range of {
			i := from[r]
			of[r] = base + i
			rep, was := &out.reps[of[r]], s.reps[i]
			switch node := p.Comm.NodeOf[r]; {
			case s.home[node] != node:
			case rep.rank < 0 && (s.heads == 0 || p.Comm.NVLS[ch].HeadIndex[r] == 0 || int32(r) == was.rank),
				rep.channel == ch && int32(r) == was.rank:
				*rep = part{ch, int32(r)}
			}
		}
		out.of = append(out.of, of)
	}
	return out.compact()
}

// layers gives every channel of the split its layer, and says how many there
// are.
func (s *symmetry) layers(p *plan.Plan) (of []int32, n int32) {
	of, n = make([]int32, len(s.of)), 1
	threads := make([][]int32, len(s.of))
	for k := range s.of {
		threads[k] = s.threads(p, int32(k))
		for taken := true; taken; {
			taken = false
			for j := range k {
				if of[j] == of[k] && slices.Min(s.of[j]) == slices.Min(s.of[k]) &&
					slices.ContainsFunc(threads[j], func(t int32) bool {
						return slices.Contains(threads[k], t)
					}) {
					of[k]++
					taken = true
					break
				}
			}
		}
		n = max(n, of[k]+1)
	}
	return of, n
}

// threads lists the ranks whose proxy threads serve a channel, of some nodes.
func (s *symmetry) threads(p *plan.Plan, k int32) (ranks []int32) {
	c, per := p.Comm, p.ConnsPerRank()
	var pc plan.Conn
	asked := 0
	for node, home := range s.home {
		if int(home) != node {
			continue
		}
		if asked++; asked > layerNodes {
			break
		}
		for _, r := range c.NodeRanks[node] {
			for j := range per {
				id := (k*int32(c.NRanks)+r)*per + j
				p.EndsInto(&pc, id)
				if pc.Src < 0 || pc.Dst < 0 || pc.Kind == connect.NVLSRoute {
					continue
				}
				if p.ConnInto(&pc, id); pc.Route.Transport != connect.NET {
					continue
				}
				for _, t := range [2]int32{pc.Route.SrcProxy, pc.Route.DstProxy} {
					if !slices.Contains(ranks, t) {
						ranks = append(ranks, t)
					}
				}
			}
		}
	}
	return ranks
}
