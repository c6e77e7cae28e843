package channels

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
)

// evenBytes gives every channel that the cost model allows the same number of bytes, a multiple of
// ThreadGrain, and the last channel the rest; chunk sizes follow from the whole operation (enqueue.cc:432,
// 1722 of v2.21.5).
func evenBytes(c *connect.Layout, r *plan.Request, rule Rule) (plan.Split, error) {
	count, es := r.Elements()
	elem := int64(es)
	n := int64(max(min(r.Channels, rule.Channels), 1))
	if err := holdsChunk(c, r.Proto); err != nil {
		return plan.Split{}, err
	}
	share := AlignUp(DivUp(count*elem, n), 16)
	each := min(count, AlignUp(DivUp(share, elem), max(ThreadGrain(r)/elem, 1)))
	copies := int64(1)
	if r.Func == coll.AllGather || r.Func == coll.ReduceScatter {
		copies = int64(c.NRanks)
	}
	sized := func(own int64) plan.Part {
		p := rule.part(c, r.Proto, own, count*elem*copies/n)
		loops := DivUp(own*elem*copies, max(int64(p.LoopSize), 1))
		p.NSteps = int(int32(rule.StepsPerLoop * loops * int64(rule.ChunkSteps)))
		return p
	}
	s := plan.Split{ElemSize: es, NChannels: int(DivUp(count, each)), Lo: sized(each)}
	s.ChannelHi = s.NChannels - 1
	if s.NChannels > 2 {
		s.Mid = s.Lo
	}
	if s.NChannels > 1 {
		s.Hi = sized(count - each*int64(s.NChannels-1))
	}
	return s, nil
}

// ThreadGrain returns the bytes that the threads of a channel move at a time (enqueue.h:15 of v2.21.5).
func ThreadGrain(r *plan.Request) int64 {
	switch r.Proto {
	case coll.LL:
		return 8 * int64(r.Warps) * plan.WarpSize
	case coll.LL128:
		return 480 * int64(r.Warps)
	}
	return plan.WarpSize * 8 * 16
}
