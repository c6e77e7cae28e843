package replay

import (
	"context"
	"fmt"
	"slices"

	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/transform"
)

// Faster is the speed-up of the hosts that Hosting tries.
const Faster = 1.2

// Thresholds on the fraction of the largest possible gain (1 - 1/Faster of a step) that faster hosts achieve:
// above the first the host limits a step, above the second it does in part.
const (
	wonBound = 0.5
	wonPart  = 0.1
)

// hostWorks is the share of a step that a host must work for faster hosts to be simulated.
const hostWorks = 0.5

// Hosting is the host's share of the steps that a program has timed with events: medians of the rank whose
// host works longest, and of the rank with the longest steps. Times are in microseconds.
type Hosting struct {
	Limit  string  `json:"limit"` // host, "gpu or host", or gpu
	Rank   int     `json:"rank"`  // whose host works longest
	HostUs float64 `json:"hostUs"`
	// QuickUs is that host's work in its quickest step; other steps are longer if neighbours of a virtual
	// machine disturb them.
	QuickUs float64 `json:"quickUs"`
	StepUs  float64 `json:"stepUs"`
	Steps   int     `json:"steps"`
	// FasterUs is the time of a step if all hosts are Faster times as fast; 0 if that was not simulated,
	// because the host works less than half of a step.
	Faster   float64 `json:"faster"`
	FasterUs float64 `json:"fasterUs"`
}

// String describes the result in one sentence.
func (h *Hosting) String() string {
	s := fmt.Sprintf("rank %d's host works %.1f of the %.1f ms of a step (%.1f in its quickest)", h.Rank,
		h.HostUs/1000, h.StepUs/1000, h.QuickUs/1000)
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

// Between returns, for each rank, the times between the events that the rank has timed, in microseconds:
// those of the longest series in which each pair of events begins where the previous one ends; if no two
// pairs are adjacent, all of them. It returns nil if there are none.
func Between(res *job.Result, timed [][][2]int32) [][]float64 {
	out, found := make([][]float64, len(timed)), false
	for rank, pairs := range timed {
		out[rank] = []float64{}
		for _, x := range series(res, rank, pairs) {
			out[rank], found = append(out[rank], us(length(res, rank, x))), true
		}
	}
	if !found {
		return nil
	}
	return out
}

func length(res *job.Result, rank int, x [2]int32) units.Time {
	return max(res.Spans[rank][x[1]].End-res.Spans[rank][x[0]].End, 0)
}

// series returns the longest chain of a rank's pairs in which each begins where the previous one ends; among
// chains of equal length the one with the longest time.
func series(res *job.Result, rank int, pairs [][2]int32) (best [][2]int32) {
	var lists [][][2]int32
	ends := map[int32]int{} // by the last step, which list
	for _, x := range pairs {
		i, ok := ends[x[0]]
		if !ok {
			i = len(lists)
			lists = append(lists, nil)
		}
		delete(ends, x[0])
		lists[i], ends[x[1]] = append(lists[i], x), i
	}
	took := func(list [][2]int32) units.Time {
		return length(res, rank, [2]int32{list[0][0], list[len(list)-1][1]})
	}
	for _, list := range lists {
		if len(list) > len(best) || len(list) == len(best) && took(list) > took(best) {
			best = list
		}
	}
	if len(best) == 1 {
		return pairs
	}
	return best
}

// Slowest returns the longest median of several lists, the index of that list, and the length of the longest
// list.
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

// hosts returns, for each rank, the time that its busiest host thread works between these events, in
// microseconds. A thread that waits for another thread counts as working, because only its calls are known.
func hosts(res *job.Result, timed [][][2]int32) [][]float64 {
	out := make([][]float64, len(timed))
	for rank, pairs := range timed {
		steps := res.Program.Lists[res.Program.Of[rank]].Steps
		for _, x := range series(res, rank, pairs) {
			work, most := map[int32]units.Time{}, units.Time(0)
			for i := x[0]; i < x[1]; i++ {
				if s := &steps[i]; s.Kind == workload.Compute && workload.OnHost(s.Stream) {
					work[s.Stream] += s.Time
					most = max(most, work[s.Stream])
				}
			}
			out[rank] = append(out[rank], us(most))
		}
	}
	return out
}

// Hosts computes the share of the hosts in a job that ran as p, from the events that its program has timed;
// nil if there are none. If a host works half of a step or more, it simulates the job again with hosts that
// are Faster times as fast.
func Hosts(ctx context.Context, p *workload.Program, m *job.Machine, res *job.Result, timed [][][2]int32,
	f job.Fidelity) (*Hosting, error) {
	step, _, n := Slowest(Between(res, timed))
	if n == 0 {
		return nil, nil
	}
	h := &Hosting{Limit: LimitGPU, StepUs: step, Steps: n, Faster: Faster}
	work := hosts(res, timed)
	h.HostUs, h.Rank, _ = Slowest(work)
	if list := work[h.Rank]; len(list) > 0 {
		h.QuickUs = slices.Min(list)
	}
	if h.HostUs < hostWorks*step {
		return h, nil
	}
	q, err := transform.Host(p, 1/Faster)
	if err != nil {
		return nil, err
	}
	fast, err := m.Run(ctx, q, job.Options{Fidelity: f})
	if err != nil {
		return nil, err
	}
	h.FasterUs, _, _ = Slowest(Between(fast, timed))
	h.Limit = limitOf(1-h.FasterUs/step, 1-1/Faster)
	return h, nil
}

// limitOf returns the limit of steps that faster hosts shorten by the fraction won; most is the largest
// possible fraction.
func limitOf(won, most float64) string {
	switch {
	case won >= wonBound*most:
		return LimitHost
	case won >= wonPart*most:
		return LimitNear
	}
	return LimitGPU
}
