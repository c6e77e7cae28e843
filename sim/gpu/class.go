package gpu

import (
	"github.com/simccl/simccl/coll"
)

// Class holds the physical quantities of one class of machine. Times are
// microseconds, rates GB/s (10⁹ bytes per second), sizes bytes.
type Class struct {
	Name string
	// Base is the class of Named that parameters come from where a file leaves
	// them out; empty where it names all.
	Base string
	// Network is the network class whose quantities replace the class's own; empty: none.
	Network string
	// Machine is what the numbers were taken on, or are thought to hold for.
	Machine string
	// Source is the weakest of what the numbers rest on.
	Source Source
	// Uncertainty is the relative uncertainty of a predicted time, 0.05 for 5 %.
	Uncertainty float64
	// Origins says of every parameter, by its Quantity's name, where it is from.
	// It is not written to.
	Origins map[string]Origin
	// Regimes are how well the class predicted what no fit saw, as far as that is known.
	Regimes []Regime
	// Between are the regimes of the network class whose quantities it has.
	Between []Regime

	// KernelGap, by protocol, is what a kernel costs in addition to its transfers when
	// launches follow each other without a pause: gap, prologue, epilogue.
	KernelGap [coll.NumProtocols]float64
	// ReduceGap comes on top in kernels that reduce, ThreadGap for each 512
	// threads of a block.
	ReduceGap, ThreadGap [coll.NumProtocols]float64
	// BlockGap comes on top for each thread block of the kernel but the first, CopyGap
	// in kernels that only copy (all_gather, broadcast).
	BlockGap float64
	CopyGap  [coll.NumProtocols]float64
	// P2PGap is the gap of the kernel of sends and receives.
	P2PGap float64
	// HostLaunch is the host's cost of one asynchronous launch; it is the floor
	// of an eager operation, one process driving one GPU.
	HostLaunch float64
	// HostShared is its cost for each GPU where one thread launches for several.
	HostShared float64
	// HostWait is from the end of an operation until a host that waits for it has seen
	// it, HostBarrier what it takes the host's threads to meet then.
	HostWait, HostBarrier float64
	// Flag is the time from a store to a peer's memory until a poll sees it.
	Flag float64
	// LinkEff is the payload share of the bandwidth that NCCL ascribes to a
	// GPU link (20.6 GB/s an NVLink of sm_90).
	LinkEff float64
	// MulticastEff is the fraction of LinkEff that multimem traffic achieves, which the
	// switch reduces on loads and copies on stores: requests and answers cross the same links.
	MulticastEff float64
	// PCIEff is the same for NCCL's figure of a PCIe link.
	PCIEff float64
	// RootEff is the fraction of PCIEff for a NIC that reads or writes GPU memory
	// through a CPU's root complex.
	RootEff float64
	// CPURate is the payload rate of a link between CPUs; 0: what NCCL ascribes to it.
	CPURate float64
	// HostHop is what a flag takes longer through host memory than through a
	// peer's, and HostRate the rate at which one GPU's kernels store to host
	// memory, and load from it (shared-memory transport).
	HostHop, HostRate float64
	// HostCache is how many bytes in flight through host memory the CPU's
	// cache holds; HostMemory takes HostRate's place where there are more.
	HostCache, HostMemory float64
	// Crowd is the share of a link between GPU and switch that is lost where the
	// stores of ever more pairs of GPUs meet on it: (1−1/k) of it with k pairs,
	// the chance that two packets in a row are of different ones.
	Crowd float64
	// LinkShare, by protocol, is the share of a link's payload that is data
	// (LL sends a flag with every 4 bytes, LL128 8 bytes in 128).
	LinkShare [coll.NumProtocols]float64

	Simple SimpleCost
	LL     LLCost
	LL128  LL128Cost
	Memory MemoryCost
	One    OneRankCost
	Sym    SymCost
	Copy   CopyCost
	Peer   PeerCost
	Works  WorksCost
	Share  SharingCost
	Jitter JitterCost
	Net    NIC
}

// WorksCost is what a kernel of several operations costs between them, on a channel.
type WorksCost struct {
	// Batch is the time to load a further batch of works and enter its function.
	Batch float64
	// Work is the time from a work to the next of the same batch.
	Work float64
	// GraphLaunch is the host's time for each kernel of a CUDA graph that it launches on
	// a GPU, where one thread launches on one GPU after the other.
	GraphLaunch float64
}

// SimpleCost is the Simple protocol's copy loop.
type SimpleCost struct {
	// PerByte is the time of one thread of 512 for one byte and one unit of
	// operand weight; a pass weighs 1 + Load for each operand loaded + Store
	// for each store to a peer + Local for a store to the GPU's own memory.
	PerByte, Load, Store, Local float64
	// Host comes on top of Load where the operand is in host memory.
	Host float64
	// Own takes Store's place where a NIC reads from the GPU's own memory: no
	// link is crossed and the data stays in L2.
	Own float64
	// Direct takes Store's place where the peer's memory is a registered user buffer; a
	// store to the GPU's own memory beside it takes no time of its own.
	Direct float64
	// Extreme8 is the weight of a min or max of two elements of 8 bits one by one, on
	// top of their accesses.
	Extreme8 float64
	// Sum8 is the weight of reducing an operand of 8-bit elements, four of which share a
	// register, Sum1 that of adding one by the element (Extreme8 that of min and max), on
	// top of the accesses.
	Sum8, Sum1 float64
	// Pack8, Pack4, Pack2, Pack1 are the weight of a load or store where buffers
	// are not aligned to 16 bytes and the loop goes by elements of 8, 4, 2 or 1
	// bytes: the pass weighs their sum, if that is more.
	Pack8, Pack4, Pack2, Pack1 float64
	// Saturation describes how an SM's rate grows with its active threads t:
	// t·(1+Saturation)/(t+512·Saturation), 1 at 512. Groups share it by threads.
	Saturation float64
	// Slice is a slice's own overhead (barriers, pointers, drain) at 512
	// threads; PerThreads of it vanishes in proportion as threads get fewer.
	// SliceLocal comes on top where the slice also stores locally.
	Slice, PerThreads, SliceLocal float64
	// SliceCopy takes SliceLocal's place where the slice receives nothing; P2PSlice comes
	// on top in sends and receives, whose loops take longer by P2PMore, 0.1 for a tenth.
	SliceCopy, P2PSlice, P2PMore float64
	// Loop is the time of each further loop that a slice's size takes: eight packs a
	// thread at a time, then single packs, then elements. Turn is that of each further
	// turn of the latter two (common_kernel.h:245-291, reduceCopy). Idle is the share of
	// their time that warps without a part in the first loop's last turn are missed.
	Loop, Turn, Idle float64
	// Latency is what a warp waits for each operand of a turn of eight packs a thread, HBM
	// what it waits longer for user data that is not in L2; the other warps' work hides
	// either where it takes longer. Read is on top where what a peer sends lies in its memory.
	Latency, HBM, Read float64
	// Post is what fence, flag store and poll add to Flag.
	Post float64
	// BlockTurn is what a thread block of a schedule of others takes beside that for a
	// step that waits, BlockRate the rate of its loops, NCCL's being 1: of this
	// project's kernels, which interpret such schedules.
	BlockTurn, BlockRate float64
	// Fence is the share of the next slice for which this slice's fence has to
	// wait where the group continues without a pause; Drain is what the barrier
	// at that slice's end then waits for the fence. Behind the last slice of an
	// operation no store follows: its fence outlasts it by the share Flush of its time.
	Fence, Drain, Flush float64
	// Sum is the weight of reducing an operand into those before it, on top of its load.
	Sum float64
	// Multicast comes on top for a slice that NVLS reduces or copies in the switch, Staged for
	// each head's piece that NVLS copies between user data and multicast buffers.
	Multicast, Staged float64
}

// TripCost is the time of one trip through the loop of LL or LL128, of t
// threads: Base + Recv where it polls a peer's data (and Host
// where that is in host memory), or else User where it reads
// user data + HBM where that is not in L2, and for each thread's share of the issue slots t/512·(Send
// where it stores to a peer + Load for what a thread loads of user data +
// Store for what it stores of it): for each instruction of LL, for all 60
// bytes of LL128.
type TripCost struct {
	Base, Recv, Host, User, HBM, Send, Load, Store float64
	// Reduce and Pass come on top of Recv where the trip reduces user data with the
	// peer's, and where it sends on what it received.
	Reduce, Pass float64
}

// LLCost is the LL protocol: 8 bytes of data a thread and trip.
type LLCost struct {
	Trip  TripCost
	Local float64 // issue of 512 threads, as TripCost's: on top where a trip stores user data
	// First is the share of the first trip that the hop does not hide, of its latency;
	// FirstIssue that of its instructions.
	First, FirstIssue float64
	Hop               float64 // from a store until the peer's poll has it
	Op                float64 // per operation
	Share             float64 // of the threads of an SM's other groups that delay a trip's issue
	Overlap           float64 // exponent of the norm of a trip's latency and issue; 0: they add up
}

// LL128Cost is the LL128 protocol: 1,920 bytes a warp and trip.
type LL128Cost struct {
	Trip  TripCost
	First float64 // least trips of an operation
	Hop   float64 // as LL
	Op    float64 // after an operation, before the next
	Both  float64 // before an operation that reduces user data and a peer's
	// Of user data that is not aligned to 16 bytes, as TripCost's: Stage is the
	// path through shared memory, Narrow the store of one element.
	Stage, Narrow float64
	Overlap       float64 // as LL
}

// MemoryCost describes the caches.
type MemoryCost struct {
	// L2 is the cache's size; a working set starts to miss from L2Knee of it
	// and misses wholly at L2.
	L2     float64
	L2Knee float64
}

// OneRankCost is what an operation of one rank costs, which NCCL copies by
// cudaMemcpyAsync, or scales with a kernel of its own. A byte
// copied is two bytes of memory traffic: one read, one written.
type OneRankCost struct {
	// Call is the host's time for a call that launches nothing, CopyLaunch for
	// one that launches a copy.
	Call, CopyLaunch float64
	// CopyGap is the device's time for a copy in addition to its bytes, KernelGap for the
	// kernel that scales (oneRankReduce).
	CopyGap, KernelGap float64
	// L2Rate and MemoryRate are bytes read plus bytes written by time, of what is
	// in L2 and of what is not.
	L2Rate, MemoryRate float64
	// GraphRate is that of a copy in a CUDA graph whose size is a multiple of 512 MiB.
	GraphRate float64
}

// SharingCost is how kernels of collectives and compute share a GPU.
type SharingCost struct {
	// SMs is how many the GPU has.
	SMs float64
	// Busy is by how much longer a collective's kernels take while compute holds all
	// other SMs, and Traffic by how much on top while it uses all of MemoryRate: 0.5
	// is half as long again.
	Busy, Traffic float64
	// Wait takes Traffic's place for what kernels wait for: flags, fences, their begin.
	Wait float64
	// Tail is by how much longer a compute kernel of one wave of blocks takes while
	// some of its blocks wait for SMs, at most its own time.
	Tail float64
	// Unknown is how many times as long compute takes beside collectives where its
	// blocks are not known, at least 1.
	Unknown float64
	// Start is what starting a kernel of a collective takes of the GPU's work
	// distributor, which starts and retires one at a time.
	Start float64
}

// JitterCost lets equal channels drift apart.
type JitterCost struct {
	Slice   float64 // relative standard deviation of a Simple slice's time
	LL      float64 // the same of an operation of LL
	LL128   float64 // of LL128
	Channel float64 // relative standard deviation of a channel's static share
}
