package peer

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
)

// Kernels of all_reduce that use multicast memory, which NVLink switches reduce and copy (NVLink SHARP), by
// PyTorch's symmetric memory (torch.ops.symm_mem).
const (
	// Multimem sums up a part by one load that the switch reduces, and gives it to all by one store that the
	// switch copies, in place (multimem_all_reduce_).
	Multimem = "multimem"
	// MultimemCopy is Multimem between copies into symmetric memory and out of it, as vLLM calls it
	// (device_communicators/symm_mem.py).
	MultimemCopy = "multimem-copy"
	// MultimemOneShot loads the sum of everything (multimem_one_shot_all_reduce).
	MultimemOneShot = "multimem-one-shot"
)

// Blocks and threads of PyTorch's kernels (CUDASymmetricMemoryOps.cu: init_elementwise_launch_config).
const (
	multimemBlocks  = 8
	multimemThreads = 1024
)

func ofMulticast(kernel string) bool {
	return kernel == Multimem || kernel == MultimemCopy || kernel == MultimemOneShot
}

// multimem plans an all_reduce of bytes by a kernel that reduces and stores in the NVSwitch (multimem
// instructions), or says why that kernel does not do it.
func multimem(kernel string, ranks int, bytes int64, typ coll.DataType, op coll.RedOp) (*Plan, error) {
	no := func(why string) (*Plan, error) {
		return nil, &plan.UnsupportedError{What: "all_reduce by kernel " + kernel, Why: why}
	}
	switch {
	case ranks < 2:
		return no("it needs two ranks or more")
	case op != coll.Sum:
		return no("the kernels add up; other reductions are NCCL's")
	case typ != coll.Float32 && typ != coll.BFloat16:
		return no("the kernels know float and bfloat16")
	case bytes%pack != 0:
		return no("loads of 16 bytes are simulated; write a multiple of 16 bytes")
	}
	all := make([]int32, ranks)
	for r := range all {
		all[r] = int32(r)
	}
	parts := int64(ranks)
	if kernel == MultimemOneShot {
		parts = 1
	}
	each := (bytes/pack + parts - 1) / parts * pack
	p := &Plan{Op: "all_reduce", Kernel: kernel, Ranks: ranks, Meet: true, Threads: multimemThreads,
		Blocks: int(min(multimemBlocks, max(1, (each/pack+multimemThreads-1)/multimemThreads)))}
	for at := int64(0); at < bytes; at += each { // the last ranks may have none
		p.part(min(each, bytes-at))
	}
	p.begin(all)
	reduce := Phase{Name: "reduce", Meet: true}
	for i := range p.Parts {
		part := int32(i)
		if kernel == MultimemOneShot {
			for _, r := range all {
				reduce.Moves = append(reduce.Moves, Move{By: r, Way: Multicast, To: Place{r, Out, part},
					Sources: sources(all, In, part)})
			}
			continue
		}
		to := sources(all, Out, part)
		reduce.Moves = append(reduce.Moves, Move{By: part, Way: Multicast, Sources: sources(all, In, part),
			To: to[0], Also: to[1:]})
	}
	p.Phases = []Phase{reduce}
	if kernel == MultimemCopy {
		p.between()
	}
	return p, nil
}

// between puts the only phase between a copy from In to Scratch and one from Tmp to Out, by all ranks.
func (p *Plan) between() {
	in, out := Phase{Name: "copy in", Apart: true}, Phase{Name: "copy out", Apart: true}
	for _, at := range p.Has {
		in.Moves = append(in.Moves, Move{By: at.Rank, Sources: []Place{at},
			To: Place{at.Rank, Scratch, at.Part}})
		out.Moves = append(out.Moves, Move{By: at.Rank, Sources: []Place{{at.Rank, Tmp, at.Part}},
			To: Place{at.Rank, Out, at.Part}})
	}
	for i := range p.Phases[0].Moves {
		m := &p.Phases[0].Moves[i]
		m.To.Buffer = Tmp
		for k := range m.Sources {
			m.Sources[k].Buffer = Scratch
		}
		for k := range m.Also {
			m.Also[k].Buffer = Tmp
		}
	}
	p.Phases = []Phase{in, p.Phases[0], out}
}
