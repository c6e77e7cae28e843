package nccl

import (
	"fmt"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Period is a part of an operation that repeats a number of times.
type Period struct {
	Times  int64
	Length units.Time
}

// Period writes the slice of the period itself, whose events are in the trace, or, with again, of its
// repetitions, whose events are not.
func (r *Recorder) Period(start, end units.Time, p Period, again bool) {
	if !r.Wanted(DetailStep) {
		return
	}
	track := r.sink.Track(trace.Track{Process: PeriodsPID, ProcessName: "periods", ProcessSort: PeriodsPID,
		Thread: 1, ThreadSort: 1, ThreadName: "steady state"})
	name := "period"
	if again {
		name = fmt.Sprintf("%d more periods, not drawn", p.Times)
	}
	r.slice(track, start, end, "period", name, append(r.args[:0], trace.Int("again", p.Times),
		trace.Num("period_us", p.Length.Micros())))
}
