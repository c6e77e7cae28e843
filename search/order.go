package search

import "slices"

// candidate is a GPU to try next. Its list is sorted by nearness
// to the net, then to the present GPU; intra numbers the classes of the latter.
type candidate struct {
	gpu, netBW, intra int32
}

// rankedGPU is a candidate with the remaining bandwidth of its uplink, in whole GB/s.
type rankedGPU struct {
	gpu, netBW, uplink int32
}

// nearness is the preference of a candidate that does not change during a search
// (search.cc:183); bandwidths are whole GB/s there.
type nearness struct {
	gpu, away          int32 // away: places after the present GPU
	netBW, netHops     int32
	intraBW, intraHops int32
}

func (a nearness) compare(b nearness) int {
	switch {
	case a.netBW != b.netBW:
		return int(b.netBW - a.netBW)
	case a.netHops != b.netHops:
		return int(a.netHops - b.netHops)
	case a.intraBW != b.intraBW:
		return int(b.intraBW - a.intraBW)
	case a.intraHops != b.intraHops:
		return int(a.intraHops - b.intraHops)
	}
	return int(a.away - b.away)
}

// candidates lists the GPUs that g reaches, in the order NCCL would try them
// if all uplinks were equal. With net >= 0 nearness to that net counts first.
func (e *engine) candidates(g, net int) []candidate {
	at := &e.preference[g*(e.nets.count+1)+net+1]
	if *at != nil {
		return *at
	}
	list := make([]nearness, 0, e.gpus-1)
	for i := 1; i < e.gpus; i++ {
		to := (g + i) % e.gpus
		r := e.gpuGPU.at(g, to)
		if len(r.hops) == 0 {
			continue
		}
		c := nearness{gpu: int32(to), away: int32(i), intraBW: int32(r.bw), intraHops: int32(len(r.hops))}
		if net >= 0 {
			n := e.netGPU.at(net, to)
			c.netBW, c.netHops = int32(n.bw), int32(len(n.hops))
		}
		list = append(list, c)
	}
	slices.SortFunc(list, nearness.compare)
	out := make([]candidate, len(list))
	classes := map[[2]int32]int32{}
	for i, c := range list {
		class := [2]int32{c.intraBW, c.intraHops}
		if _, ok := classes[class]; !ok {
			classes[class] = int32(len(classes))
		}
		out[i] = candidate{c.gpu, c.netBW, classes[class]}
	}
	*at = out
	return out
}

// netWeight says how the route back to the net weighs in the choice of a GPU.
type netWeight int8

const (
	netIgnored netWeight = iota
	netNext              // the next GPU goes back to the net
	netLater             // one of the next GPUs does
)

// pushNext puts the GPUs to try after g on the stack, best first, and returns
// how many (search.cc:230).
func (e *engine) pushNext(g int, w netWeight) int {
	if e.hasNVS {
		return e.pushNeighbours(g)
	}
	flag := uint64(1) << e.cur.nChannels
	if w == netIgnored {
		base := len(e.stack)
		for _, c := range e.candidates(g, -1) {
			if e.used[c.gpu]&flag == 0 {
				e.stack = append(e.stack, c.gpu)
			}
		}
		return len(e.stack) - base
	}
	ranked := e.ranked[:0]
	class, sameIntra := int32(-1), true
	for _, c := range e.candidates(g, int(e.cur.in[e.cur.nChannels])) {
		if e.used[c.gpu]&flag != 0 {
			continue
		}
		sameIntra = sameIntra && (class < 0 || class == c.intra)
		class = c.intra
		// Free uplinks come right after nearness to the net.
		free := e.uplinkGBps(c.gpu)
		at := len(ranked)
		ranked = ranked[:at+1]
		for ; at > 0 && ranked[at-1].uplink < free && ranked[at-1].netBW == c.netBW; at-- {
			ranked[at] = ranked[at-1]
		}
		ranked[at] = rankedGPU{c.gpu, c.netBW, free}
	}
	for i := range ranked {
		if w == netLater && sameIntra {
			i = len(ranked) - 1 - i
		}
		e.stack = append(e.stack, ranked[i].gpu)
	}
	return len(ranked)
}

// pushNeighbours is pushNext on machines with NVSwitch, where NCCL keeps to the
// neighbours by index: the last one found comes first (search.cc:272).
func (e *engine) pushNeighbours(g int) int {
	next, prev := g+1, g-1
	if next == e.gpus {
		next = 0
	}
	if prev < 0 {
		prev = e.gpus - 1
	}
	first, second := next, -1
	switch e.cur.pattern {
	case RingPattern:
		second = prev
	case BalancedTree, SplitTree:
		first, second = prev, next
	}
	if next == prev {
		second = -1
	}
	flag := uint64(1) << e.cur.nChannels
	n := 0
	for _, to := range [2]int{second, first} {
		if to >= 0 && to != g && e.used[to]&flag == 0 && len(e.gpuGPU.at(g, to).hops) > 0 {
			e.stack = append(e.stack, int32(to))
			n++
		}
	}
	return n
}
