package logcheck

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/simccl/simccl/study/ncclog"
)

// place gives the GPUs of DEV nodes their ranks, which NCCL does not print with
// them from 2.30.7 on (graph/topo.cc:309 of v2.30.7). A rank that logs its
// initialisation names the bus id of its GPU. The others of its node follow in
// the order of bus ids, in which CUDA numbers equal GPUs.
func (p *printed) place(c *ncclog.Communicator, of *ncclog.Rank) error {
	if len(p.devs) == 0 {
		return nil
	}
	devs := slices.Clone(p.devs)
	slices.SortFunc(devs, func(a, b device) int { return cmp.Compare(a.bus, b.bus) })
	left := map[int]bool{}
	local, first := of.LocalRanks, of.Rank-of.LocalRank
	if local == 0 { // no line says: all GPUs of the print
		local = len(devs)
		first = of.Rank - of.Rank%local
	}
	for r := range local {
		left[first+r] = true
	}
	var open []device
	for _, d := range devs {
		if d.host != devs[0].host {
			p.at = d.at
			return p.fail("GPUs of several hosts, whose ranks this release does not print,")
		}
		r := rankAt(c, of, d.bus)
		if r == nil {
			open = append(open, d)
			continue
		}
		p.gpus[r.Rank] = d.gpu
		delete(left, r.Rank)
	}
	rest := make([]int, 0, len(left))
	for r := range left {
		rest = append(rest, r)
	}
	slices.Sort(rest)
	if len(open) > len(rest) {
		p.at = open[0].at
		return p.fail(fmt.Sprintf("one of %d devices beside %d ranks of the node, as where NCCL splits a host; "+
			"this release does not print whose they are,", len(devs), local))
	}
	for i, d := range open {
		p.gpus[rest[i]] = d.gpu
	}
	if len(open) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("rank %d's system has %d GPUs of ranks that logged nothing; "+
			"they have their ranks in the order of bus ids", of.Rank, len(open)))
	}
	return nil
}

// rankAt is the rank on the host of another whose GPU has a bus id, nil where none
// of those logged does.
func rankAt(c *ncclog.Communicator, of *ncclog.Rank, bus int64) *ncclog.Rank {
	if of.BusID == bus {
		return of
	}
	for _, r := range c.Ranks {
		if r.BusID == bus && r.Host() == of.Host() {
			return r
		}
	}
	return nil
}
