package qp

import (
	"cmp"
	"slices"
)

// FlowDeps tracks the flows that wait for other flows to end.
type FlowDeps struct {
	after   [][]int32 // by flow: the flows that wait for it
	missing []int32   // by flow: number of flows that must still end before it
	ready   []int64   // by flow: latest end so far of the flows it waits for (ps)
	any     bool      // some flow has dependencies
}

// NewFlowDeps returns the dependencies of n flows; of lists the flows that a flow waits for.
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

// Free reports whether all flows that a flow waits for have ended.
func (w *FlowDeps) Free(flow int) bool { return w.missing[flow] == 0 }

// Ended records the end of a flow at a time (ps), and calls begin for each flow whose last dependency it was,
// with the latest end of its dependencies.
func (w *FlowDeps) Ended(flow int32, at int64, begin func(flow int32, ready int64)) {
	for _, d := range w.after[flow] {
		w.ready[d] = max(w.ready[d], at)
		if w.missing[d]--; w.missing[d] == 0 {
			begin(d, w.ready[d])
		}
	}
}

// Starts is a queue of flows sorted by start time; equal times keep their order.
type Starts []Start

// Start is the scheduled start of a flow (ps).
type Start struct {
	At   int64
	Flow int32
}

func (s *Starts) Add(flow int32, at int64) {
	i, _ := slices.BinarySearchFunc(*s, at+1, func(b Start, t int64) int { return cmp.Compare(b.At, t) })
	*s = slices.Insert(*s, i, Start{at, flow})
}

// Next returns the first start time, but not less than least; never if there is none.
func (s Starts) Next(least int64) int64 {
	if len(s) == 0 {
		return 1<<63 - 1
	}
	return max(s[0].At, least)
}
