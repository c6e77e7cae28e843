package qp

import (
	"cmp"
	"slices"
)

// Ending is the end of a flow: its last acknowledgement arrived At (ps), after a travel time of Travels over
// the last link, where its transmission had number Began.
type Ending[N any] struct {
	Flow    int32
	At      int64
	Travels int64
	Began   N
}

// Compare orders endings by time; simultaneous ones by when the arrivals were scheduled.
func (x *Ending[N]) Compare(y *Ending[N], order func(a, b N) int) int {
	if d := cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(y.Travels, x.Travels)); d != 0 {
		return d
	}
	return order(x.Began, y.Began)
}

// SortEndings sorts by time, because dependent flows start in that order; simultaneous endings by the
// calendar if ordered, else stably.
func SortEndings[N any](all []Ending[N], ordered bool, calendar interface{ Order(a, b N) int }) {
	slices.SortStableFunc(all, func(a, b Ending[N]) int {
		if !ordered {
			return cmp.Compare(a.At, b.At)
		}
		return a.Compare(&b, calendar.Order)
	})
}

// StartOrder is the order in which the starts of flows are scheduled: independent flows by time, then others
// as their dependencies end. The zero value orders by flow number.
type StartOrder struct {
	of   []int32
	next int32
}

// NewStartOrder returns the order of n flows; free are the independent ones in the order of their starts.
func NewStartOrder(n int, free []int32) StartOrder {
	o := StartOrder{make([]int32, n), 0}
	for _, i := range free {
		o.Plan(i)
	}
	return o
}

// Plan schedules a flow's start after all others.
func (o *StartOrder) Plan(flow int32) {
	if o.of != nil {
		o.of[flow] = o.next
		o.next++
	}
}

// Of returns the place of a flow's start in the order.
func (o *StartOrder) Of(flow int32) int {
	if o.of != nil {
		return int(o.of[flow])
	}
	return int(flow)
}
