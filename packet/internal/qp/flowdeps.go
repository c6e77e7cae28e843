package qp

import (
	"cmp"
	"slices"
)

// FlowDeps is what flows wait for.
type FlowDeps struct {
	after   [][]int32 // flows that wait for a flow
	missing []int32   // ends that a flow waits for
	ready   []int64   // the last of them, so far
	any     bool      // a flow waits
}

// NewFlowDeps is for n flows; of gives those that one waits for.
func NewFlowDeps(n int, of func(flow int) []int32) *FlowDeps {
	w := &FlowDeps{after: make([][]int32, n), missing: make([]int32, n), ready: make([]int64, n)}
	for i := range n {
		w.missing[i] = int32(len(of(i)))
		for _, d := range of(i) {
			w.after[d] = append(w.after[d], int32(i))
			w.any = true
		}
	}
	return w
}

// Any reports whether some flow waits for another.
func (w *FlowDeps) Any() bool { return w.any }

// Free reports whether a flow waits for none.
func (w *FlowDeps) Free(flow int) bool { return w.missing[flow] == 0 }

// Ended reports whether a flow has ended; begin is called for each that may begin then, with the last of
// the ends that it waited for.
func (w *FlowDeps) Ended(flow int32, at int64, begin func(flow int32, ready int64)) {
	for _, d := range w.after[flow] {
		w.ready[d] = max(w.ready[d], at)
		if w.missing[d]--; w.missing[d] == 0 {
			begin(d, w.ready[d])
		}
	}
}

// Starts are flows that start, in the order of their times in ps; of equal times the first stays
// first.
type Starts []Start

// Start is when a flow starts.
type Start struct {
	At   int64
	Flow int32
}

// Add takes a flow that is to start at a time.
func (s *Starts) Add(flow int32, at int64) {
	i, _ := slices.BinarySearchFunc(*s, at+1, func(b Start, t int64) int { return cmp.Compare(b.At, t) })
	*s = slices.Insert(*s, i, Start{at, flow})
}

// Next is when the first of them starts, and not before a time; never without one.
func (s Starts) Next(least int64) int64 {
	if len(s) == 0 {
		return 1<<63 - 1
	}
	return max(s[0].At, least)
}
