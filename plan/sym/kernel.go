package sym

import (
	"github.com/simccl/simccl/coll"
)

// Kernel is one of NCCL's symmetric kernels.
type Kernel uint8

// Kernels, in the order in which NCCL compares them (include/sym_kernels.h:30 of v2.28.9-1; the Tma kernels
// are of 2.30). None represents no kernel.
const (
	None Kernel = iota
	AllReduceLL
	AllReduceLLMC
	AllReduceTMA
	AllReduceLDST
	AllReduceMC
	AllGatherLL
	AllGatherLLMC
	AllGatherTMA
	AllGatherST
	AllGatherTMAMC
	AllGatherSTMC
	ReduceScatterLL
	ReduceScatterTMA
	ReduceScatterLD
	ReduceScatterLDMC
	numKernels
)

// traits are the properties of a kernel that its choice and its simulation depend on.
type traits struct {
	name string
	fn   coll.Func
	how  How
	// stores: the kernel stores to a multicast address; loads: it loads from one.
	stores, loads bool
	tma           bool
}

// How is the method by which a kernel moves data between GPUs.
type How uint8

// Methods: PushLL stores each word with its flag into a buffer of every peer, which polls it; Load and Store
// read and write the windows of the peers between two barriers; Multicast lets the switch reduce loads and
// replicate stores.
const (
	PushLL How = iota
	Load
	Store
	LoadStore
	Multicast
)

var table = [numKernels]traits{
	None:          {},
	AllReduceLL:   {name: "AllReduce_AGxLL_R", fn: coll.AllReduce, how: PushLL},
	AllReduceLLMC: {name: "AllReduce_AGxLLMC_R", fn: coll.AllReduce, how: PushLL, stores: true},
	AllReduceTMA:  {name: "AllReduce_RSxTmaLD_AGxTmaST", fn: coll.AllReduce, how: LoadStore, tma: true},
	AllReduceLDST: {name: "AllReduce_RSxLD_AGxST", fn: coll.AllReduce, how: LoadStore},
	AllReduceMC: {name: "AllReduce_RSxLDMC_AGxSTMC", fn: coll.AllReduce, how: Multicast, stores: true,
		loads: true},
	AllGatherLL:   {name: "AllGather_LL", fn: coll.AllGather, how: PushLL},
	AllGatherLLMC: {name: "AllGather_LLMC", fn: coll.AllGather, how: PushLL, stores: true},
	AllGatherTMA:  {name: "AllGather_TmaST", fn: coll.AllGather, how: Store, tma: true},
	AllGatherST:   {name: "AllGather_ST", fn: coll.AllGather, how: Store},
	AllGatherTMAMC: {name: "AllGather_TmaSTMC", fn: coll.AllGather, how: Multicast, stores: true,
		tma: true},
	AllGatherSTMC:     {name: "AllGather_STMC", fn: coll.AllGather, how: Multicast, stores: true},
	ReduceScatterLL:   {name: "ReduceScatter_LL", fn: coll.ReduceScatter, how: PushLL},
	ReduceScatterTMA:  {name: "ReduceScatter_TmaLD", fn: coll.ReduceScatter, how: Load, tma: true},
	ReduceScatterLD:   {name: "ReduceScatter_LD", fn: coll.ReduceScatter, how: Load},
	ReduceScatterLDMC: {name: "ReduceScatter_LDMC", fn: coll.ReduceScatter, how: Multicast, loads: true},
}

// String returns NCCL's name of a kernel, as in NCCL_SYM_KERNEL and its log; empty for None.
func (k Kernel) String() string {
	if k < numKernels {
		return table[k].name
	}
	return "Unknown"
}

// Func returns the collective that a kernel executes.
func (k Kernel) Func() coll.Func { return table[k].fn }

// How returns the method by which a kernel moves data.
func (k Kernel) How() How { return table[k].how }

// LL reports whether a kernel stores flags with its data. Such a kernel executes a single task.
func (k Kernel) LL() bool { return table[k].how == PushLL }

// TMA reports whether a kernel copies by the tensor memory accelerator.
func (k Kernel) TMA() bool { return table[k].tma }

// Multicast reports whether a kernel uses NVLink multicast.
func (k Kernel) Multicast() bool { return table[k].stores || table[k].loads }

// Named returns the kernel that NCCL_SYM_KERNEL names; NCCL compares the whole name, case included.
func Named(name string) (Kernel, bool) {
	for k := None + 1; k < numKernels; k++ {
		if table[k].name == name {
			return k, true
		}
	}
	return None, false
}
