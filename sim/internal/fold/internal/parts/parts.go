// Package parts knows how the parts of an operation, which its channels do, differ in size, in
// alignment and in the ids of their connections.
package parts

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// Grain is what addresses have to be multiples of for equal bytes to take equal
// times: a pack of 16 bytes, or for LL, whose warps load and store user data
// 256 bytes at a time, a line of 128 (gpu.Pass.Astride). Ranks of an all_gather
// of 16 B each differ in that: only rank 0's part begins with a line.
func Grain(proto coll.Protocol) int64 {
	if proto == coll.LL {
		return 128
	}
	return 16
}

// Aligned reports whether all channels begin at addresses of equal alignment.
func Aligned(p *plan.Plan) bool {
	s, n := &p.Split, Grain(p.Req.Proto)
	return s.Lo.Count*int64(p.ElemSize())%n == 0 && s.Mid.Count*int64(p.ElemSize())%n == 0
}

// Equal reports whether all channels move equally many bytes from
// addresses of equal alignment.
func Equal(p *plan.Plan) bool {
	s := &p.Split
	if s.NChannels == 1 {
		return true
	}
	return s.Lo == s.Mid && s.Mid == s.Hi && s.Mid.Count*int64(p.ElemSize())%Grain(p.Req.Proto) == 0
}

// EqualChunks reports whether all ops of a program's round, n of them, move
// equally many bytes from and to aligned addresses.
func EqualChunks(p *plan.Plan, pr *plan.Program, n int64) bool {
	return EqualSizes(p, pr, n) && AlignedOps(p, pr)
}

// EqualSizes reports whether all ops of a program's round move equally many bytes.
func EqualSizes(p *plan.Plan, pr *plan.Program, n int64) bool {
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

// AlignedOps reports whether all addresses of a program are those of whole packs,
// or lines.
func AlignedOps(p *plan.Plan, pr *plan.Program) bool {
	cur, n := p.Open(pr), units.Bytes(Grain(pr.Proto))
	var op plan.Op
	for cur.Next(&op) {
		if op.Src.Off%n != 0 || op.Dst.Off%n != 0 {
			return false
		}
	}
	return true
}

// Of is which part of the split a channel does: 0 Lo, 1 Mid, 2 Hi.
func Of(p *plan.Plan, k int) int {
	switch k {
	case 0:
		return 0
	case p.Split.NChannels - 1:
		return 2
	}
	return 1
}

// Kinds numbers the parts that differ in size.
func Kinds(p *plan.Plan) (of [3]int32, n int32) {
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

// Each reports whether something holds of a program of rank 0 for every part that
// differs in size, of those with a role that is asked for.
func Each(p *plan.Plan, asked func(*plan.Program) bool, holds func(*plan.Program) bool) bool {
	of, _ := Kinds(p)
	seen := [3]bool{}
	for _, pr := range p.Programs(0) {
		kind := of[Of(p, int(pr.Channel)-p.Split.ChannelLo)]
		if seen[kind] || !asked(&pr) {
			continue
		}
		if seen[kind] = true; !holds(&pr) {
			return false
		}
	}
	return seen[of[0]]
}

// Conns says which connections are those of one of a kernel's operations.
type Conns struct {
	Base   int32 // the first one's id
	Lo, Hi int32 // channels
	Per    int32 // ids of a rank on a channel
	At     int32 // place of the first among all that a rank has on a channel
}

// Members lists them, of a plan of one operation that alone, and says how many ids a rank has
// on a channel in all.
func Members(p *plan.Plan) (all []Conns, per int32) {
	one := func(p *plan.Plan, base int32) {
		m := Conns{base, int32(p.Split.ChannelLo), int32(p.Split.ChannelHi), p.ConnsPerRank(), per}
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

// Channels is the first and the last channel of several operations.
func Channels(members []Conns) (lo, hi int32) {
	lo, hi = members[0].Lo, members[0].Hi
	for i := range members {
		lo, hi = min(lo, members[i].Lo), max(hi, members[i].Hi)
	}
	return lo, hi
}
