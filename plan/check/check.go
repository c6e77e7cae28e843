// Package check proves plans right, and executes them on any memory.
//
// In: a plan.Plan. Out: nil, or an *Error that names the rank, channel, group
// and op at fault. Plan runs the plan on symbols: each byte is a set of ranks
// whose contributions it holds. Execute runs it on any Memory. Neither
// trusts how the plan was made: connections, FIFO steps and places are checked
// as the ops go. It knows no time; NCCL has no counterpart.
package check

import (
	"fmt"
	"math"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// Error is a fault that Plan or Execute found in a plan.
type Error struct {
	Rank, Channel, Group int32
	Seq                  int32 // op, -1 where the fault is no single op's
	Problem              string
}

func (e *Error) Error() string {
	if e.Seq < 0 {
		return fmt.Sprintf("rank %d channel %d group %d: %s", e.Rank, e.Channel, e.Group, e.Problem)
	}
	return fmt.Sprintf("rank %d channel %d group %d op %d: %s", e.Rank, e.Channel, e.Group, e.Seq, e.Problem)
}

// Plan runs a plan on symbols and proves that every send meets a receive of
// equal size, that it ends although FIFOs hold only FIFOSteps steps, that no
// byte outside the buffers is touched, and that every output byte holds
// exactly the contributions it should, each once. What in-place sendrecv and
// alltoall leave in memory is undefined (DataDefined) and not looked at.
//
// An op is run at once, not slice by slice. That is enough: if ops can run to
// the end in some order, so can their slices, because what one end of a FIFO
// does never takes away what the other waits for.
//
// Time and memory grow with the number of ops (NumOps). Above 16,384 ranks, sets are
// known by sums of random numbers, which differ where sets do, save by a chance of
// 1 in 2^128 for each.
func Plan(p *plan.Plan) error { return prove(p, maxSetRanks) }

// prove is Plan with sets that list their members up to so many ranks.
func prove(p *plan.Plan, listedUpTo int) error {
	if !p.DataDefined() {
		return Execute[struct{}](p, blind{})
	}
	m := newSymbols(p, listedUpTo)
	if err := Execute[value](p, m); err != nil {
		return err
	}
	return m.outputs(0, math.MaxInt64)
}

// outputs compares every output with what the operation delivers, of each block of it
// what lies from begin to end.
func (m *symbols) outputs(begin, end units.Bytes) error {
	for _, rank := range m.ranks {
		if err := m.p.Req.Params.Poll(); err != nil {
			return err
		}
		var fault error
		m.p.Delivers(rank, func(off, n units.Bytes, from plan.Places) {
			if n = min(n, end) - begin; fault != nil || n <= 0 {
				return
			}
			off, from.Off = off+begin, from.Off+begin
			want := seg{n: n, off: from.Off, set: m.all}
			if from.Rank != plan.AllRanks {
				want.set = from.Rank
			}
			want.post = m.p.Req.Func.Reduces() && m.p.Req.Op == coll.Avg && m.p.Comm.NRanks > 1
			got, err := m.Read(rank, plan.Ref{Buf: plan.Output, Off: off}, n)
			if err != nil {
				fault = &Error{rank, -1, -1, -1, "output: " + err.Error()}
				return
			}
			fault = m.compare(rank, off, got, want)
		})
		if fault != nil {
			return fault
		}
	}
	return nil
}
