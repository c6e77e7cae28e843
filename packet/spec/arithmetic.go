package spec

import "math/bits"

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

// Stubborn reports whether NoSkip counts.
func (r *Repair) Stubborn() bool { return r.NoSkip && !r.Selective && r.Timeout == 0 }

// Lasts returns how many picoseconds a frame takes at a rate in bit/s.
func (c *Config) Lasts(bytes int, rate int64) int64 {
	if c.WholeNanos {
		return 1000 * Nanos(float64(bytes)*8/float64(rate))
	}
	return (int64(bytes)*8_000_000_000_000 + rate/2) / rate
}
