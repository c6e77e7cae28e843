package gpu

import (
	"math"

	"github.com/simccl/simccl/coll"
)

// Pass is what one primitive does to memory: how many operands it loads and
// stores, and where.
type Pass struct {
	Loads  int   // received and local operands
	Stores int   // stores to peers
	Own    bool  // those stores stay in the GPU's own memory, for a NIC to read
	Direct bool  // those stores go to the peers' user buffers, which hides one to the own
	Local  bool  // also stores to the GPU's own memory
	User   bool  // reads user data
	From   Place // where what is received lies
	Skew   bool  // user data not aligned to 16 bytes
	// Multicast is set if the switch reduces the loads or copies the stores.
	Multicast bool
	// Unaligned128 is set if user data does not start on a 128-byte line.
	Unaligned128 bool
	Elem         int64 // bytes of an element as the kernel sees it
	// Extremes counts the reductions by min or max where elements have 8 bits.
	Extremes int
	// Sums counts the operands that are reduced where elements have 8 bits, by min and max
	// too.
	Sums int
	// Miss is the share of accesses to user data that leave L2 (CrowdedMiss).
	Miss float64
}

// Place is where a kernel finds what a peer sends it.
type Place uint8

// Places. Between A100s a kernel reads the sender's buffer over NVLink
// (ncclTopoCheckP2p, graph/paths.cc of NCCL 2.28.9); other peers store into its own memory.
const (
	OwnMemory Place = iota
	HostMemory
	PeerMemory
)

// Gap is a collective kernel's fixed cost (launch gap, prologue, epilogue) with so
// many threads a block, without BlockGap, in microseconds.
func (c *Class) Gap(p coll.Protocol, f coll.Func, threads int) float64 {
	gap := c.KernelGap[p] + float64(c.ThreadGap[p]*float64(threads)/512)
	switch {
	case f == coll.AllReduce || f == coll.ReduceScatter || f == coll.Reduce:
		gap += c.ReduceGap[p]
	default:
		gap += c.CopyGap[p]
	}
	return gap
}

// Wait has what kernels wait for take so many times as long: flags and fences, and the gap
// before them, most of which is their own begin and end.
func (c *Class) Wait(times float64) {
	for _, t := range []*float64{&c.Flag, &c.Simple.Post, &c.Simple.Drain, &c.LL.Hop, &c.LL128.Hop,
		&c.LL128.Op, &c.BlockGap, &c.P2PGap} {
		*t *= times
	}
	for p := range c.KernelGap {
		c.KernelGap[p] *= times
		c.ReduceGap[p] *= times
		c.CopyGap[p] *= times
		c.ThreadGap[p] *= times
	}
}

// Trips returns how many passes of its loop a group of threads makes over
// n bytes; at least one.
func Trips(p coll.Protocol, threads int, n int64) int64 {
	per := int64(threads) * 8
	if p == coll.LL128 {
		per = int64(threads) / 32 * 1920
	}
	return max(1, (n+per-1)/per)
}

// Miss returns the share of accesses that leave L2 for a working set.
func (c *Class) Miss(workingSet int64) float64 {
	knee := c.Memory.L2 * c.Memory.L2Knee
	return math.Min(1, math.Max(0, (float64(workingSet)-knee)/(c.Memory.L2-knee)))
}

// memoryBlocks is how many thread blocks of a kernel load at once where a turn of Simple
// waits SimpleCost.HBM longer.
const memoryBlocks = 24

// CrowdedMiss is the Miss of a kernel of so many thread blocks: HBM answers the later the
// more of them load from it. 4 x H200: reduce_scatter over one channel takes 30.3 us a MiB
// from L2 and from HBM; the curves of 24 channels have a step of 5 % at 32 MiB.
// More than 32 blocks were measured by none of the classes' data and count as 32.
func CrowdedMiss(miss float64, blocks int) float64 {
	return miss * float64(min(blocks, 32)) / memoryBlocks
}

// Launch is the host's time in microseconds to launch an operation on all GPUs
// of a thread.
func (c *Class) Launch(gpus int) float64 {
	if gpus > 1 {
		return float64(gpus) * c.HostShared
	}
	return c.HostLaunch
}

// SimpleRate returns a group's rate in GB/s where active threads work on the
// SM in all, itself included. pack is the width of its accesses in bytes: 16,
// or the element size where its buffers are not aligned to 16
// (common_kernel.h, reduceCopy).
func (c *Class) SimpleRate(p Pass, threads, active int, pack int64) float64 {
	rate := c.issueRate(p, threads, active, pack)
	if c.Simple.Latency == 0 {
		return rate
	}
	turn := float64(threads/32) * turnBytes(pack) * 1e-3
	return turn / overlapped(turn/rate, c.Simple.wait(p, turnBytes(pack)/packsTurn), waits)
}

// LocalCopy is the time, in microseconds, of a kernel whose blocks read so many bytes in all from the GPU's
// own memory and write what they make of them there.
func (c *Class) LocalCopy(bytes, blocks int64, threads int) float64 {
	rate := c.SimpleRate(Pass{Loads: 1, Local: true, User: true}, threads, threads, 16)
	return c.Gap(coll.Simple, coll.ReduceScatter, threads) + float64(bytes)/float64(max(1, blocks))/(rate*1e3)
}

// issueRate is SimpleRate of warps that wait for nothing.
func (c *Class) issueRate(p Pass, threads, active int, pack int64) float64 {
	s := &c.Simple
	full := 512 / (s.PerByte * max(c.wide(p), c.narrow(p, pack))) * 1e-3
	t := float64(max(threads, active))
	if s.Latency > 0 { // which says what few threads lack
		return full * float64(threads) / t
	}
	return full * float64(threads) * (1 + s.Saturation) / (t + float64(512*s.Saturation))
}

// waits is the exponent of the norm of what a warp waits for its loads and what all
// warps take to move a turn's bytes: the longer hides the other but where both are
// about as long. 2 x H200: 128, 256 and 512 threads on one channel.
const waits = 4

// wait is what a warp waits for the loads of a turn whose bytes are so much of a turn of packs; HBM's part
// is in proportion to them, as it is to the blocks that load at once.
func (s *SimpleCost) wait(p Pass, part float64) float64 {
	w := float64(s.Latency * float64(p.Loads))
	if p.User {
		w += float64(s.HBM * p.Miss * part)
	}
	if p.From == PeerMemory {
		w += s.Read
	}
	return w
}

// turnBytes are what a warp moves in a turn of the first loop of Simple.
func turnBytes(pack int64) float64 {
	if pack != 16 {
		return elementsTurn
	}
	return packsTurn
}

// overlapped is the time of two things that hide each other: their norm, whose
// exponent is 1 where they do not and large where the longer hides the other.
func overlapped(a, b, exponent float64) float64 {
	if exponent <= 1 {
		return a + b
	}
	long, short := max(a, b), min(a, b)
	return long * math.Pow(1+math.Pow(short/long, exponent), 1/exponent)
}

// wide is the weight of a pass whose accesses are 16 bytes wide.
func (c *Class) wide(p Pass) float64 {
	s := &c.Simple
	store := s.Store
	switch {
	case p.Own:
		store = s.Own
	case p.Direct:
		store = s.Direct
	}
	weight := 1 + float64(s.Load*float64(p.Loads)) + float64(store*float64(p.Stores))
	if p.Local && !p.Direct {
		weight += s.Local
	}
	if p.From == HostMemory {
		weight += s.Host
	}
	if p.Elem == 1 {
		weight += float64(s.Sum8 * float64(p.Sums))
	}
	return weight + float64(s.Sum*float64(max(0, p.Loads-1)))
}

// narrow is the weight of a pass by the element: what counts is the number of
// its accesses.
func (c *Class) narrow(p Pass, pack int64) float64 {
	n := p.Loads + p.Stores
	if p.Local {
		n++
	}
	switch pack {
	case 16:
		return 0
	case 8:
		return c.Simple.Pack8 * float64(n)
	case 4:
		return c.Simple.Pack4 * float64(n)
	case 2:
		return c.Simple.Pack2 * float64(n)
	}
	return float64(c.Simple.Pack1*float64(n)) + float64(c.Simple.Extreme8*float64(p.Extremes)) +
		float64(c.Simple.Sum1*float64(p.Sums-p.Extremes))
}

// SliceOverhead is a slice's fixed cost, in microseconds.
func (c *Class) SliceOverhead(p Pass, threads int) float64 {
	s := &c.Simple
	over := s.Slice - s.PerThreads*(1-math.Min(1, float64(threads)/512))
	switch {
	case !p.Local:
	case p.Loads == 1 && p.User:
		over += s.SliceCopy
	default:
		over += s.SliceLocal
	}
	if over = math.Max(0, over); p.Multicast {
		over += s.Multicast
	}
	return over
}

// Bytes that a warp moves in one turn of the loops of Simple: eight packs a thread,
// one pack, and half as many single elements as fit into eight packs.
const (
	packsTurn    = 8 * 32 * 16
	packTurn     = 32 * 16
	elementsTurn = packsTurn / 2
)

// LoopsOverhead is what a slice of n bytes costs on top, in microseconds, because its
// size takes more than one loop, the rest of one going to the next, and because warps
// that have no part in the last turn of the first wait for the others. pack is as of
// SimpleRate.
func (c *Class) LoopsOverhead(p Pass, threads int, n, pack int64) float64 {
	s, warps := &c.Simple, max(1, int64(threads)/32)
	main := int64(packsTurn)
	if pack != 16 {
		main = elementsTurn
	}
	loops, turns, idle := int64(0), int64(0), 0.0
	if hunks := n / main; hunks > 0 {
		loops, n = 1, n%main
		if last := hunks % warps; last > 0 {
			idle = c.lastTurn(p, threads, last, pack)
		}
	}
	if hunks := n / packTurn; hunks > 0 && pack == 16 {
		loops, turns, n = loops+1, (hunks-1)/warps, n%packTurn
	}
	if n > 0 {
		loops, turns = loops+1, turns+(n-1)/(32*warps*p.Elem)
	}
	return float64(s.Loop*float64(max(0, loops-1))) + float64(s.Turn*float64(turns)) + idle
}

// lastTurn is by how much longer the last turn of a slice's first loop takes than its
// bytes at the loop's rate, where only so many warps have a part in it.
func (c *Class) lastTurn(p Pass, threads int, last, pack int64) float64 {
	s, warps := &c.Simple, int64(threads)/32
	bytes, rate := turnBytes(pack)*1e-3, c.SimpleRate(p, threads, threads, pack)
	if s.Latency == 0 {
		return float64(s.Idle * (float64(warps-last) * bytes / rate))
	}
	work := float64(last) * bytes
	wait := s.wait(p, turnBytes(pack)/packsTurn)
	return max(0, overlapped(work/c.issueRate(p, threads, threads, pack), wait, waits)-work/rate)
}

// LLTime is the time of one LL operation over n bytes, in microseconds, of a
// group beside which others have so many threads on the SM.
func (c *Class) LLTime(p Pass, threads, others int, n int64, miss float64) float64 {
	// A thread moves a line of 8 bytes by the element: it loads words of 4 bytes
	// or elements, whichever is larger, and stores each element alone
	// (prims_ll.h:160-205).
	t := &c.LL.Trip
	user := 0.0
	if p.User {
		user += t.Load * 8 / float64(max(4, p.Elem))
	}
	if p.Local {
		user += c.LL.Local + float64(t.Store*8/float64(p.Elem))
	}
	if p.Unaligned128 { // a warp's 256 bytes lie on three lines in place of two
		user *= 1.5
	}
	issue := t.send(p) + user
	more := float64(Trips(coll.LL, threads, n) - 1)
	each := float64(issue * (float64(threads) + float64(c.LL.Share*float64(others))) / 512)
	wait := t.latency(p, miss)
	if c.LL.Overlap > 0 {
		return float64(more*overlapped(wait, each, c.LL.Overlap)) + float64(c.LL.First*wait) +
			float64(c.LL.FirstIssue*each)
	}
	return float64((more+c.LL.First)*wait) + float64((more+c.LL.FirstIssue)*each)
}

// DataShare is the share of a link's payload that is data, where threads store so many
// bytes each to memory that is not aligned: a warp's store is a packet, of a flit of 16
// bytes before its data, and NVLink's rate is that of packets of 128 bytes (Foley and
// Danskin, IEEE Micro 37-2, 2017).
func (c *Class) DataShare(p coll.Protocol, pack int64) float64 {
	share := c.LinkShare[p]
	if bytes := 32 * float64(pack); p == coll.Simple && bytes < 128 {
		share *= bytes / (bytes + 16) * (128 + 16) / 128
	}
	return share
}

// LL128Time is the same for LL128, whose warps stream on their own: parts of a
// trip count as such.
func (c *Class) LL128Time(p Pass, threads int, n int64, miss float64) float64 {
	t := &c.LL128.Trip
	issue := t.send(p)
	if p.User {
		issue += t.Load
	}
	if p.Local {
		issue += t.Store
	}
	if p.Skew {
		// Data not aligned to 16 bytes goes through shared memory, and on to the
		// user's buffer by the element (prims_ll128.h:131-189).
		if p.User {
			issue += c.LL128.Stage
		}
		if p.Local {
			issue += c.LL128.Stage + float64(c.LL128.Narrow*60/float64(p.Elem))
		}
	}
	trips := max(c.LL128.First, float64(n)/float64(threads/32*1920))
	return trips * overlapped(t.latency(p, miss), float64(issue*float64(threads)/512), c.LL128.Overlap)
}

// latency is what the loads of a trip take, for any number of threads on it:
// the poll of a peer's data, beside which user data comes in, or else that.
func (t *TripCost) latency(p Pass, miss float64) float64 {
	l := t.Base
	if p.Loads > 1 || !p.User {
		l += t.Recv
		if p.From == HostMemory {
			l += t.Host
		}
		if p.User {
			l += t.Reduce
		}
		if p.Stores > 0 {
			l += t.Pass
		}
	} else {
		l += t.User
	}
	if p.User {
		l += float64(t.HBM * miss)
	}
	return l
}

// send is what 512 threads take to issue a trip's stores to a peer.
func (t *TripCost) send(p Pass) float64 {
	if p.Stores > 0 {
		return t.Send
	}
	return 0
}
