package plan

// OneRank is the action that NCCL launches for an operation of a communicator of one rank, which it does not
// schedule (taskAppend, enqueue.cc:2569).
type OneRank uint8

// One-rank operations. A collective out of place is a cudaMemcpyAsync, in place nothing; alltoall, gather and
// scatter are collectives too, since NCCL 2.28 has calls for them. An operation that multiplies its input
// first (ncclDevPreMulSum: avg of a floating-point type, enqueue.cc:2250) launches a kernel in both cases
// (device/onerank.cu). Sendrecv to itself launches a kernel of send and receive, and in place nothing
// (enqueue.cc:1083).
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
	// OneRank returns the action that NCCL launches.
	OneRank() OneRank
}

// OneRank returns the action of a plan for one rank; NotOneRank for other plans.
func (p *Plan) OneRank() OneRank { return p.one }
