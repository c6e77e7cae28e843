package gpu

import (
	"math"

	"github.com/simccl/simccl/coll"
)

// Pass is what one primitive does to memory: how many operands it loads and
// stores, and where.
type Pass struct {
	Loads  int  // received and local operands
	Stores int  // stores to peers
	Own    bool // those stores stay in the GPU's own memory, for a NIC to read
	Local  bool // also stores to the GPU's own memory
	User   bool // reads user data
	Skew   bool // user data not aligned to 16 bytes
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
	s := &c.Simple
	store := s.Store
	if p.Own {
		store = s.Own
	}
	weight := 1 + float64(s.Load*float64(p.Loads)) + float64(store*float64(p.Stores))
	if p.Local {
		weight += s.Local
	}
	full := 512 / (s.PerByte * c.pack(pack) * weight) * 1e-3
	t := float64(max(threads, active))
	return full * float64(threads) * (1 + s.Saturation) / (t + float64(512*s.Saturation))
}

func (c *Class) pack(bytes int64) float64 {
	switch bytes {
	case 16:
		return 1
	case 8:
		return c.Simple.Pack8
	case 4:
		return c.Simple.Pack4
	case 2:
		return c.Simple.Pack2
	}
	return c.Simple.Pack1
}

// SliceOverhead is what a slice costs beside its bytes, in microseconds.
func (c *Class) SliceOverhead(p Pass, threads int) float64 {
	s := &c.Simple
	over := s.Slice - s.PerThreads*(1-math.Min(1, float64(threads)/512))
	if p.Local {
		over += s.SliceLocal
	}
	return math.Max(0, over)
}

// LLTime is the time of one LL operation over n bytes, in microseconds.
func (c *Class) LLTime(p Pass, threads int, n int64, miss float64) float64 {
	return (float64(Trips(coll.LL, threads, n)-1) + c.LL.First) * c.LL.Trip.time(p, threads, miss)
}

// LL128Time is the same for LL128, whose warps stream on their own: parts of a
// trip count as such.
func (c *Class) LL128Time(p Pass, threads int, n int64, miss float64) float64 {
	return max(c.LL128.First, float64(n)/float64(threads/32*1920)) * c.LL128.Trip.time(p, threads, miss)
}

func (t *TripCost) time(p Pass, threads int, miss float64) float64 {
	fixed, issue := t.Base, 0.0
	if p.Loads > 1 || !p.User {
		fixed += t.Recv
	}
	if p.Stores > 0 {
		issue += t.Send
	}
	if p.User {
		issue += t.Load
		fixed += float64(t.HBM * miss)
	}
	if p.Local {
		issue += t.Store
	}
	if p.Skew {
		issue += t.Skew
	}
	return fixed + float64(issue*float64(threads)/512)
}
