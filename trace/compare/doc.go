// Package compare works on whole traces: totals (Stats), differences of two (Diff), and several in one file
// (Merge, Join). Traces of the simulator and of hardware have equal tracks and names, so they can be compared
// event by event.
package compare
