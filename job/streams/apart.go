package streams

import (
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Apart returns a job whose calls take the given times and share nothing. With a cost of nil, calls take no
// time: the lower bound over all networks. With Recorded, they take the recorded times. Both show whether the
// job hangs. Members of a call may give different times, as recordings of ranks do; the longest counts. The
// sender of a message of up to buffered bytes does not wait for the receiver, as the connection's buffers
// hold the message. No machine is needed, so readers of recordings are tested with it.
func Apart(p *workload.Program, cost func(*workload.Call) units.Time, buffered units.Bytes) *Input {
	in := &Input{Program: p, Costs: make([]Cost, len(p.Calls))}
	for i := range p.Calls {
		c, x := &p.Calls[i], &in.Costs[i]
		if cost != nil {
			x.Time = cost(c)
		}
		if messageHalf(c.Func) && c.Bytes() <= buffered {
			x.Buffered, x.Receive = true, x.Time
		}
	}
	return in
}

// Recorded returns the time that a call's recording has.
func Recorded(c *workload.Call) units.Time { return c.Recorded }
