package spec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSamplesAreCounted: values of queues and rates together are bounded.
func TestSamplesAreCounted(t *testing.T) {
	for _, c := range []struct {
		queues, rates int
		full          bool
	}{{0, 0, false}, {MostSamples, 0, false}, {MostSamples + 1, 0, true}, {0, MostSamples + 1, true},
		{MostSamples / 2, MostSamples - MostSamples/2, false},
		{MostSamples / 2, MostSamples - MostSamples/2 + 1, true}} {
		s := &Sampler{Series: Series{Queues: make([]QueueSample, c.queues),
			Rates: make([]RateSample, c.rates)}}
		if err := s.Full(); (err != nil) != c.full {
			t.Errorf("%d queues, %d rates: %v", c.queues, c.rates, err)
		}
	}
}

// TestPausesAreInOrder: by time, link and class; a pause before the end of one at the same time.
func TestPausesAreInOrder(t *testing.T) {
	want := []PauseSample{{At: 1, Link: 9}, {At: 2, Link: 1, Class: 3, Pause: true},
		{At: 2, Link: 1, Class: 3}, {At: 2, Link: 1, Class: 4}, {At: 2, Link: 2}, {At: 3}}
	got := []PauseSample{want[5], want[2], want[4], want[1], want[3], want[0]}
	if diff := cmp.Diff(want, (&Sampler{}).Ended(got).Pauses); diff != "" {
		t.Error(diff)
	}
}
