package spec

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/units"
)

// Series is what a run looked like over time, with Config.Every. Values are those at the end of the first
// window at or after each multiple of Every, and at the end of a window after which nothing happens for so
// long; only changes are kept. A window is at most as long as the shortest link delay.
type Series struct {
	Queues []QueueSample
	Rates  []RateSample
	Pauses []PauseSample
	End    units.Time // of the last window: the last values hold until then
}

// QueueSample is the length of an egress queue of a switch from a time on: the bytes that wait in all
// priorities of data, without the frame in transmission.
type QueueSample struct {
	At    units.Time
	Link  int32 // 2·cable for the port of Cable.A, 2·cable+1 for that of B
	Bytes int64
}

// RateSample is the state of a flow at a time: the rate that its congestion control allows in bit/s, and the
// payload that was acknowledged.
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

// MostSamples bounds what a run keeps.
const MostSamples = 4 << 20

// Sampler collects a Series.
type Sampler struct {
	Series
	every, next units.Time
	lengths     []int64 // by link: the length kept last
	rates       []int64 // by flow: the rate kept last
	acked       []int64
	flows       []int32 // that have not ended
}

// NewSampler returns a sampler of so many links and flows.
func NewSampler(every units.Time, links, flows int) *Sampler {
	s := &Sampler{every: every, lengths: make([]int64, links), rates: make([]int64, flows),
		acked: make([]int64, flows), flows: make([]int32, flows)}
	for i := range s.flows {
		s.flows[i] = int32(i)
	}
	return s
}

// Due reports whether values are to be taken at the end of a window, after which the next event is at next.
func (s *Sampler) Due(now, next units.Time) bool {
	s.End = now
	if now < s.next && next-now < s.every {
		return false
	}
	s.next = now - now%s.every + s.every
	return true
}

// Queue keeps the length of a queue if it has changed.
func (s *Sampler) Queue(now units.Time, link int32, bytes int64) {
	if bytes != s.lengths[link] {
		s.lengths[link] = bytes
		s.Queues = append(s.Queues, QueueSample{now, link, bytes})
	}
}

// Flows calls each with the flows that have not ended, and keeps what it returns; begun is false for those
// that are to start, done true for those that have ended.
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

// Full returns an error where more is to be kept than MostSamples.
func (s *Sampler) Full() error {
	if n := len(s.Queues) + len(s.Rates); n > MostSamples {
		return Wrong("more than %d values of queues and rates, %v apart, by %v: write a longer interval",
			MostSamples, s.every, s.End)
	}
	return nil
}

// Ended returns the series, with the pauses that were noted by node.
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
