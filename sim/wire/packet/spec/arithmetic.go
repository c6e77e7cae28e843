package spec

import (
	"math/bits"
	"slices"

	"github.com/simccl/simccl/sim/wire/packet/cc"
)

// Nanos is how many whole nanoseconds s seconds are in the fixed-point
// arithmetic of ns-3: 64 bits of fraction, cut, not rounded.
func Nanos(s float64) int64 {
	whole := int64(s)
	hi, _ := bits.Mul64(uint64((s-float64(whole))*(1<<64)), 1_000_000_000)
	return whole*1_000_000_000 + int64(hi)
}

// Headroom is what a link carries in so many delays of ns nanoseconds, in bytes.
func Headroom(rate, ns int64, delays int) int64 {
	return int64(float64(rate)*float64(ns)/8/1e9) * int64(delays)
}

// Back is the frame to which a gap before psn leads back, in a flow of so many bytes in
// frames of payload. As in the peer a flow whose size is no multiple never ends.
func (r *Repair) Back(psn uint32, bytes, payload int64) uint32 {
	if chunk := r.BackTo; chunk > 0 {
		return uint32(min(int64(psn)*payload, bytes) / chunk * chunk / payload)
	}
	return psn
}

// Classes gives each priority in use a dense class, in order, and returns how many
// there are with 0, that of control frames.
func Classes(flows []Flow) (of [8]uint8, n int) {
	var used [8]bool
	for i := range flows {
		used[flows[i].Priority] = true
	}
	n = 1
	for p := 1; p < 8; p++ {
		if used[p] {
			of[p] = uint8(n)
			n++
		}
	}
	return of, n
}

// Ordered says that the order of events counts from the start: where senders look at what each
// frame met, and where losses are drawn in turn.
func (c *Config) Ordered(n *Network) bool {
	lossy := slices.ContainsFunc(n.Cables, func(c Cable) bool { return c.Loss > 0 })
	return c.EventOrder && (lossy || c.CC.Kind != cc.None && c.CC.Kind != cc.DCQCN)
}
