package plan

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

// OneRankGenerator is a Generator of plans of one rank.
type OneRankGenerator interface {
	Generator
	// OneRank returns what NCCL launches.
	OneRank() OneRank
}

// OneRank returns what a plan of one rank launches.
func (p *Plan) OneRank() OneRank { return p.one }
