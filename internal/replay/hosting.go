package replay

import (
	"context"
	"fmt"
	"slices"

	"github.com/simccl/simccl/internal/session"
	"github.com/simccl/simccl/internal/timeline"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/transform"
)

// Faster is how much faster the host is that Hosting tries.
const Faster = 1.2

// Shares of what a faster host can win at most (1 - 1/Faster of a step): from the first on the
// host bounds a step, from the second on it does in part.
const (
	wonBound = 0.5
	wonPart  = 0.1
)

// hostWorks is the part of a step from which on a faster host is tried.
const hostWorks = 0.5

// Hosting is what hosts take of the steps that a program has timed: medians of the rank whose
// host works longest, and of the rank whose steps are longest. Times are microseconds.
type Hosting struct {
	Limit  string  `json:"limit"` // host, "gpu or host", or gpu
	Rank   int     `json:"rank"`  // whose host works longest
	HostUs float64 `json:"hostUs"`
	StepUs float64 `json:"stepUs"`
	Steps  int     `json:"steps"`
	// FasterUs is what a step takes where all hosts are Faster times as fast; 0 where that was not
	// tried, since the host works less than half of a step.
	Faster   float64 `json:"faster"`
	FasterUs float64 `json:"fasterUs"`
}

// String is a sentence for a person.
func (h *Hosting) String() string {
	s := fmt.Sprintf("rank %d's host works %.1f of the %.1f ms of a step", h.Rank, h.HostUs/1000, h.StepUs/1000)
	if h.FasterUs > 0 {
		s += fmt.Sprintf("; hosts %g times as fast would make it %.1f ms", h.Faster, h.FasterUs/1000)
	}
	switch h.Limit {
	case LimitHost:
		return "host-bound: " + s
	case LimitNear:
		return "partly host-bound: " + s
	}
	return "bound by GPUs: " + s
}

// Between are the times of a job between the events that each rank has timed, each after the
// one before, in microseconds; nil where there are none.
func Between(res *session.Result, timed [][]int32) [][]float64 {
	out, found := make([][]float64, len(timed)), false
	for rank, steps := range timed {
		out[rank] = []float64{}
		for i := 1; i < len(steps); i++ {
			d := res.Spans[rank][steps[i]].End - res.Spans[rank][steps[i-1]].End
			out[rank], found = append(out[rank], us(d)), true
		}
	}
	if !found {
		return nil
	}
	return out
}

// Slowest is the longest median of several lists, and how many values the longest list has.
func Slowest(lists [][]float64) (us float64, rank, n int) {
	for i, list := range lists {
		if len(list) == 0 {
			continue
		}
		list = slices.Sorted(slices.Values(list))
		if m := list[len(list)/2]; m > us {
			us, rank = m, i
		}
		n = max(n, len(list))
	}
	return us, rank, n
}

// hosts are the times for which threads of each rank's host work between the events that it has
// timed, in microseconds. Threads that work at the same time count once.
func hosts(res *session.Result, timed [][]int32) [][]float64 {
	out := make([][]float64, len(timed))
	for rank, marks := range timed {
		if len(marks) < 2 {
			continue
		}
		var work []timeline.Span
		for i, at := range res.Spans[rank] {
			s := &res.Program.Lists[res.Program.Of[rank]].Steps[i]
			if s.Kind == workload.Compute && workload.OnHost(s.Stream) && at.End > at.Begin {
				work = append(work, timeline.Span{From: at.Begin, To: at.End})
			}
		}
		work = timeline.Merge(work)
		for i := 1; i < len(marks); i++ {
			from, to := res.Spans[rank][marks[i-1]].End, res.Spans[rank][marks[i]].End
			out[rank] = append(out[rank], us(within(work, from, to)))
		}
	}
	return out
}

// within is the length of what spans, in order and apart, have between two times.
func within(list []timeline.Span, from, to units.Time) (sum units.Time) {
	at, _ := slices.BinarySearchFunc(list, from, func(s timeline.Span, t units.Time) int { return int(min(max(s.To-t, -1), 1)) })
	for ; at < len(list) && list[at].From < to; at++ {
		sum += max(min(list[at].To, to)-max(list[at].From, from), 0)
	}
	return sum
}

// Hosts says what the hosts of a job take that has run as p says, by the events that its program
// has timed: nil where it has timed none. Where a host works half of a step or more, the job runs
// once more with hosts that are Faster times as fast.
func Hosts(ctx context.Context, p *workload.Program, m *session.Machine, res *session.Result, timed [][]int32, f session.Fidelity) (*Hosting, error) {
	step, _, n := Slowest(Between(res, timed))
	if n == 0 {
		return nil, nil
	}
	h := &Hosting{Limit: LimitGPU, StepUs: step, Steps: n, Faster: Faster}
	h.HostUs, h.Rank, _ = Slowest(hosts(res, timed))
	if h.HostUs < hostWorks*step {
		return h, nil
	}
	q, err := transform.Host(p, 1/Faster)
	if err != nil {
		return nil, err
	}
	fast, err := m.Run(ctx, q, session.Options{Fidelity: f})
	if err != nil {
		return nil, err
	}
	h.FasterUs, _, _ = Slowest(Between(fast, timed))
	h.Limit = limitOf(1-h.FasterUs/step, 1-1/Faster)
	return h, nil
}

// limitOf says what bounds steps of which a faster host wins a part, of at most most.
func limitOf(won, most float64) string {
	switch {
	case won >= wonBound*most:
		return LimitHost
	case won >= wonPart*most:
		return LimitNear
	}
	return LimitGPU
}
