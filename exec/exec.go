// Package exec declares what runs a plan: the simulator and real hardware are
// both Executors and promise the same track names, event names and op ids.
package exec

import (
	"context"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Executor runs a plan and reports events to a sink (never nil; use
// trace.Discard).
type Executor interface {
	Run(ctx context.Context, p *plan.Plan, sink trace.Sink) (Result, error)
}

// LinkLoad is what one directed link carried for one operation.
type LinkLoad struct {
	Name     string
	Capacity units.GBps
	Bytes    units.Bytes
	Busy     units.Time // time with at least one flow
}

// Ideal is the time that the link needs for its bytes at least; 0 where it has
// no capacity of its own.
func (l *LinkLoad) Ideal() units.Time {
	if l.Capacity <= 0 {
		return 0
	}
	return l.Bytes.Over(l.Capacity)
}

// Result is the outcome of one run.
type Result struct {
	Finish  []units.Time // per rank
	Elapsed units.Time   // time of one operation as nccl-tests reports it
	AlgBW   float64      // GB/s
	BusBW   float64      // GB/s
	Links   []LinkLoad
	Events  int64 // engine events handled
	Wrong   int64 // wrong elements, -1 where data was not checked
}
