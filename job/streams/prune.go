package streams

import (
	"encoding/binary"
	"math"

	"github.com/simccl/simccl/internal/maxmin"
)

// needOf is one call's need of a resource.
type needOf struct {
	call         int32
	share, bytes float64
}

// largest returns the largest need for any number of users.
func (n *needOf) largest() float64 { return math.Max(n.share, n.bytes) }

// pruned returns, by call, the needs of those resources that can ever slow a call: the communicators' largest
// calls together need more than its capacity, and it leads the resources with the same users (maxmin.Leads).
func (r *run) pruned() [][]Need {
	users := make([][]needOf, r.in.Resources)
	for i := range r.in.Costs {
		for _, n := range r.in.Costs[i].Needs {
			users[n.Resource] = append(users[n.Resource], needOf{int32(i), n.Share, n.Bytes})
		}
	}
	var full []int32
	for i := range users {
		if r.most(users[i]) > slackSum {
			full = append(full, int32(i))
		}
	}
	leads := maxmin.Leads(len(full), func(i int) string { return callsOf(users[full[i]]) },
		func(b, a int) bool { return covers(users[full[b]], users[full[a]]) })
	out := make([][]Need, len(r.in.Costs))
	for i, lead := range leads {
		if lead != i {
			continue
		}
		for _, u := range users[full[i]] {
			out[u.call] = append(out[u.call], Need{full[i], u.share, u.bytes})
		}
	}
	return out
}

// callsOf returns the calls of a resource's users as a key.
func callsOf(users []needOf) string {
	key := make([]byte, 0, 4*len(users))
	for i := range users {
		key = binary.LittleEndian.AppendUint32(key, uint32(users[i].call))
	}
	return string(key)
}

// covers reports whether all users of a, which are those of b, need b at least as much.
func covers(b, a []needOf) bool {
	for i := range a {
		if b[i].share < a[i].share || b[i].bytes < a[i].bytes {
			return false
		}
	}
	return true
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
