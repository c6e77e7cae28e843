package scenario

import (
	"fmt"

	"github.com/simccl/simccl/units"
)

// WindowError warns that the trace, for which all is simulated with jitter, shows
// another time than the result, for which a part was; or that its ranks are in lockstep,
// so that periods recur.
type WindowError struct {
	Whole, Window units.Time
	Lockstep      bool
}

// Error names both times.
func (e *WindowError) Error() string {
	if e.Lockstep {
		return fmt.Sprintf("the trace has its ranks in lockstep, without jitter, so that periods recur: "+
			"%.2f us; the table has %.2f us", e.Whole.Micros(), e.Window.Micros())
	}
	return fmt.Sprintf("the trace has all iterations with jitter: %.2f us; the table's %.2f us follow from "+
		"a window of them", e.Whole.Micros(), e.Window.Micros())
}

// NearError warns that the trace, in which every rank is simulated, shows another
// time than the approximate one of the result.
type NearError struct{ Exact, Near units.Time }

// Error names both times.
func (e *NearError) Error() string {
	return fmt.Sprintf("the trace has every rank by itself: %.2f us; the table's %.2f us are near",
		e.Exact.Micros(), e.Near.Micros())
}
