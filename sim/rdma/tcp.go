package rdma

import (
	"math"

	"github.com/simccl/simccl/units"
)

// TCP holds what NCCL's socket transport costs, in microseconds and GB/s
// (transport/net_socket.cc). Data goes through host memory; threads copy it into
// sockets and out of them.
type TCP struct {
	// Call is a system call of the proxy thread for a message: its size into the
	// control socket, or out of it.
	Call float64
	// Look is the proxy thread's time for one connection end in a turn: the
	// system call that finds nothing.
	Look float64
	// Wire is the one-way latency of a small message, socket to socket.
	Wire float64
	// Send and Recv are how fast one thread writes into sockets, and reads.
	Send, Recv float64
	// Flow is the most that one TCP stream carries.
	Flow float64
	// Eff is the payload share of a port's speed: TCP/IP and Ethernet headers.
	Eff float64
}

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

// Shares finds small whole numbers in which a byte written and a byte read
// stand to each other as they take a thread's time, and the link capacity, in
// GB/s, of a thread of which each is counted so often.
func (t *TCP) Shares() (send, recv int32, capacity float64) {
	best := math.Inf(1)
	for r := 1; r <= 8; r++ {
		s := max(1, math.Round(float64(r)*t.Recv/t.Send))
		if off := math.Abs(s*t.Send/(float64(r)*t.Recv) - 1); s <= 64 && off < best-1e-3 {
			best, send, recv, capacity = off, int32(s), int32(r), s*t.Send
		}
	}
	if send == 0 {
		return 1, 1, min(t.Send, t.Recv)
	}
	return send, recv, capacity
}
