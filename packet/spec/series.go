package spec

import (
	"cmp"
	"math"
	"slices"

	"github.com/simccl/simccl/units"
)

// Series is what a run looked like over time, with Config.Every: values at each multiple of Every after the
// earliest start of a flow, and at the end. Only changes are kept. A value at a time is that before what
// happens at this time; a change before a time at which nothing happens for a while may bear its own time.
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
	start, every units.Time
	next         units.Time // sample
	lengths      []int64    // by link: the length kept last
	rates        []int64    // by flow: the rate kept last
	acked        []int64
	flows        []int32 // that have not ended
}

// NewSampler returns a sampler of so many links.
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

// Before returns the end of a window that would end at a time: it does not reach beyond a sample.
func (s *Sampler) Before(end units.Time) units.Time { return min(end, s.next) }

// Due reports whether values are to be taken at the end of a window. The next window begins at next, at or
// after now; in between nothing happens.
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
