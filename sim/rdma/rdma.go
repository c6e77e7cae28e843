// Package rdma holds what one network step costs beside its bytes: the proxy
// thread that posts and polls, the write on the wire, the flush and the flags
// between host and GPU. The walk of a step through these stages is the
// engine's (sim/network.go); the network itself is ideal: ports share
// max-min, switches do not block.
package rdma

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/units"
)

// Params are the physical quantities of a NIC and its proxy, in microseconds
// and GB/s; machine classes hold them (sim/gpu/classes). NCCL counterparts:
// transport/net.cc, transport/net_ib.cc.
type Params struct {
	// Post is the proxy thread's time to post one message (isend, or irecv
	// with its clear-to-send); one thread serves all channels of a rank.
	Post float64
	// Poll is its time to notice and retire one completion.
	Poll float64
	// Turn and Look are what a turn of its loop takes: so much, and Look for each
	// connection end that has an operation.
	Turn, Look float64
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
	// ReduceHop is what a switch takes longer where it sums what comes up a
	// reduction tree (SHARP) than where it passes packets on, and ReduceEff the
	// share of a port's payload rate at which it does (streaming aggregation).
	ReduceHop, ReduceEff float64
	// TCP is what connections over sockets cost in place of Post, Poll, Look,
	// Wire and Eff.
	TCP TCP
}

// Thread is a proxy thread: one server, which goes from one connection to the
// next. What arrives at one instant is served in the order of the jobs' Order
// (proxy.cc:776 goes through its list of operations): of four messages that take
// 0.4 us each the first is posted after 0.4 us and the last after 1.6. With
// Together all four are done after 1.6 us, so that equal connections stay equal.
type Thread struct {
	Together bool

	busy  units.Time
	batch []Job
}

// Job is something a thread has to do for a connection; the words are the
// caller's.
type Job struct {
	Conn, Stage int32
	Order       int64
	Cost        units.Time
	Done        units.Time // set by Round
}

// Add takes a job, and tells whether it is the first of its round: the caller
// then calls Round at the end of the instant.
func (t *Thread) Add(j Job) bool {
	t.batch = append(t.batch, j)
	return len(t.batch) == 1
}

// Round serves what has come since the last one and says of each job when it is
// done. The slice is good until the next Add.
func (t *Thread) Round(now units.Time) []Job {
	if !t.Together {
		slices.SortStableFunc(t.batch, byOrder)
	}
	t.busy = max(t.busy, now)
	for i := range t.batch {
		t.busy += t.batch[i].Cost
		t.batch[i].Done = t.busy
	}
	if t.Together {
		for i := range t.batch {
			t.batch[i].Done = t.busy
		}
	}
	jobs := t.batch
	t.batch = t.batch[:0]
	return jobs
}

func byOrder(a, b Job) int { return cmp.Compare(a.Order, b.Order) }
