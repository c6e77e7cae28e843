package build

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// noOps generates no programs: the operation is empty.
type noOps struct{}

// AppendPrograms implements plan.Generator.
func (noOps) AppendPrograms(dst []plan.Program, _ int32) []plan.Program { return dst }

// Open implements plan.Generator.
func (noOps) Open(*plan.Program, plan.Stream) plan.Stream { return nil }

// NumOps implements plan.Generator.
func (noOps) NumOps(*plan.Program) int64 { return 0 }

// Fanout implements plan.Generator.
func (noOps) Fanout(*plan.Program) int32 { return 1 }

// NumConns implements plan.Generator.
func (noOps) NumConns() int64 { return 0 }

// ConnsPerRank implements plan.Generator.
func (noOps) ConnsPerRank() int32 { return 0 }

// Conn implements plan.Generator.
func (noOps) Conn(*plan.Conn) {}

// NetGroups implements plan.Generator.
func (noOps) NetGroups() []plan.NetGroup { return nil }

// The one-rank kernel has a block of 512 threads for each 16 KiB, at most 32 blocks (onerank.cu:82).
const (
	oneRankGrain   = 16 << 10
	oneRankBlocks  = 32
	oneRankThreads = 512
)

// oneRankProgram returns the program of the copy, or of one block of the kernel.
func oneRankProgram(rank int32) plan.Program {
	return plan.Program{Rank: rank, Role: plan.RoleCopy, Proto: coll.Simple, Threads: oneRankThreads,
		Workers: oneRankThreads, Slices: 1, SliceSteps: 1}
}

// oneRankCopy copies the input of the only rank to its output.
type oneRankCopy struct {
	noOps
	Bytes int64
}

// AppendPrograms implements plan.Generator.
func (g oneRankCopy) AppendPrograms(dst []plan.Program, rank int32) []plan.Program {
	return append(dst, oneRankProgram(rank))
}

// NumOps implements plan.Generator.
func (g oneRankCopy) NumOps(*plan.Program) int64 { return 1 }

// Open implements plan.Generator.
func (g oneRankCopy) Open(pr *plan.Program, old plan.Stream) plan.Stream {
	return openCopy(pr, old, 0, g.Bytes)
}

// oneRankKernel scales the input of the only rank; each block of the kernel is a channel.
type oneRankKernel struct {
	noOps
	Bytes int64
}

func (g oneRankKernel) blocks() int32 {
	return int32(min(oneRankBlocks, (g.Bytes+oneRankGrain-1)/oneRankGrain))
}

// share returns the range of one block: whole packs of 16 bytes, with the rest in the last block.
func (g oneRankKernel) share(block int32) (off, n int64) {
	blocks := g.blocks()
	each := (g.Bytes/int64(blocks) + 15) / 16 * 16
	off = min(int64(block)*each, g.Bytes)
	if block == blocks-1 {
		return off, g.Bytes - off
	}
	return off, min(each, g.Bytes-off)
}

// AppendPrograms implements plan.Generator.
func (g oneRankKernel) AppendPrograms(dst []plan.Program, rank int32) []plan.Program {
	for b := range g.blocks() {
		pr := oneRankProgram(rank)
		pr.Channel = b
		dst = append(dst, pr)
	}
	return dst
}

// NumOps implements plan.Generator.
func (g oneRankKernel) NumOps(*plan.Program) int64 { return 1 }

// Open implements plan.Generator.
func (g oneRankKernel) Open(pr *plan.Program, old plan.Stream) plan.Stream {
	off, n := g.share(pr.Channel)
	return openCopy(pr, old, off, n)
}

// copyStream copies bytes of the input to the same offset of the output, in one op.
type copyStream struct {
	rank, channel, group int32
	off, bytes           int64
	done                 bool
}

func openCopy(pr *plan.Program, old plan.Stream, off, bytes int64) plan.Stream {
	s, ok := old.(*copyStream)
	if !ok {
		s = new(copyStream)
	}
	*s = copyStream{rank: pr.Rank, channel: pr.Channel, group: pr.Group, off: off, bytes: bytes}
	return s
}

// Next makes the op.
func (s *copyStream) Next(op *plan.Op) bool {
	if s.done {
		return false
	}
	s.done = true
	at := units.Bytes(s.off)
	*op = plan.Op{Rank: s.rank, Channel: s.channel, Group: s.group, Do: plan.Copy,
		Bytes: units.Bytes(max(s.bytes, 0)),
		Src:   plan.Ref{Buf: plan.Input, Off: at}, Dst: plan.Ref{Buf: plan.Output, Off: at}}
	return true
}
