package rules

import "github.com/simccl/simccl/coll"

// Symmetric are the rules of kernels over symmetric windows, and of collectives by
// copy engines. Its zero value is a release without either (before 2.27.3).
type Symmetric struct {
	// Kernels: collectives whose buffers are both in symmetric windows have kernels of
	// their own.
	Kernels bool
	// Tasks is how many collectives of a group fit in the arguments of one kernel; 1:
	// a group of several tasks has none.
	Tasks int
	// DirectP2P: all GPUs must reach each other within NCCL_P2P_LEVEL; else CUDA's own
	// peer access suffices.
	DirectP2P bool
	// NVLinkOnly: all GPUs must be joined by NVLink without a third between.
	NVLinkOnly bool
	// AloneNVLink: so a node of one GPU is.
	AloneNVLink bool
	// MulticastRanks is the fewest ranks that use NVLink multicast.
	MulticastRanks int
	// OneBuffer: one buffer in a window suffices for some kernels.
	OneBuffer bool
	// LLByCost: of both buffers in windows, too, an LL kernel is taken only where the cost
	// model takes LL.
	LLByCost bool
	// Avg: averages have kernels.
	Avg bool
	// TMA: kernels that copy by the tensor memory accelerator exist, where
	// NCCL_SYM_TMA_ENABLE is 1.
	TMA bool

	// GIN are the kernels between nodes over GPU-initiated networking.
	GIN []GINKernel
	// GINPhysical: virtual NICs have none.
	GINPhysical bool

	// CopyEngines: with NCCL_CTA_POLICY 2 copies without kernels exist.
	CopyEngines bool
	// CopySend: the sender's buffer must be in a window too.
	CopySend bool
	// CopyGather is the count of elements from which an AllGather on sm_100 goes by
	// copy engines under any policy (NCCL_SYM_CE_THRESHOLD); 0: never.
	CopyGather int64
	// CopyNodes: an AllGather and an AllToAll between nodes go by copy engines, too, within the
	// nodes, and by RMA between them.
	CopyNodes bool
	// CopyRounds: beyond CopySyncBytes copies are cut into rounds in place of
	// barriers between them.
	CopyRounds bool
	// CopySync is after how many copies there is a barrier where all of them are at
	// least CopySyncBytes.
	CopySync      int
	CopySyncBytes int64
}

// GINKernel is a symmetric kernel of which nodes are joined by GPU-initiated networking.
type GINKernel struct {
	Name string
	Func coll.Func
	// Stores: it needs NVLink multicast within the node; Loads: and the switch reduces.
	Stores, Loads bool
}

// symmetric2289: symmetric kernels of 2.28.9. Tasks is what 4 KiB of arguments hold
// beside the communicator (224 bytes) and 64 ranges of 4 bytes, 64 bytes each
// (include/sym_kernels.h:80-90, include/device.h:457).
func symmetric2289() Symmetric {
	return Symmetric{
		Kernels: true, Tasks: 56, // scheduler/symmetric_sched.cc:72
		MulticastRanks: 2,                    // sym_kernels.cc:280
		CopyEngines:    true, CopySend: true, // enqueue.cc:2580
		CopySync: 8, CopySyncBytes: 512 << 20, // ce_coll.cc:19-21
	}
}
