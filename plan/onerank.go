package plan

import (
	"fmt"

	"github.com/simccl/simccl/coll"
)

// OneRank is what NCCL launches for an operation of a communicator of one rank,
// which it does not schedule (taskAppend, enqueue.cc:2569).
type OneRank uint8

// One-rank operations. A collective out of place is a cudaMemcpyAsync, and in
// place nothing at all; alltoall, gather and scatter are collectives too, since
// NCCL 2.28 has calls of their own for them. What multiplies its input first
// (ncclDevPreMulSum: avg of a floating-point type, enqueue.cc:2250) runs a
// kernel of its own either way (device/onerank.cu). Sendrecv to itself is a
// kernel of send and receive, and in place nothing (enqueue.cc:1083).
const (
	NotOneRank OneRank = iota // two ranks and more
	NoLaunch
	DeviceCopy
	OneRankKernel
	SelfSend
)

// OneRank returns what a plan of one rank launches.
func (p *Plan) OneRank() OneRank {
	if p.Comm.NRanks > 1 || p.kind == listed {
		return NotOneRank
	}
	switch p.kind {
	case selfCopy:
		return DeviceCopy
	case selfKernel:
		return OneRankKernel
	case p2pKind:
		return SelfSend
	}
	return NoLaunch
}

// buildOneRank picks the kind of a plan of one rank.
func (p *Plan) buildOneRank() error {
	r := &p.Req
	switch {
	case r.Count == 0:
	case r.Func.Reduces() && r.Op == coll.Avg && r.Type.IsFloat():
		if r.Type == coll.Float8e4m3 || r.Type == coll.Float8e5m2 {
			return &UnsupportedError{fmt.Sprintf("%v of one rank with avg", r.Func),
				"NCCL has no kernel of one rank for 8-bit floating point (device/onerank.cu:66: the case needs __CUDA_ARCH__, which host code has not)"}
		}
		p.kind = selfKernel
	case r.InPlace:
	case r.Func == coll.SendRecv:
		return p.buildP2P()
	default:
		p.kind = selfCopy
	}
	return nil
}

// The kernel of one rank has a block for each 16 KiB, 32 at most, of 512 threads
// (onerank.cu:82).
const (
	oneRankGrain   = 16 << 10
	oneRankBlocks  = 32
	oneRankThreads = 512
)

// oneRankShare returns the bytes of one block: whole packs of 16 bytes, and the
// rest in the last block.
func (p *Plan) oneRankShare(block int32) (off, n int64) {
	bytes := p.Req.Count * int64(p.Req.Type.Size())
	blocks := p.oneRankBlocks()
	each := alignUp(bytes/int64(blocks), 16)
	off = min(int64(block)*each, bytes)
	if block == blocks-1 {
		return off, bytes - off
	}
	return off, min(each, bytes-off)
}

func (p *Plan) oneRankBlocks() int32 {
	return int32(min(oneRankBlocks, divUp(p.Req.Count*int64(p.Req.Type.Size()), oneRankGrain)))
}

// oneRankPrograms lists the copy, or the kernel's blocks as channels.
func (p *Plan) oneRankPrograms(dst []Program) []Program {
	pr := Program{Role: RoleCopy, Proto: coll.Simple, Threads: oneRankThreads, Workers: oneRankThreads, Slices: 1, SliceSteps: 1}
	if p.kind == selfCopy {
		return append(dst, pr)
	}
	for b := range p.oneRankBlocks() {
		pr.Channel = b
		dst = append(dst, pr)
	}
	return dst
}

func (c *Cursor) openOneRank() {
	c.next = (*Cursor).nextOneRank
	c.total = c.p.Req.Count * int64(c.p.Req.Type.Size())
	if c.p.kind == selfKernel {
		c.grid, c.total = c.p.oneRankShare(c.pr.Channel)
	}
}

func (c *Cursor) nextOneRank(op *Op) bool {
	if c.seq > 0 {
		return false
	}
	c.emit(op, Copy, c.total)
	op.Src, op.Dst, op.Chunk = input(c.grid), output(c.grid), 0
	return true
}
