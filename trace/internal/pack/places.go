package pack

import (
	"cmp"
	"slices"
)

// Places keeps tracks sorted by process and thread while tracks are added.
type Places struct {
	sorted []int32
	ranks  []int32 // by track: its position
}

// Sorted returns the first n tracks in order. The tracks of earlier calls must not have changed their
// relative order.
func (p *Places) Sorted(n int, compare func(a, b int32) (process, thread int)) []int32 {
	known := len(p.sorted)
	for i := known; i < n; i++ {
		p.sorted = append(p.sorted, int32(i))
	}
	order := func(a, b int32) int { return cmp.Or(compare(a, b)) }
	late := slices.Clone(p.sorted[known:])
	slices.SortFunc(late, order)
	for at := n - 1; len(late) > 0; at-- { // merged from the end, so that each known track moves only once
		if k := len(late) - 1; known > 0 && order(p.sorted[known-1], late[k]) > 0 {
			known--
			p.sorted[at] = p.sorted[known]
		} else {
			p.sorted[at], late = late[k], late[:k]
		}
	}
	return p.sorted
}

// Order returns the order of events on the first n tracks. single: all events of a process are on one thread.
func (p *Places) Order(n int, compare func(a, b int32) (process, thread int), single bool) Order {
	if len(p.ranks) == n {
		return Order{p.ranks}
	}
	list := p.Sorted(n, compare)
	p.ranks = make([]int32, n) // a batch may still be sorted by the old ranks
	rank := int32(0)
	for i, t := range list {
		if i > 0 {
			if process, _ := compare(list[i-1], t); !single || process != 0 {
				rank++
			}
		}
		p.ranks[t] = rank
	}
	return Order{p.ranks}
}
