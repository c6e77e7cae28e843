package job

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Two calls on one link slow each other by more than their bytes explain: a call moves data in bursts, and
// how the bursts of two calls meet depends on both. So two calls of different communicators that share links
// are simulated together once, step by step, and the need of each on a shared link is set such that max-min
// sharing gives it the speed of that simulation. Where that simulation would take too long, a pair of equal
// calls replaces it: they take as long as one of them on links of half the speed.

// fullest returns the factor, at least 1, by which a call's need of a link exceeds its bytes when an equal
// call shares the link.
func (x *planned) fullest() float64 {
	most := 0.0
	for k := range x.alone.Links {
		most = math.Max(most, float64(x.alone.Links[k].Ideal())/float64(x.moving()))
	}
	if x.alone.Half == 0 || most == 0 {
		return 1
	}
	return math.Max(1, float64(x.moving()+x.alone.Half-x.alone.Time)/float64(x.moving())/2/most)
}

// Limits of the simulated pairs: ranks of each call, bytes that all ranks of a call move together (a larger
// call is replaced by a smaller one), and number of pairs.
const (
	pairRanks = 16
	pairBytes = 2 << 30
	maxPairs  = 64
)

// partner is, for one link, the call with the longest total time among the calls of a communicator's
// resources.
type partner struct {
	root, call int32
	weight     float64 // picoseconds of all its calls in the job
}

// partly corrects the needs of calls on links that calls of other communicators use too: from simulated pairs
// or, without these, in proportion to the links that are shared.
func (c *costing) partly(ctx context.Context, costs []streams.Cost) error {
	on := c.partners(costs)
	known := &pairs{known: map[pairKey][2]float64{}, groups: c.groups()}
	for i, plain := range c.plain {
		if len(plain) == 0 || message(c.p.Calls[i].Func) {
			continue
		}
		root := c.p.Resources(c.p.Calls[i].Comm)
		needs := costs[i].Needs[:len(plain)]
		var shared, all float64
		for k := range plain {
			if all += plain[k]; others(on[needs[k].Resource], root) {
				shared += plain[k]
			}
		}
		for k := range plain {
			if needs[k].Bytes = plain[k]; all > 0 {
				needs[k].Share = plain[k] + (needs[k].Share-plain[k])*shared/all
			}
			share, err := c.together(ctx, costs, i, k, on[needs[k].Resource], known)
			if err != nil {
				return err
			}
			if share > 0 {
				needs[k].Share = share
			}
		}
	}
	return nil
}

func others(list []partner, root int32) bool {
	return len(list) > 1 || len(list) == 1 && list[0].root != root
}

// partners lists, by resource, the calls that use it: one call for each communicator (of those that share
// resources, one for all).
func (c *costing) partners(costs []streams.Cost) [][]partner {
	on := make([][]partner, len(c.names))
	times := c.times()
	for i := range c.plain {
		if message(c.p.Calls[i].Func) {
			continue
		}
		p := partner{c.p.Resources(c.p.Calls[i].Comm), int32(i), float64(costs[i].Time) * float64(times[i])}
	next:
		for k := range c.plain[i] {
			list := on[costs[i].Needs[k].Resource]
			for n := range list {
				if list[n].root == p.root {
					if p.weight > list[n].weight {
						list[n] = p
					}
					continue next
				}
			}
			on[costs[i].Needs[k].Resource] = append(list, p)
		}
	}
	return on
}

// together returns the need of call i on its k-th link while calls of other communicators use it: the mean
// over these calls, weighted by their times. 0: a pair could not be simulated.
func (c *costing) together(ctx context.Context, costs []streams.Cost, i, k int, list []partner,
	known *pairs) (float64, error) {
	root := c.p.Resources(c.p.Calls[i].Comm)
	var sum, weight float64
	for _, p := range list {
		if p.root == root || p.weight == 0 {
			continue
		}
		rates, ok, err := c.pair(ctx, i, int(p.call), known)
		if err != nil {
			return 0, err
		}
		if !ok {
			return 0, nil
		}
		if behind(rates) {
			c.wait(costs, int32(i), p.call, rates[0])
		}
		sum += p.weight * needBeside(c.plain[i][k], rates)
		weight += p.weight
	}
	if weight == 0 {
		return 0, nil
	}
	return math.Min(1, sum/weight), nil
}

// slowest is the lower bound of a measured rate.
const slowest = 0.05

// held is the rate from which on a call counts as not slowed.
const held = 0.98

// needBeside returns the need of a link at which max-min sharing, with half of the link each, gives a call
// the rate that it had in the simulated pair (rates[0]).
func needBeside(plain float64, rates [2]float64) float64 {
	if rates[0] >= held || behind(rates) {
		return plain
	}
	return 0.5 / rates[0]
}

// behind reports whether the first call of a pair is slowed while the second is not: it waits for latency
// (its flags and small messages queue behind the other's data) rather than for bandwidth.
func behind(rates [2]float64) bool { return rates[0] < held && rates[1] >= held }

// wait records that call i runs at a lower rate while calls of the other one's communicator are in progress.
func (c *costing) wait(costs []streams.Cost, i, other int32, rate float64) {
	root := c.p.Resources(c.p.Calls[other].Comm)
	x := &costs[i]
	if !slices.ContainsFunc(x.Behind, func(b streams.Behind) bool { return b.Comm == root }) {
		x.Behind = append(x.Behind, streams.Behind{Comm: root, Rate: rate})
	}
}

// pairKey identifies a pair of operations, the relative position of their communicators, and how often they
// run in succession.
type pairKey struct {
	a, b  *planned
	place string
	times int
}

// pairs holds the rates of the calls that were simulated together.
type pairs struct {
	known  map[pairKey][2]float64
	groups [][]int32
}

// pair simulates two calls together and returns the rate of each relative to running alone (1); ok is false
// where that would take too long.
func (c *costing) pair(ctx context.Context, i, k int, known *pairs) (rates [2]float64, ok bool, err error) {
	a, b := c.comms[c.p.Calls[i].Comm], c.comms[c.p.Calls[k].Comm]
	for _, at := range []*communicator{a, b} {
		if at.layout.NRanks > pairRanks {
			return rates, false, nil
		}
	}
	x, y := c.calls[i], c.calls[k]
	times := meet(known.groups, i, k)
	key := pairKey{x, y, relative(a, b), times}
	if r, ok := known.known[key]; ok {
		return r, r[0] > 0, nil
	}
	known.known[key] = rates
	small := [2]*planned{}
	for n, at := range []*communicator{a, b} {
		if small[n], err = c.smaller(ctx, at, [...]*planned{x, y}[n]); err != nil || small[n] == nil {
			return rates, false, err
		}
	}
	if len(known.known) > 2*maxPairs {
		return rates, false, nil
	}
	done, err := c.beside(ctx, small, [2]*communicator{a, b}, times)
	if err != nil {
		return rates, false, err
	}
	for n, p := range small {
		alone := p.alone.Time + units.Time(done[n].times-1)*p.alone.Again
		beside := done[n].at
		if after := beside - done[1-n].at; times == 1 && after > 0 { // the rest of its time it runs alone
			alone, beside = max(0, alone-after), beside-after
		}
		rates[n] = math.Min(1, math.Max(float64(alone)/float64(beside), slowest))
	}
	known.known[key] = rates
	known.known[pairKey{y, x, relative(b, a), times}] = [2]float64{rates[1], rates[0]}
	return rates, true, nil
}

// smaller returns the operation itself or, if it moves too many bytes to be simulated in a pair, one of fewer
// elements with the same algorithm, protocol and number of channels; nil if there is none.
func (c *costing) smaller(ctx context.Context, at *communicator, x *planned) (*planned, error) {
	if x.group {
		return x, nil
	}
	if x.plan == nil { // a kernel that is simulated as a whole, without a plan
		return nil, nil
	}
	most := units.Bytes(0)
	for i := range x.alone.Links {
		most = max(most, x.alone.Links[i].Bytes)
	}
	if most *= units.Bytes(at.layout.NRanks); most <= pairBytes {
		return x, nil
	}
	op := x.op
	op.Count = max(1, op.Count/(int64(most)/pairBytes+1))
	y, err := c.planned(ctx, at, op)
	if err != nil || y.choice.Algo != x.choice.Algo || y.choice.Proto != x.choice.Proto || y.sms != x.sms {
		return nil, err
	}
	return y, nil
}

// relative returns the relative position of two communicators: for each rank of b its index in a, or "-".
func relative(a, b *communicator) string {
	var s strings.Builder
	at := 0
	for _, r := range b.ranks {
		for at < len(a.ranks) && a.ranks[at] < r {
			at++
		}
		if at < len(a.ranks) && a.ranks[at] == r {
			fmt.Fprintf(&s, "%d ", at)
		} else {
			s.WriteString("- ")
		}
	}
	return s.String()
}

// pairTimes is the least number of times that each call of a simulated pair runs. Calls of one group begin
// together and run only once.
const pairTimes = 3

// groups returns the distinct calls of each group of the program; equal groups appear once.
func (c *costing) groups() [][]int32 {
	var out [][]int32
	for i := range c.p.Lists {
		depth := 0
		var calls []int32
		for _, s := range c.p.Lists[i].Steps {
			switch s.Kind {
			case workload.GroupStart:
				depth++
			case workload.Issue:
				if depth > 0 && !slices.Contains(calls, s.Call) && len(calls) < maxPairs {
					calls = append(calls, s.Call)
				}
			case workload.GroupEnd:
				if depth--; depth > 0 {
					continue
				}
				if len(calls) > 1 && !slices.ContainsFunc(out, func(g []int32) bool {
					return slices.Equal(g, calls)
				}) && len(out) < maxPairs {
					out = append(out, calls)
				}
				calls = nil
			}
		}
	}
	return out
}

// meet returns how often calls i and k run in succession while both are in progress.
func meet(groups [][]int32, i, k int) int {
	if slices.ContainsFunc(groups, func(g []int32) bool {
		return slices.Contains(g, int32(i)) && slices.Contains(g, int32(k))
	}) {
		return 1
	}
	return pairTimes
}

// progress is the number of times that a call has ended on all ranks, and when it last did.
type progress struct {
	times int
	at    units.Time
}

// beside runs two calls repeatedly, without a pause, until each has ended the given number of times.
func (c *costing) beside(ctx context.Context, x [2]*planned, at [2]*communicator,
	times int) (done [2]progress, err error) {
	s := sim.NewSession(ctx, c.p.Ranks())
	var kinds [2]int32
	for i := range x {
		if kinds[i], err = s.Declare(c.m.config(at[i]), located(x[i].plan, at[i]), at[i].ranks); err != nil {
			return done, err
		}
	}
	s.Seal()
	b := pairRun{s: s, kinds: kinds, once: times == 1, of: map[int32]int{}}
	for i := range at {
		b.done[i], b.ops[i] = make([]int, len(at[i].ranks)), nil
		for r := range at[i].ranks {
			if err := b.start(i, int32(r), 0); err != nil {
				return done, err
			}
		}
	}
	for b.all[0].times < times || b.all[1].times < times {
		now, ok := s.Next()
		if !ok {
			return done, fmt.Errorf("two calls at once do not end: a defect of the simulator")
		}
		b.ended = b.ended[:0]
		if err := s.Advance(now, func(op, rank int32) {
			b.ended = append(b.ended, [2]int32{op, rank})
		}); err != nil {
			return done, err
		}
		if err := b.next(now); err != nil {
			return done, err
		}
	}
	return b.all, nil
}

// pairRun is the state of a simulated pair.
type pairRun struct {
	s     *sim.Session
	kinds [2]int32
	once  bool          // no kernel is run again
	of    map[int32]int // operation → index of the call (0 or 1)
	ops   [2][]int32    // operations, in order
	done  [2][]int      // by rank: number of operations that it has ended
	all   [2]progress
	ended [][2]int32
}

// start begins a rank's next kernel.
func (b *pairRun) start(i int, rank int32, now units.Time) error {
	n := b.done[i][rank]
	if n == len(b.ops[i]) {
		op, err := b.s.Open(b.kinds[i])
		if err != nil {
			return err
		}
		b.ops[i], b.of[op] = append(b.ops[i], op), i
	}
	b.s.Start(b.ops[i][n], rank, now)
	return nil
}

// next restarts the ranks whose kernels have ended.
func (b *pairRun) next(now units.Time) error {
	for _, e := range b.ended {
		i, rank := b.of[e[0]], e[1]
		b.done[i][rank]++
		if least := slices.Min(b.done[i]); least > b.all[i].times {
			b.all[i] = progress{least, now}
		}
		if b.once {
			continue
		}
		if err := b.start(i, rank, now); err != nil {
			return err
		}
	}
	return nil
}
