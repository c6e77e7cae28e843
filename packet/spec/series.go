package spec

import (
	"cmp"
	"math"
	"slices"

	"github.com/simccl/simccl/units"
)

// Series is the sampled history of a run, with Config.Every: values at each multiple of Every after the
// earliest start of a flow, and at the end. Only changes are kept. A value at a time excludes the events of
// that very time; a change before a time without events may bear its own time.
type Series struct {
	Queues []QueueSample
	Rates  []RateSample
	Pauses []PauseSample
	End    units.Time // of the last window: the last values hold until then
}

// QueueSample is the length of a switch's egress queue from a time on: the bytes that wait in all data
// priorities, without the frame in transmission.
type QueueSample struct {
	At    units.Time
	Link  int32 // 2·cable for the port at Cable.A, 2·cable+1 for the port at B
	Bytes int64
}

// RateSample is the state of a flow at a time: the rate that its congestion control allows in bit/s, and the
// acknowledged payload in bytes.
type RateSample struct {
	At    units.Time
	Flow  int32
	Rate  int64
	Acked int64
}

// PauseSample is a PFC frame that arrived at the port of a link.
type PauseSample struct {
	At    units.Time
	Link  int32
	Class uint8
	Pause bool // false: RESUME
}

// MostSamples bounds the number of samples that a run keeps.
const MostSamples = 4 << 20

// Sampler collects a Series.
type Sampler struct {
	Series
	start, every units.Time
	next         units.Time // time of the next sample
	lengths      []int64    // by link: the length kept last
	rates        []int64    // by flow: the rate kept last
	acked        []int64
	flows        []int32 // flows that have not ended
}

// NewSampler returns a sampler for the given number of links and the flows.
func NewSampler(every units.Time, links int, flows []Flow) *Sampler {
	s := &Sampler{every: every, lengths: make([]int64, links), rates: make([]int64, len(flows)),
		acked: make([]int64, len(flows)), flows: make([]int32, len(flows))}
	for i := range flows {
		if s.flows[i] = int32(i); i == 0 || flows[i].Start < s.start {
			s.start = flows[i].Start
		}
	}
	s.next = s.start + every
	return s
}

// Before shortens a window that would end at end, so that it does not reach beyond the next sample.
func (s *Sampler) Before(end units.Time) units.Time { return min(end, s.next) }

// Due reports whether to take samples at the end of a window. The next window begins at next, at or after
// now; no event happens in between.
func (s *Sampler) Due(now, next units.Time) bool {
	s.End = now
	if now < s.next && next <= s.next {
		return false
	}
	if s.next <= next && next < math.MaxInt64 {
		s.next = next - (next-s.start)%s.every + s.every
	}
	return true
}

// Queue keeps the length of a queue if it has changed.
func (s *Sampler) Queue(now units.Time, link int32, bytes int64) {
	if bytes != s.lengths[link] {
		s.lengths[link] = bytes
		s.Queues = append(s.Queues, QueueSample{now, link, bytes})
	}
}

// Flows calls each for every flow that has not ended and records the sample it returns. each returns begun
// false for a flow that has not started, done true for one that has ended.
func (s *Sampler) Flows(now units.Time, each func(flow int32) (x RateSample, begun, done bool)) {
	s.flows = slices.DeleteFunc(s.flows, func(i int32) bool {
		x, begun, done := each(i)
		if x.At, x.Flow = now, i; begun && (x.Rate != s.rates[i] || x.Acked != s.acked[i]) {
			s.rates[i], s.acked[i] = x.Rate, x.Acked
			s.Rates = append(s.Rates, x)
		}
		return done
	})
}

// Full returns an error once the samples exceed MostSamples.
func (s *Sampler) Full() error {
	if n := len(s.Queues) + len(s.Rates); n > MostSamples {
		return Wrong("more than %d values of queues and rates, %v apart, by %v: write a longer interval",
			MostSamples, s.every, s.End)
	}
	return nil
}

// Ended returns the series, with the pauses that the nodes recorded.
func (s *Sampler) Ended(pauses []PauseSample) *Series {
	slices.SortFunc(pauses, func(a, b PauseSample) int {
		pause := func(x PauseSample) int {
			if x.Pause {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Link, b.Link), cmp.Compare(a.Class, b.Class),
			pause(b)-pause(a))
	})
	s.Pauses = pauses
	return &s.Series
}
