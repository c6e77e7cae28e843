// Package rdma holds what one network step costs beside its bytes: the proxy
// thread that posts and polls, the write on the wire, the flush and the flags
// between host and GPU. The walk of a step through these stages is the
// engine's (sim/network.go); the network itself is ideal: ports share
// max-min, switches do not block.
package rdma

import "github.com/simccl/simccl/units"

// Params are the physical quantities of a NIC and its proxy, in microseconds
// and GB/s. NCCL counterparts: transport/net.cc, transport/net_ib.cc.
type Params struct {
	// Post is the proxy thread's time to post one message (isend, or irecv
	// with its clear-to-send); one thread serves all channels of a rank.
	Post float64
	// Poll is its time to notice and retire one completion.
	Poll float64
	// Wire is the one-way latency of a small RDMA write with immediate, port
	// to port through one switch, both PCIe crossings included.
	Wire float64
	// Flush is the read that makes received data visible to the GPU (Simple
	// into GPU memory, where NCCL flushes).
	Flush float64
	// Flag is a flag's way between proxy and GPU memory over PCIe.
	Flag float64
	// Eff is the payload share of a port's speed.
	Eff float64
}

// IB400 is a ConnectX-7 class NIC. Estimated from the spec sheet and published
// latencies, ±30 %: no such NIC was at hand. Eff is what 4,096-byte packets and
// their headers leave, and what published tables reach (49.1 of 50 GB/s).
func IB400() Params {
	return Params{Post: 0.4, Poll: 0.3, Wire: 2.0, Flush: 1.5, Flag: 0.9, Eff: 0.983}
}

// IB200 is a ConnectX-6 class NIC; estimated as IB400, ±30 %; published tables
// reach 23.7 of 25 GB/s.
func IB200() Params {
	return Params{Post: 0.45, Poll: 0.35, Wire: 2.2, Flush: 1.7, Flag: 1.0, Eff: 0.945}
}

// Socket stands for TCP through the kernel; estimated, ±50 %.
func Socket() Params {
	return Params{Post: 2, Poll: 1, Wire: 12, Flush: 0, Flag: 1.0, Eff: 0.9}
}

// Thread is a proxy thread: one server. What arrives at one instant is served
// as one round of its loop and is done together, so that equal connections
// stay equal.
type Thread struct {
	busy  units.Time
	total units.Time
	batch []Job
}

// Job is something a thread has to do for a connection; the words are the
// caller's.
type Job struct{ Conn, Stage int32 }

// Add takes a job of the given cost, and tells whether it is the first of its
// round: the caller then calls Round at the end of the instant.
func (t *Thread) Add(j Job, cost units.Time) bool {
	t.total += cost
	t.batch = append(t.batch, j)
	return len(t.batch) == 1
}

// Round serves what has come since the last one: jobs, in order of arrival,
// and when they are done. The slice is good until the next Add.
func (t *Thread) Round(now units.Time) ([]Job, units.Time) {
	t.busy = max(t.busy, now) + t.total
	jobs := t.batch
	t.total, t.batch = 0, t.batch[:0]
	return jobs, t.busy
}
