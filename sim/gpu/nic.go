package gpu

import "math"

// NIC holds the fixed costs of one network step, in microseconds and GB/s:
// the proxy thread that posts and polls, the write on the wire, the flush and
// the flags between host and GPU. NCCL counterparts: transport/net.cc,
// transport/net_ib.cc.
type NIC struct {
	// Post is the proxy thread's time to post one message (isend, or irecv
	// with its clear-to-send); one thread serves all channels of a rank.
	Post float64
	// Poll is its time to notice and retire one completion.
	Poll float64
	// Turn and Look are the cost of one poll cycle of the thread: Turn in any case, and
	// Look for each active end of a connection, one that has an operation.
	Turn, Look float64
	// Wire is the one-way latency of a small RDMA write with immediate, port
	// to port through one switch, both PCIe crossings included.
	Wire float64
	// Flush is the read that makes received data visible to the GPU (Simple
	// into GPU memory, where NCCL flushes).
	Flush float64
	// Flag is the latency of a flag between proxy and GPU memory over PCIe.
	Flag float64
	// Eff is the payload share of a port's speed.
	Eff float64
	// Card is the speed of one of the cards that a plugin shows as one net, and Stripe
	// the least part of a message that a card gets: fewer cards carry what is shorter.
	// A Card of 0 is the whole port. Example: of four cards of 12.5 GB/s and stripes of
	// 131,072 bytes, a message of 262,144 bytes goes at 25 GB/s.
	Card, Stripe float64
	// Gap is how long a connection carries nothing between one message and the next:
	// the sender's request and the receiver's answer where software has to bring them
	// about (rendezvous), and no message overlaps with that of the next.
	Gap float64
	// ReduceHop is what a switch takes longer where it sums what comes up a
	// reduction tree (SHARP) than where it passes packets on, and ReduceEff the
	// share of a port's payload rate at which it does (streaming aggregation).
	ReduceHop, ReduceEff float64
	// TCP is what connections over sockets cost in place of Post, Poll, Look,
	// Wire and Eff.
	TCP TCP
}

// TCP holds what NCCL's socket transport costs, in microseconds and GB/s
// (transport/net_socket.cc). Data goes through host memory; threads copy it into
// sockets and out of them.
type TCP struct {
	// Call is a system call of the proxy thread for a message: its size into the
	// control socket, or out of it.
	Call float64
	// Look is the proxy thread's time for one connection end in a poll cycle:
	// a system call for an empty poll.
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

// Shares finds small whole numbers in which a byte written and a byte read
// are related as their shares of a thread's time, and the link capacity, in
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
