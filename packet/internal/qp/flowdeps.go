package qp

import (
	"cmp"
	"slices"
)

// FlowDeps tracks which flows wait for the end of others.
type FlowDeps struct {
	after   [][]int32 // by flow: those that wait for it
	missing []int32   // by flow: ends that it waits for
	ready   []int64   // by flow: the latest of those ends so far (ps)
	any     bool      // some flow waits
}

// NewFlowDeps covers n flows; of returns those that a flow waits for.
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

func (w *FlowDeps) Any() bool { return w.any }

// Free reports whether a flow waits for nothing any more.
func (w *FlowDeps) Free(flow int) bool { return w.missing[flow] == 0 }

// Ended records the end of a flow at a time, and calls begin for each flow that waited for nothing else, with
// the latest of the ends that it waited for.
func (w *FlowDeps) Ended(flow int32, at int64, begin func(flow int32, ready int64)) {
	for _, d := range w.after[flow] {
		w.ready[d] = max(w.ready[d], at)
		if w.missing[d]--; w.missing[d] == 0 {
			begin(d, w.ready[d])
		}
	}
}

// Starts is a queue of flows by start; equal times keep their order.
type Starts []Start

// Start is the start of a flow in ps.
type Start struct {
	At   int64
	Flow int32
}

func (s *Starts) Add(flow int32, at int64) {
	i, _ := slices.BinarySearchFunc(*s, at+1, func(b Start, t int64) int { return cmp.Compare(b.At, t) })
	*s = slices.Insert(*s, i, Start{at, flow})
}

// Next returns the first start, at least least; never without any.
func (s Starts) Next(least int64) int64 {
	if len(s) == 0 {
		return 1<<63 - 1
	}
	return max(s[0].At, least)
}
