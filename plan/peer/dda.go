package peer

import (
	"github.com/simccl/simccl/coll"
)

// RCCL's kernels (DDA), which read the memory of all GPUs of a node: of an AllReduce one-shot up to 256 KiB,
// two-shot above, on at most 24 blocks of 512 threads (dda_all_reduce_ipc.cu:157,
// include/ipc_init_detail.h:18 of RCCL 2.30.4).
const (
	DDAFlat   = "dda-flat"
	DDATree   = "dda-tree"
	DDAOther  = "dda" // AllGather, ReduceScatter and AllToAll
	ddaBlocks = 24
	ddaFlat   = 256 << 10
)

// DDA plans an operation of count elements (NCCL's meaning) by RCCL's kernels. Each rank's input is first
// copied to where others can read it: by the kernel itself, or by a copy before it where it is reduced in
// parts (dda_reduce_scatter_ipc.cu:57, dda_all_gather_ipc.cu, dda_alltoall_ipc.cu of RCCL 2.30.4). Errors: a
// *plan.UnsupportedError.
func DDA(f coll.Func, ranks int, count int64, typ coll.DataType, op coll.RedOp) (*Plan, error) {
	bytes := count * int64(typ.Size())
	if f == coll.AllReduce {
		if bytes <= ddaFlat {
			return AllReduce(DDAFlat, ranks, count, typ, op)
		}
		return AllReduce(DDATree, ranks, count, typ, op)
	}
	p := &Plan{Op: f.TestName(), Kernel: DDAOther, Ranks: ranks, Meet: true, Threads: threads,
		Blocks: int(min(ddaBlocks, max(1, (bytes/pack+threads-1)/threads)))}
	fill := Phase{Name: "copy", Apart: f == coll.ReduceScatter}
	read := Phase{Name: "read", Meet: true, Serial: f != coll.ReduceScatter}
	n := int32(ranks)
	own := func(r, part int32) { // of the rank's input
		p.Has = append(p.Has, Place{r, In, part})
		fill.Moves = append(fill.Moves, Move{By: r, Sources: []Place{{r, In, part}}, To: Place{r, Tmp, part}})
	}
	goal := func(r, part int32, from ...int32) {
		read.Moves = append(read.Moves, Move{By: r, Sources: sources(from, Tmp, part),
			To: Place{r, Out, part}})
		p.Goals = append(p.Goals, Goal{Place{r, Out, part}, from})
	}
	all := make([]int32, ranks)
	for r := range n {
		all[r] = r
	}
	for r := range n {
		switch f {
		case coll.AllGather:
			p.part(bytes)
			own(r, r)
			for s := range n {
				goal(r, s, s)
			}
		case coll.ReduceScatter:
			p.part(bytes)
			for part := range n {
				own(r, part)
			}
			goal(r, r, all...)
		default: // coll.AllToAll: part r*n+d goes from r to d
			for d := range n {
				p.part(bytes)
				own(r, r*n+d)
				goal(r, d*n+r, d)
			}
		}
	}
	p.Phases = []Phase{fill, read}
	return p, nil
}
