package fold

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// grain is what addresses have to be multiples of for equal bytes to take equal
// times: a pack of 16 bytes, or for LL, whose warps load and store user data
// 256 bytes at a time, a line of 128 (gpu.Pass.Astride). Ranks of an all_gather
// of 16 B each differ in that: only rank 0's part begins with a line.
func grain(proto coll.Protocol) int64 {
	if proto == coll.LL {
		return 128
	}
	return 16
}

// alignedParts reports whether all channels begin at addresses of equal alignment.
func alignedParts(p *plan.Plan) bool {
	s, n := &p.Split, grain(p.Req.Proto)
	return s.Lo.Count*int64(p.ElemSize())%n == 0 && s.Mid.Count*int64(p.ElemSize())%n == 0
}

// equalParts reports whether all channels move equally many bytes from
// addresses of equal alignment.
func equalParts(p *plan.Plan) bool {
	s := &p.Split
	if s.NChannels == 1 {
		return true
	}
	return s.Lo == s.Mid && s.Mid == s.Hi && s.Mid.Count*int64(p.ElemSize())%grain(p.Req.Proto) == 0
}

// equalChunks reports whether all ops of a program's round, n of them, move
// equally many bytes from and to aligned addresses.
func equalChunks(p *plan.Plan, pr *plan.Program, n int64) bool {
	return equalSizes(p, pr, n) && alignedOps(p, pr)
}

// equalSizes reports whether all ops of a program's round move equally many bytes.
func equalSizes(p *plan.Plan, pr *plan.Program, n int64) bool {
	cur := p.Open(pr)
	var op plan.Op
	size := op.Bytes
	for i := int64(0); cur.Next(&op); i++ {
		if i%n == 0 {
			size = op.Bytes
		}
		if op.Bytes != size {
			return false
		}
	}
	return true
}

// alignedOps reports whether all addresses of a program are those of whole packs,
// or lines.
func alignedOps(p *plan.Plan, pr *plan.Program) bool {
	cur, n := p.Open(pr), units.Bytes(grain(pr.Proto))
	var op plan.Op
	for cur.Next(&op) {
		if op.Src.Off%n != 0 || op.Dst.Off%n != 0 {
			return false
		}
	}
	return true
}

// partOf returns the part of the split of its k-th channel: 0 Lo (the first), 1 Mid, 2 Hi (the last):
// countLo, countMid and countHi of ncclDevWorkColl.
func partOf(p *plan.Plan, k int) int {
	switch k {
	case 0:
		return 0
	case p.Split.NChannels - 1:
		return 2
	}
	return 1
}

// partKinds numbers the parts that differ in size.
func partKinds(p *plan.Plan) (of [3]int32, n int32) {
	parts := [3]*plan.Part{&p.Split.Lo, &p.Split.Mid, &p.Split.Hi}
	for i := range parts {
		of[i] = n
		for j := range i {
			if *parts[j] == *parts[i] {
				of[i] = of[j]
			}
		}
		if of[i] == n {
			n++
		}
	}
	return of, n
}

// eachPart reports whether something holds of a program of rank 0 for every part that
// differs in size, of those with a role that is asked for.
func eachPart(p *plan.Plan, asked func(*plan.Program) bool, holds func(*plan.Program) bool) bool {
	of, _ := partKinds(p)
	seen := [3]bool{}
	for _, pr := range p.Programs(0) {
		kind := of[partOf(p, int(pr.Channel)-p.Split.ChannelLo)]
		if seen[kind] || !asked(&pr) {
			continue
		}
		if seen[kind] = true; !holds(&pr) {
			return false
		}
	}
	return seen[of[0]]
}

// conns is the range of connection ids of one of a kernel's operations.
type conns struct {
	Base   int32 // the first one's id
	Lo, Hi int32 // channels
	Per    int32 // ids of a rank on a channel
	At     int32 // place of the first among all that a rank has on a channel
}

// members lists the connections of each operation of the kernel, one entry where it has one
// operation, and the number of ids that a rank has on a channel in all.
func members(p *plan.Plan) (all []conns, per int32) {
	one := func(p *plan.Plan, base int32) {
		m := conns{base, int32(p.Split.ChannelLo), int32(p.Split.ChannelHi), p.ConnsPerRank(), per}
		all, per = append(all, m), per+m.Per
	}
	if p.Members() == nil {
		one(p, 0)
		return all, per
	}
	base := int32(0)
	for _, m := range p.Members() {
		one(m.Plan, base)
		base += m.Plan.NumConns()
	}
	return all, per
}

// channelRange returns the first and the last channel of several operations.
func channelRange(members []conns) (lo, hi int32) {
	lo, hi = members[0].Lo, members[0].Hi
	for i := range members {
		lo, hi = min(lo, members[i].Lo), max(hi, members[i].Hi)
	}
	return lo, hi
}
