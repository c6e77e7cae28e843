package symk

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan/sym"
	"github.com/simccl/simccl/sim/gpu"
)

// pass is a loop of a block and how often it goes round.
type pass struct {
	times int64
	gpu.SymLoop
}

const warps = sym.Threads / 32

// shape is what the loops of a kernel depend on beside the part of a block.
type shape struct {
	kernel sym.Kernel
	ranks  int
	// element is 0, or of a kernel that moves single elements how many bytes one has.
	element int64
}

// passes lists the loops of a block for a part of a work, in order.
func (s *shape) passes(t sym.Task, p sym.Part) []pass {
	if s.kernel.How() == sym.Multicast {
		return s.multicast(t, p)
	}
	return s.unicast(t, p)
}

// spread is over how many warps a part is dealt out: those of the blocks that share
// it, for AllReduce those of all ranks.
func (s *shape) spread(p sym.Part) int64 {
	n := int64(p.Blocks) * warps
	if s.kernel.Func() == coll.AllReduce {
		n *= int64(s.ranks)
	}
	return n
}

// align is the widest access in bytes, of 16, 4 and that of an element, by which both
// what a rank loads and what it stores can be cut: the rank's part begins at its number
// times the task's bytes, and the worst rank holds up all.
func (s *shape) align(t sym.Task) int64 {
	if s.kernel.Func() == coll.AllReduce {
		return 16
	}
	switch bytes := t.Count * int64(t.Type.Size()); {
	case bytes%16 == 0:
		return 16
	case bytes%4 == 0:
		return 4
	}
	return 1
}

// unicast: packs of 16 bytes, then of 4, four a thread, from two or four peers at a
// time, as many as all blocks have equally often; then single elements
// (device/symmetric/all_reduce.cuh:186-245, reduce_scatter.cuh:157-210,
// all_gather.cuh:121-160).
func (s *shape) unicast(t sym.Task, p sym.Part) []pass {
	size, align := int64(t.Type.Size()), s.align(t)
	if s.element > 0 {
		size, align = s.element, 0
	}
	left, n := p.Elements*size, s.spread(p)
	turn := int64(p.Blocks)
	if s.kernel.Func() != coll.AllGather {
		turn *= int64(s.ranks)
	}
	var out []pass
	for _, w := range []struct {
		pack  int64
		peers int
	}{{16, 2}, {4, 4}} {
		if align < w.pack || w.pack == 4 && size > 4 {
			continue
		}
		unit := 4 * 32 * w.pack // of a warp; blocks take four at a time
		chunks := left / (4 * unit)
		if chunks -= chunks % turn; chunks > 0 {
			out = append(out, s.loop(t, 4*chunks, n, gpu.SymLoop{Packs: 4, Pack: int(w.pack), Own: true,
				Rounds: s.rounds(w.peers)}))
			left -= chunks * 4 * unit
		}
	}
	if rest := left / size; rest > 0 {
		l := gpu.SymLoop{Packs: 1, Pack: int(size), Rounds: groups(s.ranks-1, 8)}
		if !s.reduces() {
			l.Own, l.Rounds = true, nil
		}
		out = append(out, s.loop(t, (rest+31)/32, n, l))
	}
	return out
}

func (s *shape) reduces() bool { return s.kernel.Func() != coll.AllGather }

// rounds are the loads from peers in a pass: one alone, the others some at a time.
func (s *shape) rounds(peers int) []int {
	if !s.reduces() {
		return nil
	}
	return append([]int{1}, groups(s.ranks-2, peers)...)
}

func groups(n, of int) (out []int) {
	for ; n > 0; n -= of {
		out = append(out, min(n, of))
	}
	return out
}

// loop is a loop over units that are dealt out to n warps.
func (s *shape) loop(t sym.Task, units, n int64, l gpu.SymLoop) pass {
	l.Active = min(1, float64(units)/float64(n))
	switch s.kernel.Func() {
	case coll.ReduceScatter:
		l.Stores = 1
	case coll.AllGather:
		if l.Stores = s.ranks; t.InPlace {
			l.Stores--
		}
	default:
		l.Stores = s.ranks
	}
	if s.kernel.How() == sym.Multicast {
		l.Stores = 1
	}
	return pass{(units + n - 1) / n, l}
}

// multicast: 128 bytes a thread, then single elements; the switch reduces what is
// loaded and copies what is stored (all_reduce.cuh:290-330, reduce_scatter.cuh:243,
// all_gather.cuh:191).
func (s *shape) multicast(t sym.Task, p sym.Part) []pass {
	size, n := int64(t.Type.Size()), s.spread(p)
	if s.element > 0 {
		size = s.element
	}
	l := gpu.SymLoop{Packs: 8, Pack: 16, Own: true}
	if s.reduces() {
		l.Own, l.Rounds, l.Reduced = false, []int{1}, true
	}
	left := p.Elements * size
	var out []pass
	if unit := int64(8 * 32 * 16); s.element == 0 && s.align(t) == 16 && left >= unit {
		out = append(out, s.loop(t, left/unit, n, l))
		left %= unit
	}
	if rest := left / size; rest > 0 {
		l.Packs, l.Pack = 1, int(size)
		out = append(out, s.loop(t, (rest+31)/32, n, l))
	}
	return out
}
