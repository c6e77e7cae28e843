// Package compare works on whole traces: what they hold (Stats), where two of
// them part (Diff), and both in one file (Merge). Traces of the simulator and
// of hardware have equal tracks and names, so they meet event by event.
package compare
