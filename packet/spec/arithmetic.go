package spec

import "math/bits"

// Nanos returns s seconds in whole nanoseconds in ns-3's fixed-point arithmetic: 64 bits of fraction,
// truncated.
func Nanos(s float64) int64 {
	whole := int64(s)
	hi, _ := bits.Mul64(uint64((s-float64(whole))*(1<<64)), 1_000_000_000)
	return whole*1_000_000_000 + int64(hi)
}

// Headroom returns the bytes that a link at a rate (bit/s) carries in the given number of delays of ns
// nanoseconds each.
func Headroom(rate, ns int64, delays int) int64 {
	return int64(float64(rate)*float64(ns)/8/1e9) * int64(delays)
}

// Back returns the frame to which a sender goes back for a gap at psn: the last multiple of BackTo bytes
// before it. As in ns-3, a flow whose size is no multiple of BackTo never ends.
func (r *Repair) Back(psn uint32, bytes, payload int64) uint32 {
	if chunk := r.BackTo; chunk > 0 {
		return uint32(min(int64(psn)*payload, bytes) / chunk * chunk / payload)
	}
	return psn
}

// Stubborn reports whether NoSkip has an effect: go-back-N without a timeout.
func (r *Repair) Stubborn() bool { return r.NoSkip && !r.Selective && r.Timeout == 0 }

// Lasts returns a frame's transmission time at a rate (bit/s) in ps.
func (c *Config) Lasts(bytes int, rate int64) int64 {
	if c.WholeNanos {
		return 1000 * Nanos(float64(bytes)*8/float64(rate))
	}
	return (int64(bytes)*8_000_000_000_000 + rate/2) / rate
}
