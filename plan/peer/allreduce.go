package peer

import (
	"errors"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
)

// Kernels of all_reduce that access the memory of peers.
const (
	OneShot     = "one-shot"
	OneShotPush = "one-shot-push"
	// OneShotPushNorm is OneShotPush with the RMS norm that follows, and the residual, in the same kernel
	// (allreduce_fusion of TensorRT-LLM and FlashInfer).
	OneShotPushNorm = "one-shot-push-norm"
	TwoShot         = "two-shot"
	// VLLM represents the choice of vLLM and SGLang among one-shot, two-shot and NCCL.
	VLLM = "vllm"
)

// AllReduceKernels lists all of them, as run --kernel has them.
func AllReduceKernels() []string {
	return []string{OneShot, OneShotPush, OneShotPushNorm, TwoShot, Multimem, MultimemCopy, MultimemOneShot,
		VLLM}
}

// Limits of the kernels: vLLM's csrc/custom_all_reduce.cuh (defaultBlockLimit, threads), which
// SGLang's sgl-kernel shares.
const (
	mostBlocks = 36
	threads    = 512
	pack       = 16 // bytes of one load of a thread
	// MostRanks is the number of ranks that the kernels are compiled for.
	MostRanks = 8
)

// AllReduce plans an all_reduce of count elements by a kernel that accesses the memory of peers. One-shot:
// every rank loads all ranks' buffers and sums them. Push: every rank stores its buffer, with flags, to all
// ranks and sums the buffers it received. Two-shot: each rank sums its own part, then loads the parts of the
// others. Errors: a *plan.UnsupportedError.
func AllReduce(kernel string, ranks int, count int64, typ coll.DataType, op coll.RedOp) (*Plan, error) {
	no := func(why string) (*Plan, error) {
		return nil, &plan.UnsupportedError{What: "all_reduce by kernel " + kernel, Why: why}
	}
	bytes := count * int64(typ.Size())
	if ofMulticast(kernel) {
		return multimem(kernel, ranks, bytes, typ, op)
	}
	switch {
	case ranks < 2 || ranks > MostRanks || ranks%2 != 0:
		return no("the kernels are compiled for 2, 4, 6 and 8 ranks")
	case op != coll.Sum:
		return no("the kernels add up; other reductions are NCCL's")
	case typ != coll.Float32 && typ != coll.Float16 && typ != coll.BFloat16:
		return no("the kernels know float, half and bfloat16")
	case bytes%pack != 0:
		return no("the kernels take multiples of 16 bytes; frameworks give others to NCCL")
	}
	packs, most := bytes/pack, int64(mostBlocks)
	if kernel == DDAFlat || kernel == DDATree {
		most = ddaBlocks
	}
	blocks := min(most, (packs+threads-1)/threads)
	p := &Plan{Op: "all_reduce", Kernel: kernel, Ranks: ranks, Meet: true, Blocks: int(blocks),
		Threads: threads}
	all := make([]int32, ranks)
	for r := range all {
		all[r] = int32(r)
	}
	if kernel == OneShotPush || kernel == OneShotPushNorm {
		p.push(bytes, all)
		return p, nil
	}
	if kernel == OneShot || kernel == DDAFlat {
		p.part(bytes)
		p.begin(all)
		p.Phases = []Phase{{Name: "reduce", Meet: true, Moves: p.gather(all)}}
		return p.ofScratch(kernel), nil
	}
	part := packs / int64(ranks) * pack // the last rank has the remainder
	for r := range ranks {
		if r == ranks-1 {
			part = bytes - int64(r)*part
		}
		p.part(part)
	}
	p.begin(all)
	reduce := Phase{Name: "reduce-scatter", Meet: true}
	gather := Phase{Name: "all-gather", Meet: true, Serial: true}
	for _, r := range all {
		reduce.Moves = append(reduce.Moves, Move{By: r, Sources: sources(all, In, r), To: Place{r, Tmp, r}})
		for _, s := range all {
			gather.Moves = append(gather.Moves, Move{By: r, Sources: []Place{{s, Tmp, s}},
				To: Place{r, Out, s}})
		}
	}
	p.Phases = []Phase{reduce, gather}
	return p.ofScratch(kernel), nil
}

// ofScratch adds the copy of each rank's input to where others read it, which RCCL's kernels need: by
// themselves or, of the two-shot, before them (all_reduce_dda.h, dda_all_reduce_ipc.cu:82 of RCCL 2.30.4).
func (p *Plan) ofScratch(kernel string) *Plan {
	if kernel != DDAFlat && kernel != DDATree {
		return p
	}
	fill := Phase{Name: "copy", Apart: kernel == DDATree}
	for _, at := range p.Has {
		fill.Moves = append(fill.Moves, Move{By: at.Rank, Sources: []Place{at},
			To: Place{at.Rank, Scratch, at.Part}})
	}
	for i := range p.Phases[0].Moves {
		for k := range p.Phases[0].Moves[i].Sources {
			p.Phases[0].Moves[i].Sources[k].Buffer = Scratch
		}
	}
	p.Phases = append([]Phase{fill}, p.Phases...)
	return p
}

// part adds a part of the given bytes.
func (p *Plan) part(bytes int64) { p.Parts = append(p.Parts, Part{Bytes: bytes, Items: 1, Of: -1}) }

// begin places all parts in every rank's input, and requires their sum in every rank's output.
func (p *Plan) begin(all []int32) {
	for _, r := range all {
		for i := range p.Parts {
			p.Has = append(p.Has, Place{r, In, int32(i)})
			p.Goals = append(p.Goals, Goal{Place{r, Out, int32(i)}, slices.Clone(all)})
		}
	}
}

// push adds the phases of the push kernel: each rank stores its buffer to all, then sums the buffers it
// received, and takes their norm.
func (p *Plan) push(bytes int64, all []int32) {
	p.Meet = false
	store, sum := Phase{Name: "push"}, Phase{Name: "sum"}
	for range len(all) + 1 { // a part for each rank's buffer, and one for their sum
		p.part(bytes)
	}
	for _, d := range all {
		var of []Place
		for _, s := range all {
			store.Moves = append(store.Moves, Move{By: s, Way: Store, Sources: []Place{{s, In, s}},
				To: Place{d, Tmp, s}})
			of = append(of, Place{d, Tmp, s})
		}
		to := Place{d, Out, int32(len(all))}
		sum.Moves = append(sum.Moves, Move{By: d, Sources: of, To: to})
		p.Has = append(p.Has, Place{d, In, d})
		p.Goals = append(p.Goals, Goal{to, slices.Clone(all)})
	}
	p.Phases = []Phase{store, sum}
	if p.Kernel != OneShotPushNorm {
		return
	}
	norm := Phase{Name: "norm"}
	for i := range sum.Moves {
		m := &sum.Moves[i]
		to := m.To
		m.To.Buffer = Scratch
		norm.Moves = append(norm.Moves, Move{By: m.By, Sources: []Place{m.To}, To: to})
	}
	p.Phases = append(p.Phases, norm)
	p.Assumed = []string{"the norm takes one more load of each thread, of the residual: an estimate"}
}

// gather returns the moves by which each rank sums all ranks' inputs.
func (p *Plan) gather(all []int32) (out []Move) {
	for _, r := range all {
		for i := range p.Parts {
			out = append(out, Move{By: r, Sources: sources(all, In, int32(i)), To: Place{r, Out, int32(i)}})
		}
	}
	return out
}

func sources(ranks []int32, b Buffer, part int32) (out []Place) {
	for _, r := range ranks {
		out = append(out, Place{r, b, part})
	}
	return out
}

// Reach is how ranks reach each other's memory: at all, over NVLink only, by multicast memory.
type Reach struct{ Peers, NVLink, Multicast bool }

// Chosen plans an all_reduce by a kernel. It returns nil if VLLM leaves the operation to NCCL. Errors: a
// *plan.UnsupportedError.
func Chosen(kernel string, ranks int, count int64, typ coll.DataType, op coll.RedOp, by Reach) (*Plan,
	error) {
	if kernel == VLLM {
		if !by.Peers || count*int64(typ.Size()) >= 8<<20 || ranks > 2 && !by.NVLink {
			return nil, nil
		}
		p, err := AllReduce(vllm(ranks, count*int64(typ.Size())), ranks, count, typ, op)
		var no *plan.UnsupportedError
		if errors.As(err, &no) {
			return nil, nil
		}
		return p, err
	}
	no := func(why string) (*Plan, error) {
		return nil, &plan.UnsupportedError{What: "all_reduce by kernel " + kernel, Why: why}
	}
	switch {
	case !by.Peers:
		return no("its threads reach the memory of all peers, within one node or NVLink domain")
	case ofMulticast(kernel) && !by.Multicast:
		return no("it needs multicast memory, which NVLink switches of Hopper and later have (NVLink SHARP)")
	}
	return AllReduce(kernel, ranks, count, typ, op)
}

// vllm returns the kernel that vLLM and SGLang choose for the given bytes, below 8 MiB and, for more than two
// ranks, over NVLink only: one-shot between two ranks or for small sizes, else two-shot (vLLM
// csrc/custom_all_reduce.cuh, device_communicators/custom_all_reduce.py).
func vllm(ranks int, bytes int64) string {
	if ranks == 2 || ranks <= 4 && bytes < 512<<10 || bytes < 256<<10 {
		return OneShot
	}
	return TwoShot
}
