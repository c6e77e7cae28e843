package logcheck

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/simccl/simccl/study/ncclog"
)

// place assigns ranks to the GPUs of DEV nodes, which NCCL prints without ranks since 2.30.7
// (graph/topo.cc:309 of v2.30.7). A rank that logs its initialisation states the bus id of its GPU. The other
// ranks are assigned in the order of hosts, as in a domain, and within a host in the order of bus ids, in
// which CUDA numbers equal GPUs.
func (p *printed) place(c *ncclog.Communicator, of *ncclog.Rank) error {
	if len(p.devs) == 0 {
		return nil
	}
	devs := slices.Clone(p.devs)
	slices.SortFunc(devs, func(a, b device) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.bus, b.bus))
	})
	local, first := of.LocalRanks, of.Rank-of.LocalRank
	if local == 0 { // no line says: all GPUs of the print
		local = len(devs)
		first = of.Rank - of.Rank%local
	}
	if len(devs) > local {
		p.at = devs[local].at
		return p.fail(fmt.Sprintf("%d devices beside %d ranks of the node, as where NCCL splits a host; "+
			"this release does not print whose they are,", len(devs), local))
	}
	last := first + local
	silent := 0
	for len(devs) > 0 {
		n := len(devs)
		if i := slices.IndexFunc(devs, func(d device) bool { return d.host != devs[0].host }); i > 0 {
			n = i
		}
		to := first + n
		if n == len(devs) {
			to = last // of which some may be without a line
		}
		silent += p.placeHost(c, of, devs[:n], first, to)
		devs, first = devs[n:], to
	}
	if silent > 0 {
		p.notes = append(p.notes, fmt.Sprintf("rank %d's system has %d GPUs of ranks that logged nothing; "+
			"they have their ranks in the order of bus ids", of.Rank, silent))
	}
	return nil
}

// placeHost assigns the ranks from to to-1 to the GPUs of one host. silent is the number of GPUs whose rank
// is not in the log.
func (p *printed) placeHost(c *ncclog.Communicator, of *ncclog.Rank, devs []device, from,
	to int) (silent int) {
	taken := map[int]bool{}
	var open []device
	for _, d := range devs {
		r := rankAt(c, of, d.bus, from, to)
		if r == nil || taken[r.Rank] {
			open = append(open, d)
			continue
		}
		p.gpus[r.Rank], taken[r.Rank] = d.gpu, true
	}
	for _, d := range open {
		for taken[from] {
			from++
		}
		p.gpus[from], taken[from] = d.gpu, true
	}
	return len(open)
}

// rankAt returns the logged rank in [from, to) whose GPU has a bus id; nil if there is none.
func rankAt(c *ncclog.Communicator, of *ncclog.Rank, bus int64, from, to int) *ncclog.Rank {
	if of.BusID == bus && of.Rank >= from && of.Rank < to {
		return of
	}
	for _, r := range c.Ranks {
		if r.BusID == bus && r.Rank >= from && r.Rank < to {
			return r
		}
	}
	return nil
}
