package transform

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/simccl/simccl/workload"
)

// Place moves ranks to other positions of the machine: the steps of rank r become those of rank at[r]. The
// order of ranks in communicators is unchanged. at must be a permutation of the ranks.
func Place(p *workload.Program, at []int32) (*workload.Program, error) {
	n := len(p.Of)
	seen := make([]bool, n)
	for r, to := range at {
		if to < 0 || int(to) >= n || seen[to] {
			return nil, &Error{fmt.Sprintf("rank %d at place %d", r, to),
				fmt.Sprintf("write each place from 0 to %d once", n-1)}
		}
		seen[to] = true
	}
	if len(at) != n {
		return nil, &Error{fmt.Sprintf("%d places for %d ranks", len(at), n), "write a place for each rank"}
	}
	q := clone(p)
	for r, to := range at {
		q.Of[to] = p.Of[r]
		if p.Factor != nil {
			q.Factor[to] = p.Factor[r]
		}
	}
	identity := slices.IsSorted(at)
	for i := range q.Comms {
		c := &q.Comms[i]
		if identity {
			break
		}
		ranks := make([]int32, c.Size(n))
		for k := range ranks {
			ranks[k] = at[p.Comms[i].Rank(int32(k))]
		}
		c.Ranks = ranks
	}
	return q, nil
}

// Order returns the permutation for Place that puts the ranks of the first kind's groups next to each other,
// then those of the second, and so on: with tp,dp the ranks of a TP group are neighbours. Groups of the first
// kind that no other kind distinguishes keep their order.
func Order(p *workload.Program, kinds []workload.CommKind) ([]int32, error) {
	n := len(p.Of)
	at := make([][]int32, n)  // by rank: its rank in its groups, by kind
	first := make([]int32, n) // by rank: the first of its group of the first kind
	for r := range at {
		at[r], first[r] = make([]int32, len(kinds)), int32(r)
	}
	for k, kind := range kinds {
		found := false
		for i := range p.Comms {
			c := &p.Comms[i]
			if c.Kind != kind || c.Size(n) < 2 {
				continue
			}
			found = true
			for m := range int32(c.Size(n)) {
				at[c.Rank(m)][k] = m
				if k == 0 {
					first[c.Rank(m)] = c.Rank(0)
				}
			}
		}
		if !found {
			return nil, &Error{fmt.Sprintf("the job has no group of kind %s", kind),
				"name kinds that simccl workload show lists, or a place for each rank"}
		}
	}
	ranks := make([]int32, n)
	for r := range ranks {
		ranks[r] = int32(r)
	}
	slices.SortStableFunc(ranks, func(a, b int32) int {
		for k := len(kinds) - 1; k > 0; k-- {
			if c := cmp.Compare(at[a][k], at[b][k]); c != 0 {
				return c
			}
		}
		return cmp.Or(cmp.Compare(first[a], first[b]), cmp.Compare(at[a][0], at[b][0]))
	})
	places := make([]int32, n)
	for place, r := range ranks {
		places[r] = int32(place)
	}
	return places, nil
}
