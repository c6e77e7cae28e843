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
	Local  bool // also stores to the GPU's own memory
	User   bool // reads user data
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

// SimpleRate returns a group's rate in GB/s where active threads work on the
// SM in all, itself included. pack is the width of its accesses in bytes: 16,
// or the element size where its buffers are not aligned to 16
// (common_kernel.h, reduceCopy).
func (c *Class) SimpleRate(p Pass, threads, active int, pack int64) float64 {
	weight := float64(1 + p.Loads + p.Stores)
	if p.Local {
		weight += c.Simple.LocalStore
	}
	full := 512 / (c.Simple.PerByte * c.pack(pack) * weight) * 1e-3
	alone := full * float64(threads) / 512 * c.Simple.Burst
	return math.Min(alone, full*float64(threads)/float64(max(threads, active)))
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
func (c *Class) SliceOverhead(threads int) float64 {
	s := &c.Simple
	return s.Slice - s.PerThreads*(1-math.Min(1, float64(threads)/512))
}

// LLTime is the time of one LL operation over n bytes, in microseconds.
func (c *Class) LLTime(p Pass, threads int, n int64, miss float64) float64 {
	trip := c.LL.Trip
	if p.Local {
		trip += c.LL.Store
	}
	if p.User {
		trip += float64(c.LL.HBM * miss)
	}
	return (float64(Trips(coll.LL, threads, n)-1) + c.LL.First) * trip
}

// LL128Rate is a group's LL128 rate in GB/s.
func (c *Class) LL128Rate(threads int) float64 {
	return float64(threads/32*1920) / c.LL128.Trip * 1e-3
}
