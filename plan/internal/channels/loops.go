package channels

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// Loops views the parts of a division as iterations over chunks.
type Loops struct {
	split plan.Split
	part  [3]*plan.Part
	of    [3]int64 // number of channels with each part
	per   [3]int64 // elements of Count in an iteration
}

// LoopsOf returns the loops of a division of an operation over the given number of ranks.
func LoopsOf(s plan.Split, f coll.Func, ranks int) *Loops {
	l := &Loops{split: s}
	l.part = [3]*plan.Part{&l.split.Lo, &l.split.Mid, &l.split.Hi}
	l.of = [3]int64{int64(min(1, s.NChannels)), int64(max(0, s.NChannels-2)),
		int64(max(0, min(1, s.NChannels-1)))}
	for i, part := range l.part {
		l.per[i] = int64(part.LoopSize / max(1, s.ElemSize))
		if f == coll.AllGather || f == coll.ReduceScatter {
			l.per[i] /= int64(ranks)
		}
	}
	return l
}

// Iterations returns the number of whole iterations of the channel with the fewest; 0 if channels have
// different chunks.
func (l *Loops) Iterations() int64 {
	least := int64(-1)
	for i, part := range l.part {
		switch {
		case l.of[i] == 0:
			continue
		case l.per[i] < 1 || part.ChunkSize != l.part[0].ChunkSize:
			return 0
		}
		if n := part.Count / l.per[i]; least < 0 || n < least {
			least = n
		}
	}
	return max(0, least)
}

// Shorten returns the division with the given number of iterations on the channel with the fewest, and its
// bytes. With rest, other channels keep their additional and incomplete iterations.
func (l *Loops) Shorten(iterations int64, rest bool) (plan.Split, units.Bytes) {
	fewer, bytes := l.Iterations()-iterations, units.Bytes(0)
	for i, part := range l.part {
		if l.of[i] == 0 {
			continue
		}
		per := l.per[i]
		left := iterations * per
		if rest {
			left = part.Count - fewer*per
		}
		part.NSteps = int(int64(part.NSteps) / ((part.Count + per - 1) / per) * ((left + per - 1) / per))
		part.Count = left
		bytes += units.Bytes(l.of[i]*left) * l.split.ElemSize
	}
	return l.split, bytes
}
