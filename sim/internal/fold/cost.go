package fold

import (
	"fmt"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// Sends and receives with different peers have different times: of an alltoall
// folded onto one rank, and of a root's gather or scatter, all are simulated.
// 102,400 take 3 s of a processor and 1.1 GB; more than 2 GB are refused.
const (
	transferBytes = 12 << 10
	maxTransfers  = 2 << 30 / transferBytes
	transferTime  = 30 * units.Microsecond
)

// Transfers refuses to simulate so many sends and receives of different peers where
// they are too many. Exact and Off run them at any cost.
func Transfers(p *plan.Plan, n int64, mode Mode) error {
	if n <= maxTransfers || mode == Exact || mode == Off {
		return nil
	}
	return &exec.NotImplementedError{
		Feature: fmt.Sprintf("%v of %d ranks, transfer by transfer", p.Req.Func, p.Comm.NRanks),
		Missing: fmt.Sprintf("its %d transfers would take some %d GB and %d s of a processor; take fewer "+
			"nodes, or insist with --fold exact",
			n, n*transferBytes>>30, units.Time(n)*transferTime/units.Second),
	}
}
