package streams

import (
	"cmp"
	"math"
	"slices"
)

// needOf is one call's need of a resource.
type needOf struct {
	call         int32
	share, bytes float64
}

// largest returns the largest need for any number of users.
func (n *needOf) largest() float64 { return math.Max(n.share, n.bytes) }

// pruned returns, by call, the needs of those resources that can ever slow a call: the communicators' largest
// calls together need more than its capacity, and no other resource with the same users is needed at least as
// much by all of them.
func (r *run) pruned() [][]Need {
	users := make([][]needOf, r.in.Resources)
	for i := range r.in.Costs {
		for _, n := range r.in.Costs[i].Needs {
			users[n.Resource] = append(users[n.Resource], needOf{int32(i), n.Share, n.Bytes})
		}
	}
	out := make([][]Need, len(r.in.Costs))
	var kept []int32 // sorted by their users
	for i := range users {
		if r.most(users[i]) > slackSum {
			kept = append(kept, int32(i))
		}
	}
	slices.SortStableFunc(kept, func(a, b int32) int {
		return slices.CompareFunc(users[a], users[b], func(x, y needOf) int {
			return cmp.Compare(x.call, y.call)
		})
	})
	same := func(a, b int32) bool {
		return slices.EqualFunc(users[a], users[b], func(x, y needOf) bool { return x.call == y.call })
	}
	for i := 0; i < len(kept); {
		j := i + 1
		for j < len(kept) && same(kept[i], kept[j]) {
			j++
		}
		for _, k := range undominated(kept[i:j], users) {
			for _, u := range users[k] {
				out[u.call] = append(out[u.call], Need{k, u.share, u.bytes})
			}
		}
		i = j
	}
	return out
}

// most returns the largest sum of needs of a resource: at any time one call runs per communicator.
func (r *run) most(users []needOf) float64 {
	sum := 0.0
	of := map[int32]float64{}
	for i := range users {
		u := &users[i]
		root := r.p.Resources(r.p.Calls[u.call].Comm)
		old := of[root]
		if r.overlaps(u.call) {
			sum += u.largest() * 2
			continue
		}
		of[root] = math.Max(old, u.largest())
		sum += of[root] - old
	}
	return sum
}

// overlaps reports whether several operations of one call, or of its communicator, can be in progress on a
// resource: messages between different ranks, and operations whose members begin and end at different times.
func (r *run) overlaps(call int32) bool {
	c := &r.in.Costs[call]
	return messageHalf(r.p.Calls[call].Func) || len(c.Slack) > 0
}

// undominated lists the resources of a set with the same users that no other resource of the set dominates.
func undominated(set []int32, users [][]needOf) []int32 {
	if len(set) > maxCompared {
		return set
	}
	var out []int32
	for i, a := range set {
		if !slices.ContainsFunc(set, func(b int32) bool {
			return b != a && dominates(users[b], users[a], slices.Index(set, b) < i)
		}) {
			out = append(out, a)
		}
	}
	return out
}

// maxCompared bounds the size of a set that undominated compares.
const maxCompared = 256

// dominates reports whether all users need b at least as much as a, and one needs it more; of equal resources
// the first dominates.
func dominates(b, a []needOf, first bool) bool {
	more := first
	for i := range a {
		if b[i].share < a[i].share || b[i].bytes < a[i].bytes {
			return false
		}
		more = more || b[i].share > a[i].share || b[i].bytes > a[i].bytes
	}
	return more
}
