package gpu

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/coll"
)

// Quantity is one parameter of a class.
type Quantity struct {
	Name    string // in class files
	Unit    string // us, GB/s, B, us*thread/B (of 512 threads), 1 for ratios
	Meaning string
	// Low and High bound what can be meant; High 0 means no bound.
	Low, High float64
	At        func(*Class) *float64
	// Late marks a parameter that files of an earlier version do not have: where
	// one leaves it out, the measured class's value holds, as an estimate.
	Late bool
	// Guess is where a fit begins for a class that has 0, whose other quantities hold
	// this one too; 0: it has none.
	Guess float64
	// Like names the quantity whose value holds where a file has that and leaves this out.
	Like string
	// For is what alone depends on it: "windows", registered buffers, kernels over symmetric
	// windows and copy engines; "blocking", a host that waits for each operation; "network", networks of a
	// network class; "serving", kernels of serving; empty: any run.
	For string
}

// Quantities lists the parameters of a class in the order of its file.
func Quantities() []Quantity {
	var all []Quantity
	add := func(name, unit string, low, high float64, meaning string, at func(*Class) *float64) {
		all = append(all, Quantity{Name: name, Unit: unit, Meaning: meaning, Low: low, High: high, At: at})
	}
	group := func(kind string, quantities func(adder)) {
		from := len(all)
		quantities(add)
		for i := range all[from:] {
			all[from+i].For = kind
		}
	}
	kernelQuantities(add)
	linkQuantities(add)
	simpleQuantities(add)
	llQuantities(add)
	memoryQuantities(add)
	netQuantities(add)
	early := len(all)
	oneRankQuantities(add)
	worksQuantities(add)
	group("windows", symmetricQuantities)
	add("simple_direct", "1", 0, 100, "weight of a store to a peer's registered user buffer",
		func(c *Class) *float64 { return &c.Simple.Direct })
	all[len(all)-1].For = "windows"
	add("simple_extreme8", "1", 0, 100,
		"weight of a min or max of two elements of 8 bits, where buffers are not aligned to 16",
		func(c *Class) *float64 { return &c.Simple.Extreme8 })
	guessed := len(all)
	guessedQuantities(add)
	for i, v := range guesses {
		all[guessed+i].Guess = v
	}
	add("simple_slice_copy", "us", 0, 1e3, "simple_slice_local of a slice that receives nothing",
		func(c *Class) *float64 { return &c.Simple.SliceCopy })
	all[len(all)-1].Like = "simple_slice_local"
	add("ll_first_issue", "1", 0, 100, "ll_first of the instructions of the first trip",
		func(c *Class) *float64 { return &c.LL.FirstIssue })
	all[len(all)-1].Like = "ll_first"
	add("simple_sum8", "1", 0, 100, "weight of reducing an operand of elements of 8 bits",
		func(c *Class) *float64 { return &c.Simple.Sum8 })
	add("simple_sum1", "1", 0, 100, "the same where buffers are not aligned to 16", func(c *Class) *float64 {
		return &c.Simple.Sum1
	})
	add("graph_copy_rate", "GB/s", tiny, 1e6,
		"one rank: memory_rate of a copy in a CUDA graph of a multiple of 512 MiB", func(c *Class) *float64 {
			return &c.One.GraphRate
		})
	group("blocking", blockingQuantities)
	sharingQuantities(add)
	add("beside_wait", "1", 0, 100,
		"in place of beside_traffic for what kernels wait for: flags, fences, their begin",
		func(c *Class) *float64 { return &c.Share.Wait })
	all[len(all)-1].Like = "beside_traffic"
	group("schedules", scheduleQuantities)
	group("network", cardQuantities)
	group("serving", peerQuantities)
	for i := range all[early:] {
		all[early+i].Late = true
	}
	return all
}

type adder = func(name, unit string, low, high float64, meaning string, at func(*Class) *float64)

// blockingQuantities are of a host that waits for each operation.
func blockingQuantities(add adder) {
	add("host_wait", "us", 0, 1e4, "host's time from the end of an operation until it has seen it",
		func(c *Class) *float64 { return &c.HostWait })
	add("host_barrier", "us", 0, 1e4, "host's time for its threads to meet after it",
		func(c *Class) *float64 { return &c.HostBarrier })
}

// scheduleQuantities are of schedules of others in the kernels of bench.
func scheduleQuantities(add adder) {
	add("block_turn", "us", 0, 1e3,
		"on top for a step of a schedule of others that waits, in the kernels of bench",
		func(c *Class) *float64 { return &c.Simple.BlockTurn })
	add("block_rate", "1", tiny, 10, "rate of those kernels' loops, NCCL's being 1", func(c *Class) *float64 {
		return &c.Simple.BlockRate
	})
}

// cardQuantities are of links between CPUs and of nets that are several cards.
func cardQuantities(add adder) {
	add("cpu_rate", "GB/s", 0, 1e4, "payload rate of a link between CPUs, 0: what NCCL ascribes to it",
		func(c *Class) *float64 { return &c.CPURate })
	add("nic_card", "GB/s", 0, 1e4, "speed of one of the cards that make up a net, 0: there is one",
		func(c *Class) *float64 { return &c.Net.Card })
	add("nic_stripe", "B", 1, 1e9, "least part of a message that a card of several gets",
		func(c *Class) *float64 { return &c.Net.Stripe })
	add("nic_gap", "us", 0, 1e4, "between two messages of a connection, which carries nothing then",
		func(c *Class) *float64 { return &c.Net.Gap })
}

// tiny keeps away from zero what is divided by.
const tiny = 1e-6

// guessedQuantities are those that a class may leave to its others; guesses is where a
// fit begins with each.
func guessedQuantities(add adder) {
	add("gap_blocks", "us", 0, 1e3, "kernel's fixed cost, on top for each thread block but the first",
		func(c *Class) *float64 { return &c.BlockGap })
	add("gap_copy_simple", "us", 0, 1e3, "on top in kernels that only copy, Simple", func(c *Class) *float64 {
		return &c.CopyGap[coll.Simple]
	})
	add("ll128_both", "us", 0, 1e3, "before an operation of LL128 that reduces user data and a peer's",
		func(c *Class) *float64 { return &c.LL128.Both })
	add("simple_loop", "us", 0, 1e3,
		"slice, on top for each further loop that its size takes: packs one by one, then elements",
		func(c *Class) *float64 { return &c.Simple.Loop })
	add("simple_turn", "us", 0, 1e3, "the same for each further turn of such a loop",
		func(c *Class) *float64 { return &c.Simple.Turn })
	add("p2p_slice", "us", 0, 1e3, "slice of sends and receives, on top", func(c *Class) *float64 {
		return &c.Simple.P2PSlice
	})
	add("p2p_more", "1", 0, 100, "by how much longer their loops take", func(c *Class) *float64 {
		return &c.Simple.P2PMore
	})
	add("simple_idle", "1", 0, 2,
		"share of a turn of a slice's first loop that is lost for warps without a part in the last",
		func(c *Class) *float64 { return &c.Simple.Idle })
	add("simple_latency", "us", 0, 1e3,
		"wait of a warp for an operand of a turn, eight packs a thread, beside the work of others",
		func(c *Class) *float64 { return &c.Simple.Latency })
	add("simple_hbm", "us", 0, 1e3, "on top for user data that is not in L2, of 24 thread blocks",
		func(c *Class) *float64 { return &c.Simple.HBM })
	add("simple_read", "us", 0, 1e3, "on top where what is received lies in a peer's memory",
		func(c *Class) *float64 { return &c.Simple.Read })
	add("simple_sum", "1", 0, 100, "weight of reducing an operand with those before it, on top of its load",
		func(c *Class) *float64 { return &c.Simple.Sum })
	add("multicast_slice", "us", 0, 1e3,
		"on top for a slice that NVLS reduces or copies in the switch",
		func(c *Class) *float64 { return &c.Simple.Multicast })
	add("multicast_stage", "us", 0, 1e3,
		"on top for each head's piece between user data and multicast buffers",
		func(c *Class) *float64 { return &c.Simple.Staged })
	add("ll_overlap", "1", 0, 20,
		"exponent of the norm of a trip's latency and its instructions, 0: their sum",
		func(c *Class) *float64 { return &c.LL.Overlap })
	add("ll128_overlap", "1", 0, 20, "the same, LL128", func(c *Class) *float64 { return &c.LL128.Overlap })
	add("gap_copy_ll", "us", 0, 1e3, "on top in kernels that only copy, LL", func(c *Class) *float64 {
		return &c.CopyGap[coll.LL]
	})
	add("gap_copy_ll128", "us", 0, 1e3, "the same, LL128", func(c *Class) *float64 {
		return &c.CopyGap[coll.LL128]
	})
	add("ll_reduce", "us", 0, 1e3, "trip that reduces user data with a peer's, on top of ll_recv",
		func(c *Class) *float64 { return &c.LL.Trip.Reduce })
	add("ll_pass", "us", 0, 1e3, "trip that sends on what it receives, on top", func(c *Class) *float64 {
		return &c.LL.Trip.Pass
	})
	add("ll128_reduce", "us", 0, 1e3, "as ll_reduce", func(c *Class) *float64 { return &c.LL128.Trip.Reduce })
	add("ll128_pass", "us", 0, 1e3, "as ll_pass", func(c *Class) *float64 { return &c.LL128.Trip.Pass })
}

var guesses = [...]float64{0.04, 1.2, 0.5, 0.7, 0.15, 0.15, 0.1, 0.3, 0.25, 0.5, 1.5, 1.5, 0.1, 0.2, 0.03,
	0.1, 0.2, 0.1}

func kernelQuantities(add adder) {
	add("gap_ll", "us", 0, 1e3, "kernel's fixed cost, launches without a pause, LL", func(c *Class) *float64 {
		return &c.KernelGap[0]
	})
	add("gap_ll128", "us", 0, 1e3, "the same, LL128", func(c *Class) *float64 { return &c.KernelGap[1] })
	add("gap_simple", "us", 0, 1e3, "the same, Simple", func(c *Class) *float64 { return &c.KernelGap[2] })
	add("gap_reduce_ll", "us", 0, 1e3, "on top in kernels that reduce, LL", func(c *Class) *float64 {
		return &c.ReduceGap[0]
	})
	add("gap_reduce_ll128", "us", 0, 1e3, "the same, LL128", func(c *Class) *float64 {
		return &c.ReduceGap[1]
	})
	add("gap_reduce_simple", "us", 0, 1e3, "the same, Simple", func(c *Class) *float64 {
		return &c.ReduceGap[2]
	})
	add("gap_threads_ll", "us", 0, 1e3, "on top for each 512 threads of a block, LL",
		func(c *Class) *float64 { return &c.ThreadGap[0] })
	add("gap_threads_ll128", "us", 0, 1e3, "the same, LL128", func(c *Class) *float64 {
		return &c.ThreadGap[1]
	})
	add("gap_threads_simple", "us", 0, 1e3, "the same, Simple", func(c *Class) *float64 {
		return &c.ThreadGap[2]
	})
	add("gap_p2p", "us", 0, 1e3, "the same, kernel of sends and receives", func(c *Class) *float64 {
		return &c.P2PGap
	})
	add("host_launch", "us", 0, 1e4, "host's time for an asynchronous launch, one process a GPU",
		func(c *Class) *float64 { return &c.HostLaunch })
	add("host_shared", "us", 0, 1e4, "the same for each GPU of a thread that launches for several",
		func(c *Class) *float64 { return &c.HostShared })
}

func linkQuantities(add adder) {
	add("flag", "us", 0, 1e3, "store to a peer's memory until a poll there sees it", func(c *Class) *float64 {
		return &c.Flag
	})
	add("link_eff", "1", tiny, 10, "payload share of the bandwidth NCCL ascribes to an NVLink or C2C link",
		func(c *Class) *float64 { return &c.LinkEff })
	add("multicast_eff", "1", tiny, 1,
		"fraction of it for loads and stores that the switch reduces and copies", func(c *Class) *float64 {
			return &c.MulticastEff
		})
	add("pci_eff", "1", tiny, 10, "the same of a PCIe link", func(c *Class) *float64 { return &c.PCIEff })
	add("root_eff", "1", tiny, 1,
		"fraction of it for a NIC that reaches GPU memory through a CPU's root complex",
		func(c *Class) *float64 { return &c.RootEff })
	add("share_ll", "1", tiny, 1, "share of a link's payload that is data, LL", func(c *Class) *float64 {
		return &c.LinkShare[0]
	})
	add("share_ll128", "1", tiny, 1, "share_ll of LL128", func(c *Class) *float64 { return &c.LinkShare[1] })
	add("share_simple", "1", tiny, 1, "the same, Simple", func(c *Class) *float64 { return &c.LinkShare[2] })
	add("crowd", "1", 0, 0.9, "share of a GPU's link to its switch that is lost where many pairs of GPUs "+
		"meet on it, (1-1/k) of it with k", func(c *Class) *float64 { return &c.Crowd })
	add("host_hop", "us", 0, 1e3, "by how much a flag through host memory is later than one in a peer's",
		func(c *Class) *float64 { return &c.HostHop })
	add("host_rate", "GB/s", tiny, 1e5, "rate of one GPU's kernels into host memory, or out of it",
		func(c *Class) *float64 { return &c.HostRate })
	add("host_cache", "B", 0, 1e12, "bytes in flight through host memory that the CPU's cache holds",
		func(c *Class) *float64 { return &c.HostCache })
	add("host_memory", "GB/s", tiny, 1e5, "host_rate where there are more", func(c *Class) *float64 {
		return &c.HostMemory
	})
}

func simpleQuantities(add adder) {
	const op = "1"
	add("simple_per_byte", "us*thread/B", tiny, 1e3, "one thread of 512, one byte, weight one",
		func(c *Class) *float64 { return &c.Simple.PerByte })
	add("simple_load", op, 0, 100, "weight of an operand loaded, relative to 1 for the pass",
		func(c *Class) *float64 { return &c.Simple.Load })
	add("simple_host", op, 0, 100, "on top where that operand is in host memory", func(c *Class) *float64 {
		return &c.Simple.Host
	})
	add("simple_store", op, 0, 100, "weight of a store to a peer", func(c *Class) *float64 {
		return &c.Simple.Store
	})
	add("simple_local", op, 0, 100, "weight of a store to the GPU's own user buffer",
		func(c *Class) *float64 { return &c.Simple.Local })
	add("simple_own", op, 0, 100, "weight of a store into own memory that a NIC reads",
		func(c *Class) *float64 { return &c.Simple.Own })
	add("simple_pack8", op, 0, 100,
		"weight of a load or store of 8 bytes, where buffers are not aligned to 16", func(c *Class) *float64 {
			return &c.Simple.Pack8
		})
	add("simple_pack4", op, 0, 100, "the same, 4 bytes", func(c *Class) *float64 { return &c.Simple.Pack4 })
	add("simple_pack2", op, 0, 100, "the same, 2 bytes", func(c *Class) *float64 { return &c.Simple.Pack2 })
	add("simple_pack1", op, 0, 100, "the same, 1 byte", func(c *Class) *float64 { return &c.Simple.Pack1 })
	add("simple_saturation", op, 0, 100, "how an SM's rate saturates with its active threads",
		func(c *Class) *float64 { return &c.Simple.Saturation })
	add("simple_slice", "us", 0, 1e3, "slice's fixed cost at 512 threads", func(c *Class) *float64 {
		return &c.Simple.Slice
	})
	add("simple_per_threads", "us", 0, 1e3, "part of it that vanishes as threads get fewer",
		func(c *Class) *float64 { return &c.Simple.PerThreads })
	add("simple_slice_local", "us", 0, 1e3, "on top where the slice also stores to the user's buffer",
		func(c *Class) *float64 { return &c.Simple.SliceLocal })
	add("simple_post", "us", 0, 1e3, "fence, flag store and poll, in addition to flag",
		func(c *Class) *float64 { return &c.Simple.Post })
	add("simple_fence", "1", 0, 10, "share of the next slice that a slice's fence waits for",
		func(c *Class) *float64 { return &c.Simple.Fence })
	add("simple_flush", "1", 0, 10, "share of an operation's last slice by which its fence outlasts it",
		func(c *Class) *float64 { return &c.Simple.Flush })
	add("simple_drain", "us", 0, 1e3, "what the barrier after that slice waits for the fence",
		func(c *Class) *float64 { return &c.Simple.Drain })
}

func llQuantities(add adder) {
	trip := func(p, size, user string, at func(*Class) *TripCost) {
		add(p+"_base", "us", 0, 1e3, "trip of the loop, "+size, func(c *Class) *float64 {
			return &at(c).Base
		})
		add(p+"_recv", "us", 0, 1e3, "on top where it polls a peer's data", func(c *Class) *float64 {
			return &at(c).Recv
		})
		add(p+"_host", "us", 0, 1e3, "on top where that is in host memory", func(c *Class) *float64 {
			return &at(c).Host
		})
		add(p+"_user", "us", 0, 1e3, "on top where it reads user data and polls nothing",
			func(c *Class) *float64 { return &at(c).User })
		add(p+"_hbm", "us", 0, 1e3, "on top where user data is not in L2", func(c *Class) *float64 {
			return &at(c).HBM
		})
		add(p+"_send", "us", 0, 1e3, "issue of 512 threads: stores to a peer", func(c *Class) *float64 {
			return &at(c).Send
		})
		add(p+"_load", "us", 0, 1e3, "issue of 512 threads: "+user+" loaded", func(c *Class) *float64 {
			return &at(c).Load
		})
		add(p+"_store", "us", 0, 1e3, "issue of 512 threads: "+user+" stored", func(c *Class) *float64 {
			return &at(c).Store
		})
	}
	trip("ll", "8 bytes a thread", "a word or element of user data", func(c *Class) *TripCost {
		return &c.LL.Trip
	})
	add("ll_local", "us", 0, 1e3, "issue of 512 threads: on top where it stores any",
		func(c *Class) *float64 { return &c.LL.Local })
	add("ll_first", "1", 0, 100, "share of the first trip that the hop does not hide",
		func(c *Class) *float64 { return &c.LL.First })
	add("ll_hop", "us", 0, 1e3, "store of LL until the peer's poll has it", func(c *Class) *float64 {
		return &c.LL.Hop
	})
	add("ll_op", "us", 0, 1e3, "an operation of LL in addition to its trips", func(c *Class) *float64 {
		return &c.LL.Op
	})
	add("ll_share", "1", 0, 1, "part of an SM's other groups that a trip's issue waits for",
		func(c *Class) *float64 { return &c.LL.Share })
	trip("ll128", "1,920 bytes a warp", "60 bytes of user data", func(c *Class) *TripCost {
		return &c.LL128.Trip
	})
	add("ll128_first", "1", 0, 100, "least trips of an operation", func(c *Class) *float64 {
		return &c.LL128.First
	})
	add("ll128_hop", "us", 0, 1e3, "store of LL128 until the peer's poll has it", func(c *Class) *float64 {
		return &c.LL128.Hop
	})
	add("ll128_stage", "us", 0, 1e3, "issue of 512 threads: 60 bytes not aligned to 16 through shared memory",
		func(c *Class) *float64 { return &c.LL128.Stage })
	add("ll128_narrow", "us", 0, 1e3, "issue of 512 threads: an element of them stored",
		func(c *Class) *float64 { return &c.LL128.Narrow })
	add("ll128_op", "us", 0, 1e3, "after an operation of LL128, before the next", func(c *Class) *float64 {
		return &c.LL128.Op
	})
}

func memoryQuantities(add adder) {
	add("l2", "B", 1, 1e12, "size of the L2 cache as a working set feels it", func(c *Class) *float64 {
		return &c.Memory.L2
	})
	add("l2_knee", "1", 0, 0.999, "share of it from which a working set starts to miss",
		func(c *Class) *float64 { return &c.Memory.L2Knee })
	add("jitter_slice", "1", 0, 1, "relative standard deviation of a Simple slice", func(c *Class) *float64 {
		return &c.Jitter.Slice
	})
	add("jitter_ll", "1", 0, 1, "the same of an operation of LL", func(c *Class) *float64 {
		return &c.Jitter.LL
	})
	add("jitter_ll128", "1", 0, 1, "the same, LL128", func(c *Class) *float64 { return &c.Jitter.LL128 })
	add("jitter_channel", "1", 0, 1, "the same of a channel's static share", func(c *Class) *float64 {
		return &c.Jitter.Channel
	})
}

func oneRankQuantities(add adder) {
	add("host_call", "us", 0, 1e4, "one rank: host's time for a call that launches nothing",
		func(c *Class) *float64 { return &c.One.Call })
	add("copy_launch", "us", 0, 1e4, "one rank: host's time to launch a copy in device memory",
		func(c *Class) *float64 { return &c.One.CopyLaunch })
	add("copy_gap", "us", 0, 1e3, "one rank: copy's fixed cost", func(c *Class) *float64 {
		return &c.One.CopyGap
	})
	add("gap_one_rank", "us", 0, 1e3, "one rank: fixed cost of the kernel that scales (avg)",
		func(c *Class) *float64 { return &c.One.KernelGap })
	add("l2_rate", "GB/s", tiny, 1e6, "one rank: bytes read plus written, what is in L2",
		func(c *Class) *float64 { return &c.One.L2Rate })
	add("memory_rate", "GB/s", tiny, 1e6, "one rank: bytes read plus written, device memory",
		func(c *Class) *float64 { return &c.One.MemoryRate })
}

func worksQuantities(add adder) {
	add("batch_next", "us", 0, 1e3, "kernel of several operations: next batch of works on a channel",
		func(c *Class) *float64 { return &c.Works.Batch })
	add("work_next", "us", 0, 1e3, "kernel of several operations: next work of a batch",
		func(c *Class) *float64 { return &c.Works.Work })
	add("graph_launch", "us", 0, 1e4,
		"host's time for a kernel of a CUDA graph, of a thread that launches for several GPUs",
		func(c *Class) *float64 { return &c.Works.GraphLaunch })
}

func symmetricQuantities(add adder) {
	add("sym_gap", "us", 0, 1e3, "symmetric kernel's fixed cost, its two barriers included",
		func(c *Class) *float64 { return &c.Sym.Gap })
	add("sym_gap_ll", "us", 0, 1e3, "the same, LL, which has no barrier", func(c *Class) *float64 {
		return &c.Sym.GapLL
	})
	add("sym_remote", "us", 0, 1e3, "symmetric kernel: round trip of loads from a peer",
		func(c *Class) *float64 { return &c.Sym.Remote })
	add("sym_peer", "us", 0, 1e3, "on top for each further peer whose loads are in flight with them",
		func(c *Class) *float64 { return &c.Sym.Peer })
	add("sym_local", "us", 0, 1e3, "symmetric kernel: round trip of loads from the GPU's own L2",
		func(c *Class) *float64 { return &c.Sym.Local })
	add("sym_single", "us", 0, 1e3, "the same in loops over single elements, which load nothing ahead",
		func(c *Class) *float64 { return &c.Sym.Single })
	add("sym_work", "us", 0, 1e3, "symmetric kernel: what a block takes to go on to another task",
		func(c *Class) *float64 { return &c.Sym.Work })
	add("sym_hbm", "us", 0, 1e3, "on top of either where the data is not in L2", func(c *Class) *float64 {
		return &c.Sym.HBM
	})
	add("sym_single_hbm", "us", 0, 1e3, "the same in loops over single elements", func(c *Class) *float64 {
		return &c.Sym.SingleHBM
	})
	add("sym_write", "GB/s", tiny, 1e5, "what one SM issues of stores", func(c *Class) *float64 {
		return &c.Sym.Write
	})
	add("sym_crowd_load", "1", 0, 0.9, "crowd, of loads of symmetric kernels", func(c *Class) *float64 {
		return &c.Sym.CrowdLoad
	})
	add("sym_crowd_store", "1", 0, 0.9, "crowd, of stores of symmetric kernels", func(c *Class) *float64 {
		return &c.Sym.CrowdStore
	})
	add("sym_overlap", "1", 1, 100, "power with which the times of SMs and links make up that of both",
		func(c *Class) *float64 { return &c.Sym.Overlap })
	add("sym_push", "us", 0, 1e3, "symmetric kernel of LL: issue of 512 stores", func(c *Class) *float64 {
		return &c.Sym.Push
	})
	add("sym_hop", "us", 0, 1e3, "from such a store until the peer's poll has it", func(c *Class) *float64 {
		return &c.Sym.Hop
	})
	add("sym_reduce", "us", 0, 1e3, "on top of sym_remote where the switch reduces what is loaded",
		func(c *Class) *float64 { return &c.Sym.Reduce })
	add("ce_barrier", "us", 0, 1e3, "copy engines: barrier of all GPUs by operations on memory",
		func(c *Class) *float64 { return &c.Copy.Barrier })
	add("ce_single", "us", 0, 1e3, "copy engines: fixed cost of one copy to a peer", func(c *Class) *float64 {
		return &c.Copy.Single
	})
	add("ce_batch", "us", 0, 1e3, "the same of a batch of several", func(c *Class) *float64 {
		return &c.Copy.Batch
	})
	add("ce_node", "us", 0, 1e3, "the same of each in a CUDA graph", func(c *Class) *float64 {
		return &c.Copy.Node
	})
	add("ce_rate", "GB/s", tiny, 1e5, "copy engines: rate of a copy to a peer while the peer copies back",
		func(c *Class) *float64 { return &c.Copy.Rate })
}

// Sharing reports whether a quantity says how compute and collectives share a GPU, on which no
// operation alone depends.
func Sharing(name string) bool { return strings.HasPrefix(name, "beside_") || name == "sm_count" }

func sharingQuantities(add adder) {
	add("sm_count", "1", 1, 1e4, "SMs of a GPU", func(c *Class) *float64 { return &c.Share.SMs })
	add("beside_busy", "1", 0, 100,
		"by how much longer a collective's kernels take while compute holds the other SMs",
		func(c *Class) *float64 { return &c.Share.Busy })
	add("beside_traffic", "1", 0, 100, "on top where compute uses all of the memory's rate",
		func(c *Class) *float64 { return &c.Share.Traffic })
	add("beside_tail", "us", 0, 1e6, "by how much longer a compute kernel of one wave takes while blocks "+
		"of it wait for SMs, at most its own time", func(c *Class) *float64 { return &c.Share.Tail })
	add("beside_unknown", "1", 1, 100,
		"by how much longer what an intercepted host launches takes beside collectives",
		func(c *Class) *float64 { return &c.Share.Unknown })
	add("beside_start", "us", 0, 1e3,
		"a collective's kernel on the GPU's work distributor, which no other starts on at the time",
		func(c *Class) *float64 { return &c.Share.Start })
}

func netQuantities(add adder) {
	add("nic_post", "us", 0, 1e4, "proxy thread: post one message", func(c *Class) *float64 {
		return &c.Net.Post
	})
	add("nic_poll", "us", 0, 1e4, "proxy thread: notice and retire one completion", func(c *Class) *float64 {
		return &c.Net.Poll
	})
	add("nic_turn", "us", 0, 1e4, "proxy thread: poll cycle, without the polls of connection ends",
		func(c *Class) *float64 { return &c.Net.Turn })
	add("nic_look", "us", 0, 1e4, "proxy thread: poll of one end of a connection", func(c *Class) *float64 {
		return &c.Net.Look
	})
	add("nic_wire", "us", 0, 1e4, "one-way latency of a small RDMA write through one switch, PCIe included",
		func(c *Class) *float64 { return &c.Net.Wire })
	add("nic_flush", "us", 0, 1e4, "read that makes received data visible to the GPU",
		func(c *Class) *float64 { return &c.Net.Flush })
	add("nic_flag", "us", 0, 1e4, "flag between proxy and GPU memory", func(c *Class) *float64 {
		return &c.Net.Flag
	})
	add("nic_eff", "1", tiny, 1, "payload share of a port's speed", func(c *Class) *float64 {
		return &c.Net.Eff
	})
	add("sharp_hop", "us", 0, 1e4, "what a switch of a reduction tree takes longer than one that passes on",
		func(c *Class) *float64 { return &c.Net.ReduceHop })
	add("sharp_eff", "1", tiny, 1, "fraction of a port's payload rate where the network reduces",
		func(c *Class) *float64 { return &c.Net.ReduceEff })
	add("tcp_call", "us", 0, 1e4, "proxy thread: size of a message into a socket, or out of it",
		func(c *Class) *float64 { return &c.Net.TCP.Call })
	add("tcp_look", "us", 0, 1e4, "proxy thread: poll of one end of a connection over sockets",
		func(c *Class) *float64 { return &c.Net.TCP.Look })
	add("tcp_wire", "us", 0, 1e5, "one-way latency of a small TCP message, socket to socket",
		func(c *Class) *float64 { return &c.Net.TCP.Wire })
	add("tcp_send", "GB/s", tiny, 1e3, "one thread writes into sockets", func(c *Class) *float64 {
		return &c.Net.TCP.Send
	})
	add("tcp_recv", "GB/s", tiny, 1e3, "one thread reads from sockets", func(c *Class) *float64 {
		return &c.Net.TCP.Recv
	})
	add("tcp_flow", "GB/s", tiny, 1e3, "most that one TCP stream carries", func(c *Class) *float64 {
		return &c.Net.TCP.Flow
	})
	add("tcp_eff", "1", tiny, 1, "payload share of a port's speed, TCP", func(c *Class) *float64 {
		return &c.Net.TCP.Eff
	})
}

// check reports a value that cannot be meant.
func (q *Quantity) check(v float64) error {
	if v >= q.Low && (q.High == 0 || v <= q.High) {
		return nil
	}
	return fmt.Errorf("%s is %g %s; from %g to %g", q.Name, v, q.Unit, q.Low, q.High)
}
