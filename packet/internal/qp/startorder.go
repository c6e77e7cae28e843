package qp

import (
	"cmp"
	"slices"
)

// Ending is a flow whose last acknowledgement arrived, at a time and after so long on its way over the last
// link, both in ps; Began is the number under which it began there, of type N.
type Ending[N any] struct {
	Flow    int32
	At      int64
	Travels int64
	Began   N
}

// Compare orders endings by time, those of equal times in the order in which they were planned; order
// compares numbers.
func (x *Ending[N]) Compare(y *Ending[N], order func(a, b N) int) int {
	if d := cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(y.Travels, x.Travels)); d != 0 {
		return d
	}
	return order(x.Began, y.Began)
}

// SortEndings puts endings in the order of time, however many of them a window has: flows that may begin
// then at one time do so in that order. Endings of equal times are in the order in which they were planned
// if a calendar says that, else they stay as they are.
func SortEndings[N any](all []Ending[N], ordered bool, calendar interface{ Order(a, b N) int }) {
	slices.SortStableFunc(all, func(a, b Ending[N]) int {
		if !ordered {
			return cmp.Compare(a.At, b.At)
		}
		return a.Compare(&b, calendar.Order)
	})
}

// StartOrder is the order in which starts of flows are planned: those that wait for none, by time, then
// others as what they wait for ends. The zero value has flows in the order of their numbers.
type StartOrder struct {
	of   []int32
	next int32
}

// NewStartOrder is for n flows of which some wait for none, in the order of their starts.
func NewStartOrder(n int, free []int32) StartOrder {
	o := StartOrder{make([]int32, n), 0}
	for _, i := range free {
		o.Plan(i)
	}
	return o
}

// Plan plans the start of a flow after all others.
func (o *StartOrder) Plan(flow int32) {
	if o.of != nil {
		o.of[flow] = o.next
		o.next++
	}
}

// Of is the place of a flow's start.
func (o *StartOrder) Of(flow int32) int {
	if o.of != nil {
		return int(o.of[flow])
	}
	return int(flow)
}
