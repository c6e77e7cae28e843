package streams

import (
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Apart is a job whose calls take the given times and share nothing: the least that any network could
// take where cost is nil and calls take no time, what was recorded with Recorded, and in both cases
// whether the job hangs. Members of a call may name different times, as recordings of ranks do; the
// longest counts. A sender does not wait for the receiver of a message of up to buffered bytes, which
// the connection's buffers hold. No machine is needed, so it is also how readers of recordings are
// tested.
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

// Recorded is the time of a call that its recording has.
func Recorded(c *workload.Call) units.Time { return c.Recorded }
