package streams

import (
	"fmt"

	"github.com/simccl/simccl/workload"
)

// Blocked is a rank that waits, and the call it waits in.
type Blocked struct {
	Rank int32 // rank of the job
	List string
	Step int32
	Call string // "all_reduce on tp0"
}

// String returns rank, call and place in the list.
func (b *Blocked) String() string {
	return fmt.Sprintf("rank %d in %s (list %s, step %d)", b.Rank, b.Call, b.List, b.Step)
}

// DeadlockError is returned for a job that never ends: its ranks wait for each other, as they would with
// NCCL, which has no timeout.
type DeadlockError struct {
	// Waits and For are two ranks of which the first waits for the second; For.Call is the call that the
	// second is in instead, empty if it has no steps left.
	Waits, For Blocked
	Ranks      int // number of ranks that never end
}

func (e *DeadlockError) Error() string {
	if e.For.Call == "" {
		return fmt.Sprintf("the job hangs: %v waits for rank %d, which has no such call left; %d ranks "+
			"never end", &e.Waits, e.For.Rank, e.Ranks)
	}
	return fmt.Sprintf("the job hangs: %v waits for %v; %d ranks never end", &e.Waits, &e.For, e.Ranks)
}

// deadlock returns a *DeadlockError if a job without further events has unfinished steps, else nil.
func (r *run) deadlock() error {
	stuck := 0
	for rank := range r.done {
		if int(r.done[rank]) < len(r.graphs[r.p.Of[rank]].nodes) {
			stuck++
		}
	}
	if stuck == 0 {
		return nil
	}
	e := &DeadlockError{Ranks: stuck}
	for o := range r.ops {
		x := &r.ops[o]
		if x.begun == 0 || x.ended == int32(len(x.kernels)) || x.begun == int32(len(x.kernels)) {
			continue
		}
		waits, missing := int32(-1), int32(-1)
		for m, k := range x.kernels {
			if k >= 0 && waits < 0 {
				waits = k
			}
			if k == -1 && missing < 0 {
				missing = int32(m)
			}
		}
		if waits < 0 {
			continue
		}
		e.Waits = r.blocked(r.kernels[waits].place)
		e.For = r.blockedRank(r.p.Comms[x.comm].Rank(r.backendMember(x, missing)))
		if e.For.Call != "" { // a pair in which both calls are known is preferred
			break
		}
	}
	return e
}

// blocked describes the place where a rank waits.
func (r *run) blocked(p place) Blocked {
	list := r.p.Of[p.rank]
	b := Blocked{Rank: p.rank, List: r.p.Lists[list].Name, Step: p.node}
	s := &r.p.Lists[list].Steps[p.node]
	switch s.Kind {
	case workload.Issue:
		c := &r.p.Calls[s.Call]
		b.Call = fmt.Sprintf("%s on %s", c.Func.TestName(), r.p.Comms[c.Comm].Name)
		if messageHalf(c.Func) {
			b.Call = fmt.Sprintf("%s with rank %d on %s", c.Func.TestName(), c.Peer, r.p.Comms[c.Comm].Name)
		}
	default:
		b.Call = s.Kind.String()
	}
	return b
}

// blockedRank describes where a rank is that has not reached a call: in a kernel that waits for other ranks
// or for SMs.
func (r *run) blockedRank(rank int32) Blocked {
	list := r.p.Of[rank]
	for i := range r.graphs[list].nodes {
		n := &r.graphs[list].nodes[i]
		if (n.kind == kernel || n.kind == message) && r.left[rank][i] == 0 {
			return r.blocked(place{rank, int32(i)})
		}
	}
	return Blocked{Rank: rank, List: r.p.Lists[list].Name}
}
