package packet

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/simccl/simccl/packet/spec"
	"github.com/simccl/simccl/units"
)

// TestSamplesChangeNothing: a run with samples has the results of one without, to the bit; the samples do not
// depend on the number of workers; each flow's acknowledged bytes only grow, up to all of them; all queues
// are empty at the end; each port's pauses begin and end in turn.
func TestSamplesChangeNothing(t *testing.T) {
	n := leafSpine(4, 4, 2, 100e9, 0)
	flows := mesh(16, 200_000)
	for _, kind := range []CCKind{NoCC, DCQCN, HPCC, DCTCP} {
		c := settings(kind)
		c.Buffer.Bytes = 2 << 20
		plain, err := Run(n, flows, c)
		if err != nil {
			t.Fatal(err)
		}
		var first *Series
		for _, workers := range []int{1, 3} {
			c.Every, c.Workers = 2*units.Microsecond, workers
			r, err := Run(n, flows, c)
			if err != nil {
				t.Fatal(err)
			}
			name, s := fmt.Sprintf("%v, %d workers", kind, workers), r.Series
			r.Series = nil
			if !reflect.DeepEqual(r, plain) {
				t.Errorf("%s: samples change the result: %s, without %s", name, brief(r), brief(plain))
			}
			if first == nil {
				first = s
			}
			if !reflect.DeepEqual(s, first) {
				t.Errorf("%s: the samples depend on the number of workers", name)
			}
			checkSeries(t, s, name, flows, r)
		}
		if kind == NoCC && len(first.Pauses) == 0 {
			t.Error("nothing pauses: the case does not show what it is for")
		}
	}
}

func checkSeries(t *testing.T, s *Series, name string, flows []Flow, r *Result) {
	t.Helper()
	acked, length, deepest := make([]int64, len(flows)), map[int32]int64{}, int64(0)
	for _, x := range s.Rates {
		if x.Acked < acked[x.Flow] || x.Rate <= 0 {
			t.Fatalf("%s: flow %d has %d bytes acknowledged at %v, before %d; rate %d", name, x.Flow, x.Acked,
				x.At, acked[x.Flow], x.Rate)
		}
		acked[x.Flow] = x.Acked
	}
	for i, f := range flows {
		if acked[i] != f.Bytes {
			t.Errorf("%s: flow %d has %d of %d bytes acknowledged at the end", name, i, acked[i], f.Bytes)
		}
	}
	for _, q := range s.Queues {
		length[q.Link], deepest = q.Bytes, max(deepest, q.Bytes)
	}
	for link, bytes := range length {
		if bytes != 0 {
			t.Errorf("%s: %d bytes wait on link %d at the end", name, bytes, link)
		}
	}
	if deepest == 0 || deepest > r.PeakQueue {
		t.Errorf("%s: the deepest sample has %d bytes, the deepest queue %d", name, deepest, r.PeakQueue)
	}
	paused, n := map[[2]int32]bool{}, int64(0)
	for _, p := range s.Pauses {
		at := [2]int32{p.Link, int32(p.Class)}
		if paused[at] == p.Pause {
			t.Errorf("%s: link %d hears pause %v twice by %v", name, p.Link, p.Pause, p.At)
		}
		if paused[at] = p.Pause; p.Pause {
			n++
		}
	}
	if n != r.Pauses {
		t.Errorf("%s: %d pauses in the series, %d counted", name, n, r.Pauses)
	}
}

// TestSamplesAreBounded: more values than spec.MostSamples end a run with an error that names the interval.
func TestSamplesAreBounded(t *testing.T) {
	s := spec.NewSampler(units.Microsecond, 1, nil)
	s.Queues = make([]spec.QueueSample, spec.MostSamples+1)
	if s.Full() == nil {
		t.Error("nothing bounds samples")
	}
}
