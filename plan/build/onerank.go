package build

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
)

// noOps generates nothing: there is nothing to do.
type noOps struct{}

func (noOps) AppendPrograms(dst []plan.Program, _ int32) []plan.Program { return dst }
func (noOps) Open(*plan.Program, plan.Stream) plan.Stream               { return nil }
func (noOps) NumOps(*plan.Program) int64                                { return 0 }
func (noOps) Fanout(*plan.Program) int32                                { return 1 }
func (noOps) NumConns() int64                                           { return 0 }
func (noOps) ConnsPerRank() int32                                       { return 0 }
func (noOps) Conn(*plan.Conn)                                           {}
func (noOps) NetGroups() []plan.NetGroup                                { return nil }

// oneRank is a generator for a communicator of one rank, with what NCCL launches
// there.
type oneRank struct {
	plan.Generator
	launches plan.OneRank
}

// OneRank implements plan.OneRankGenerator.
func (g oneRank) OneRank() plan.OneRank { return g.launches }

// newOneRank picks what NCCL launches for one rank.
func newOneRank(b base) (plan.Generator, error) {
	r := &b.req
	bytes := r.Count * int64(r.Type.Size())
	switch {
	case r.Count == 0:
	case averages(r) && r.Type.IsFloat():
		if r.Type == coll.Float8e4m3 || r.Type == coll.Float8e5m2 {
			return nil, &plan.UnsupportedError{What: fmt.Sprintf("%v of one rank with avg", r.Func),
				Why: "NCCL has no kernel of one rank for 8-bit floating point (device/onerank.cu:66: the case needs __CUDA_ARCH__, which host code has not)"}
		}
		return oneRank{selfKernel{bytes: bytes}, plan.OneRankKernel}, nil
	case r.InPlace:
	case r.Func == coll.SendRecv:
		g, err := newP2P(b)
		return oneRank{g, plan.SelfSend}, err
	default:
		return oneRank{selfCopy{bytes: bytes}, plan.DeviceCopy}, nil
	}
	return oneRank{noOps{}, plan.NoLaunch}, nil
}

// The kernel of one rank has a block for each 16 KiB, 32 at most, of 512 threads
// (onerank.cu:82).
const (
	oneRankGrain   = 16 << 10
	oneRankBlocks  = 32
	oneRankThreads = 512
)

// oneRankProgram is the copy, or one block of the kernel.
func oneRankProgram(rank int32) plan.Program {
	return plan.Program{Rank: rank, Role: plan.RoleCopy, Proto: coll.Simple, Threads: oneRankThreads, Workers: oneRankThreads, Slices: 1, SliceSteps: 1}
}

// selfCopy copies the input of the only rank.
type selfCopy struct {
	noOps
	bytes int64
}

func (g selfCopy) AppendPrograms(dst []plan.Program, rank int32) []plan.Program {
	return append(dst, oneRankProgram(rank))
}

func (g selfCopy) NumOps(*plan.Program) int64 { return 1 }

func (g selfCopy) Open(pr *plan.Program, old plan.Stream) plan.Stream {
	return openCopy(pr, old, 0, g.bytes)
}

// selfKernel scales the input of the only rank, with a channel for
// each block of the kernel.
type selfKernel struct {
	noOps
	bytes int64
}

func (g selfKernel) blocks() int32 { return int32(min(oneRankBlocks, divUp(g.bytes, oneRankGrain))) }

// share returns the bytes of one block: whole packs of 16 bytes, and the rest in
// the last block.
func (g selfKernel) share(block int32) (off, n int64) {
	blocks := g.blocks()
	each := alignUp(g.bytes/int64(blocks), 16)
	off = min(int64(block)*each, g.bytes)
	if block == blocks-1 {
		return off, g.bytes - off
	}
	return off, min(each, g.bytes-off)
}

func (g selfKernel) AppendPrograms(dst []plan.Program, rank int32) []plan.Program {
	for b := range g.blocks() {
		pr := oneRankProgram(rank)
		pr.Channel = b
		dst = append(dst, pr)
	}
	return dst
}

func (g selfKernel) NumOps(*plan.Program) int64 { return 1 }

func (g selfKernel) Open(pr *plan.Program, old plan.Stream) plan.Stream {
	off, n := g.share(pr.Channel)
	return openCopy(pr, old, off, n)
}

// copyStream copies bytes of the input to the same place of the output.
type copyStream struct {
	stream
	off, bytes int64
}

func openCopy(pr *plan.Program, old plan.Stream, off, bytes int64) plan.Stream {
	s := reuse[copyStream](old)
	s.open(pr)
	s.off, s.bytes = off, bytes
	return s
}

func (s *copyStream) Next(op *plan.Op) bool {
	if s.seq > 0 {
		return false
	}
	s.emit(op, plan.Copy, s.bytes)
	op.Src, op.Dst, op.Chunk = input(s.off), output(s.off), 0
	return true
}
