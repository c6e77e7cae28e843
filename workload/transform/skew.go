package transform

import (
	"fmt"
	"math"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// smallest is the minimum time of a kernel, however little its work is.
const smallest = 2 * units.Microsecond

// skew distributes the tokens unevenly over the ranks of expert groups, by their shares. The exchanges of a
// group alternate: to the experts and back, in the forward and in the backward pass. The computations in
// between are scaled with a rank's tokens.
func skew(p *workload.Program, share []float64) error {
	setting := fmt.Sprintf("skew of %d shares", len(share))
	found := false
	for comm := range p.Comms {
		if !exchanges(p, comm) {
			continue
		}
		if n := p.Comms[comm].Size(p.Ranks()); n != len(share) {
			return &VariantError{setting, fmt.Sprintf("the expert group %s has %d ranks",
				p.Comms[comm].Name, n),
				fmt.Sprintf("write %d shares, one for each rank of the group", n)}
		}
		found = true
		e := &experts{p: p, comm: comm, share: share, calls: callTable{p, len(p.Calls)}}
		if err := e.change(setting); err != nil {
			return err
		}
	}
	if !found {
		return &VariantError{setting, "the recording has no alltoall, so it shows no experts on other ranks",
			"give a recording of expert parallelism, or make one with workload gen --ep"}
	}
	return nil
}

// exchanges reports whether a communicator is of expert parallelism: it has an alltoall.
func exchanges(p *workload.Program, comm int) bool {
	if k := p.Comms[comm].Kind; k != workload.EP && k != workload.NoKind {
		return false
	}
	for i := range p.Calls {
		if int(p.Calls[i].Comm) == comm && p.Calls[i].Func == coll.AllToAll && p.Comms[comm].Size(p.Ranks()) >
			1 {
			return true
		}
	}
	return false
}

type experts struct {
	p     *workload.Program
	comm  int
	share []float64
	calls callTable
}

// sent returns the elements that a rank sends to each member in a call.
func (e *experts) sent(c *workload.Call) []int64 {
	if c.Splits != nil {
		return c.Splits
	}
	out := make([]int64, len(e.share))
	for i := range out {
		out[i] = c.Count
	}
	return out
}

// change rewrites the exchanges of all members, two by two.
func (e *experts) change(setting string) error {
	ranks := members(e.p, e.comm)
	steps := make([][]int, len(ranks)) // by member: its exchanges
	for m, r := range ranks {
		for i, s := range e.p.Lists[r].Steps {
			if s.Kind == workload.Issue && int(e.p.Calls[s.Call].Comm) == e.comm &&
				e.p.Calls[s.Call].Func == coll.AllToAll {
				steps[m] = append(steps[m], i)
			}
		}
		if len(steps[m])%2 != 0 || len(steps[m]) != len(steps[0]) {
			return &VariantError{setting,
				fmt.Sprintf("rank %d has %d exchanges with experts, which are not pairs to them and back", r,
					len(steps[m])), "give a recording of whole iterations of all ranks"}
		}
	}
	for k := 0; k < len(steps[0]); k += 2 {
		e.pair(ranks, steps, k)
	}
	return nil
}

// pair changes exchange k, to the experts, and k+1, back.
func (e *experts) pair(ranks []int32, steps [][]int, k int) {
	n := len(ranks)
	was, total := make([]int64, n), make([]int64, n) // tokens by expert as recorded; by sender
	for m, r := range ranks {
		for to, c := range e.sent(&e.p.Calls[e.p.Lists[r].Steps[steps[m][k]].Call]) {
			was[to] += c
			total[m] += c
		}
	}
	to := make([][]int64, n)
	now := make([]int64, n)
	for m := range ranks {
		to[m] = make([]int64, n)
		left := total[m]
		for x := range ranks {
			to[m][x] = min(int64(math.Round(float64(total[m])*e.share[x])), left)
			if x == n-1 {
				to[m][x] = left
			}
			left -= to[m][x]
			now[x] += to[m][x]
		}
	}
	for m, r := range ranks {
		list := e.p.Lists[r].Steps
		back := make([]int64, n)
		for x := range ranks {
			back[x] = to[x][m]
		}
		e.replace(&list[steps[m][k]], to[m])
		e.replace(&list[steps[m][k+1]], back)
		if was[m] > 0 {
			scale(list[steps[m][k]+1:steps[m][k+1]], float64(now[m])/float64(was[m]))
		}
	}
}

func (e *experts) replace(s *workload.Step, splits []int64) {
	c := e.p.Calls[s.Call]
	c.Splits, c.Recorded, c.Count = splits, 0, 0
	s.Call = e.calls.add(c)
}

// scale multiplies the times of computations, but not below smallest.
func scale(steps []workload.Step, by float64) {
	for i := range steps {
		if s := &steps[i]; onGPU(s) {
			s.Time = max(units.Time(float64(s.Time)*by), min(s.Time, smallest))
		}
	}
}
