package sim

import (
	"math"

	"github.com/simccl/simccl/units"
)

// packet is a segment's payload where the MTU is 1,500 bytes.
const packet = 1448

// LossRate bounds a TCP stream of which a share of packets is lost, in GB/s:
// segment / round trip · sqrt(3 / 2 loss), the mean of a window that halves at
// each loss and grows by a segment a round trip (Mathis et al., CCR 27(3),
// 1997). CUBIC is held to no less where round trips are short (RFC 9438, 4.3).
func LossRate(loss float64, roundTrip units.Time) float64 {
	if loss <= 0 {
		return math.Inf(1)
	}
	return packet * 1e-3 / max(roundTrip.Micros(), 1e-3) * math.Sqrt(1.5/loss)
}

// GiveUp is how long Linux repeats a segment before a connection ends with
// ETIMEDOUT: net.ipv4.tcp_retries2 = 15, from 200 ms on, doubled up to 120 s
// (Documentation/networking/ip-sysctl.rst: 924.6 s).
const GiveUp = 924_600 * units.Millisecond
